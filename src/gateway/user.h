/* user.h - what a user name says: account, pool, country, session, lifetime. Pure.
 *
 * USER[-pool-ALIAS][-country-CC][-session-ID][-lifetime-10m][-strict], keys in any case, with the aliases that vendors use
 * (docs/gateway.md). Values: 1 to 64 of A-Z a-z 0-9 _ and '.'. Nothing is ignored: an unknown, repeated or empty
 * parameter is refused by name. */
#ifndef FAIRLEAD_GATEWAY_USER_H
#define FAIRLEAD_GATEWAY_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

#define USER_VALUE_MAX 64

struct user {
	char pool[USER_VALUE_MAX + 1];    /* "" = not said */
	char country[USER_VALUE_MAX + 1]; /* lower case */
	char session[USER_VALUE_MAX + 1]; /* as written */
	int64_t lifetime_ms;              /* 0 = not said; a bare number is minutes */
	bool is_strict;
};

/* Reads the parameters behind the account: "" or "-key-value...". `max_lifetime_ms` bounds -lifetime-. 0, or
 * REASON_USER_PARAMETER with a line in `detail` that names the parameter and the fault (printable ASCII, no quotes). */
MUST_USE int user_parse(struct user *ret, const char *text, size_t len, int64_t max_lifetime_ms,
			char *detail, size_t detail_size);

#endif
