/* crowd.h - many probes at once: bounded by a number and by the descriptors of the process. */
#ifndef FAIRLEAD_CHECK_CROWD_H
#define FAIRLEAD_CHECK_CROWD_H

#include "check/probe.h"

struct crowd;

/* At most `concurrency` probes at once, cut to what the descriptor limit admits (with one line in the log that says
 * so). 0 or -ENOMEM. */
MUST_USE int crowd_new(struct crowd **ret, struct loop *loop, size_t concurrency);

/* Ends what is under way; no callback runs. Accepts NULL. */
void crowd_free(struct crowd *crowd);

/* How many more probes may start now; `on_room` (may be NULL) is called when there is room again after there was none. */
size_t crowd_room(const struct crowd *crowd);
void crowd_on_room(struct crowd *crowd, void (*on_room)(void *arg), void *arg);

/* Starts a probe. `probe` in the callback is NULL. 0, -EAGAIN (no room), -ENOMEM. */
MUST_USE int crowd_probe(struct crowd *crowd, const struct probe_request *request, probe_cb *cb,
			 void *arg);

#endif
