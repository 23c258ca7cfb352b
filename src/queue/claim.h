/* claim.h - tasks out, with a lease: at least once. */
#ifndef FAIRLEAD_QUEUE_CLAIM_H
#define FAIRLEAD_QUEUE_CLAIM_H

#include "queue/queue.h"

#define CLAIM_MAX ((size_t)256) /* tasks of one call */
#define CLAIM_ID_MAX ((size_t)24)
#define CLAIM_TOKEN_MAX ((size_t)64)
#define CLAIM_NAME_MAX (CLAIM_ID_MAX + 1 + CLAIM_TOKEN_MAX) /* ID:TOKEN, as scripts name a claim */

/* A task that is claimed: ours until it is settled or its lease has ended on the clock of Redis. */
struct claim {
	char id[CLAIM_ID_MAX + 1];
	char token[CLAIM_TOKEN_MAX + 1];
	size_t level;                     /* index into queue_keys()->levels */
	int64_t failures, lost, released; /* so far */
	int64_t deadline_ms;              /* of clock_ms(): it surely lives until then */
	int64_t expires_ms;               /* of Redis's clock, since 1970 */
	size_t len;
	char payload[]; /* NUL-terminated behind `len` */
};

/* `claims`: `count` of them, each the callee's to free(); the array is not. No task: result 0 and count 0;
 * `next_due_ms`: ms from now until the next delayed task or ended claim, -1: none. */
typedef void claim_cb(int result, const char *error, struct claim **claims, size_t count,
		      int64_t next_due_ms, void *arg);

/* Claims up to `count` tasks (0: only promotes what is due and collects lost claims), in order of levels, or from the
 * bottom when aging says so. An answer that is lost: REASON_STORE_UNKNOWN; what was claimed comes back when its lease
 * has ended. 0 if queued, else -errno. */
MUST_USE int queue_claim(struct queue *queue, size_t count, claim_cb *cb, void *arg);

#endif
