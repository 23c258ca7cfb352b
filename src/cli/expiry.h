/* expiry.h - the time at which proxies expire, as a user writes it. */
#ifndef FAIRLEAD_CLI_EXPIRY_H
#define FAIRLEAD_CLI_EXPIRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

/* Reads a duration from `now_ms` on ("12h", "30d") or a time of UTC ("2026-12-31", "2026-12-31T18:00:00Z"). 0 and the
 * time in ms since 1970, or -EINVAL with what is wrong in `why`. */
MUST_USE int expiry_parse(const char *text, int64_t now_ms, int64_t *ret_ms, char *why,
			  size_t size);

#endif
