/* shift.h - what every worker has, whatever its tasks are: a crew, the pause while no member can be used, and the outlook of
 * the live line. */
#ifndef FAIRLEAD_WORKER_SHIFT_H
#define FAIRLEAD_WORKER_SHIFT_H

#include "worker/drought.h"
#include "worker/tally.h"

struct outlook;

struct shift_config {
	struct loop *loop;
	struct queue *queue;
	struct waits *waits;
	struct pool *pool;
	struct tally *tally;
	size_t concurrency;
	bool is_draining_queue, is_live; /* is_live: somebody looks at the tally's line */
	int64_t grace_ms;
	void (*ended)(void *arg); /* as of crew_config */
	void *arg;
};

/* Stands inside a worker. */
struct shift {
	struct crew *crew;
	struct drought drought;
	struct outlook *outlook; /* NULL: nobody looks */
};

/* `begin` and `give_up`: as of crew_config. 0 or -ENOMEM; shift_end() is due in both cases. */
MUST_USE int shift_begin(struct shift *shift, const struct shift_config *config,
			 bool (*begin)(struct job *job, void *arg),
			 void (*give_up)(struct job *job, void *arg), void *arg);

/* Gives up and releases what is under way. Before waits_free() and store_free(), and not inside `ended`. */
void shift_end(struct shift *shift);

#endif
