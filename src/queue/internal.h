/* internal.h - what the files of the queue share; nobody else includes it. */
#ifndef FAIRLEAD_QUEUE_INTERNAL_H
#define FAIRLEAD_QUEUE_INTERNAL_H

#include <sys/queue.h>

#include "queue/settle.h"

TAILQ_HEAD(settle_calls, settle_call);

struct queue {
	struct loop *loop;
	struct store *store;
	struct queue_config config; /* its texts are those of `keys` */
	struct queue_keys keys;
	const char *levels[QUEUE_LEVELS_MAX]; /* of `config` */
	uint64_t turns;                       /* claims so far, for aging */
	struct settle_calls settling;         /* not sent yet; the last one takes more */
	struct turn_hook hook;                /* sends them */
};

/* Scores of `later` and `leases` from here on are no times: lua/claim.lua has set aside what has come to its time but
 * is of a level that its caller does not name. */
#define SCORE_ASIDE ((int64_t)1 << 52)

#define QUEUE_NUMBER_SIZE 24 /* any int64_t as text */

/* settle.c: what is gathered is sent at the end of each turn. settling_fini(): what has not been sent ends with
 * -ECANCELED. */
void settling_init(struct queue *queue);
void settling_fini(struct queue *queue);

/* claim.c: one call of claim.lua for no tasks; the callback reads its answer. 0 if queued, else -errno. */
#define SWEEP_LIMIT 256
MUST_USE int claim_sweep(struct queue *queue, store_cb *cb, void *arg);

/* Of its answer: ms from now until the next delayed task or ended claim, -1: none; whether there may be more to do at
 * once. */
int64_t claim_next_due(const struct reply *reply);
bool claim_was_full(const struct reply *reply);

#endif
