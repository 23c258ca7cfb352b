/* blame.h - whose failure a failed probe is. Pure.
 *
 * Refused, silent before its first byte, 407 and garbage are the proxy's at once. Any other failure is the proxy's
 * only if the target is known to be good: some member reached it within the window, or a direct request did
 * (check_control=direct); else it says nothing. */
#ifndef FAIRLEAD_CHECK_BLAME_H
#define FAIRLEAD_CHECK_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/result.h"

/* Of one target. */
struct target_record {
	int64_t good_ms; /* when it was last reached, by clock_ms(); 0: never */
};

/* A probe has reached the target. */
void blame_note_pass(struct target_record *record, int64_t now_ms);

enum blame { BLAME_PASS, BLAME_PROXY, BLAME_NOBODY };

/* `reason` as a probe ended; `record` of its target, NULL: it had none, and only the proxy can have failed.
 * `window_ms`: how long a pass speaks for the target. What failed on our side (no descriptors, a forbidden address)
 * is nobody's in any case. */
enum blame blame_of(const struct target_record *record, int reason, int64_t now_ms,
		    int64_t window_ms);

#endif
