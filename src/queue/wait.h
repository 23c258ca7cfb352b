/* wait.h - claims as soon as there is a task, without polling.
 *
 * One armed pair of connections (store/watch.h) a process and queue serves any number of waiters, in order of
 * arrival. A foreign LPUSH, RPUSH, MULTI, EVAL, LMOVE, RENAME or RESTORE wakes it as well as ours. Where the server
 * has no tracking it asks again every 5 ms, rising to 500 ms. */
#ifndef FAIRLEAD_QUEUE_WAIT_H
#define FAIRLEAD_QUEUE_WAIT_H

#include <sys/queue.h>

#include "queue/claim.h"
#include "store/watch.h"

struct waits;

/* `config`: how the pair reaches the store, copied. 0 or -errno. */
MUST_USE int waits_new(struct waits **ret, struct loop *loop, struct queue *queue,
		       const struct store_config *config);

/* No callback runs any more; before store_free(). Accepts NULL. */
void waits_free(struct waits *waits);

enum watch_mode waits_mode(const struct waits *waits);

/* Stands inside whoever waits. */
struct wait {
	TAILQ_ENTRY(wait) link;
	struct waits *waits; /* NULL: does not wait */
	size_t count;        /* tasks wanted at most */
	claim_cb *cb;
	void *arg;
};

/* Waits for 1 to `count` tasks. `cb` runs once, never before this returns: with 1 or more claims, or a final result
 * (REASON_STORE_REFUSED ...). While the store is away it waits on. */
void wait_begin(struct waits *waits, struct wait *wait, size_t count, claim_cb *cb, void *arg);

/* `cb` will not run; what is claimed for it meanwhile is released at once. Accepts one that does not wait. */
void wait_cancel(struct wait *wait);

#endif
