/* sweep.h - the janitor of a queue: the only place with periodic work on it. Delayed tasks go to their level when
 * they are due, claims of the dead come back, and it is noted how long a level has stood still. Any number of keepers
 * may do so at a time. */
#ifndef FAIRLEAD_QUEUE_SWEEP_H
#define FAIRLEAD_QUEUE_SWEEP_H

#include "queue/queue.h"

struct queue_sweep;

/* 0 or -ENOMEM. */
MUST_USE int queue_sweep_new(struct queue_sweep **ret, struct loop *loop, struct queue *queue);

/* After store_free(). Accepts NULL. */
void queue_sweep_free(struct queue_sweep *sweep);

#endif
