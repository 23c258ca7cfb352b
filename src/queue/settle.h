/* settle.h - how a claim ends: done, failed, given back, or kept a little longer. */
#ifndef FAIRLEAD_QUEUE_SETTLE_H
#define FAIRLEAD_QUEUE_SETTLE_H

#include "queue/claim.h"

enum settle_verb { SETTLE_ACK, SETTLE_NACK, SETTLE_DEAD, SETTLE_RELEASE, SETTLE_EXTEND };

/* 0; REASON_CLAIM_STALE (lost meanwhile: somebody else has it, or had it); REASON_CLAIM_DEAD (done: it is a dead
 * letter now); a store's reason. Repeated when an answer is lost: one's own repeat is told 0. */
typedef void settle_cb(int result, const char *error, void *arg);

struct settlement {
	enum settle_verb verb;
	const char *id, *token;
	int64_t ms; /* NACK: delay, -1: by backoff and `failures`; EXTEND: 0: the queue's lease */
	int64_t failures;   /* of the claim so far, for the backoff */
	const char *reason; /* NACK, DEAD; NULL: none */
};

/* Settlements of one turn of the loop are one call; copied. `cb` may be NULL. 0 if queued, else -errno. */
MUST_USE int queue_settle(struct queue *queue, const struct settlement *settlement, settle_cb *cb,
			  void *arg);

#endif
