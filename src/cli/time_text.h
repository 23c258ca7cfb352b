/* time_text.h - a time of UTC as a user writes it. Pure. */
#ifndef FAIRLEAD_CLI_TIME_TEXT_H
#define FAIRLEAD_CLI_TIME_TEXT_H

#include <stdint.h>

#include "base/result.h"

/* No time from here on (the year 2248) is taken: scripts calculate with such numbers. */
#define TIME_TEXT_END_MS ((int64_t)1 << 43)

/* RFC 3339 5.6, of UTC ("2026-12-31T18:00:00Z", a fraction of the second may follow), or its date alone. 0 and
 * milliseconds since 1970, or -EINVAL. */
MUST_USE int time_text_parse(const char *text, int64_t *ret_ms);

#endif
