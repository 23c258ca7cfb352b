/* identity.h - who a client is and what it wants: from its credentials, its user name's parameters, and its listener. */
#ifndef FAIRLEAD_GATEWAY_IDENTITY_H
#define FAIRLEAD_GATEWAY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/account.h"
#include "gateway/pools.h"
#include "gateway/user.h"

#define IDENTITY_DETAIL_MAX 160

struct listener;

/* What a client gave; not terminated, and any byte may occur. */
struct credentials {
	const char *user, *password; /* user NULL: none */
	size_t user_len, password_len;
};

struct identity {
	struct pool *pool;
	char client[ACCOUNT_NAME_MAX +
		    2]; /* an account, or "~NAME" that nobody has proved; "" = no name */
	char session[USER_VALUE_MAX + 1]; /* "" = none */
	int64_t lifetime_ms;              /* of the session */
	bool is_strict;
};

/* Judges. 0, or a reason with a line in `detail` ("" if there is nothing to add):
 *   REASON_CLIENT_UNKNOWN   credentials are needed and missing, or wrong
 *   REASON_USER_PARAMETER   the user name is not understood
 *   REASON_POOL_DENIED      no such alias, or not for this client */
MUST_USE int identity_judge(struct identity *ret, const struct listener *listener,
			    const struct credentials *given, char *detail, size_t detail_size);

/* The account's name alone; "" for whoever has none. */
const char *identity_account(const struct identity *identity);

#endif
