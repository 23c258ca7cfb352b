/* queue_stage.h - a queue named "q" with the levels high and low, on a redis-server of the test's own, or on one that the test plays. */
#ifndef FAIRLEAD_TESTS_QUEUE_STAGE_H
#define FAIRLEAD_TESTS_QUEUE_STAGE_H

#include "peer.h"
#include "queue/push.h"
#include "queue/settle.h"
#include "real_redis.h"

#define Q "{q}:queue:"
#define QUEUE_STAGE_PATIENCE_MS 20000 /* of the store */

struct queue_stage {
	struct stage stage;
	struct real_redis redis;
	struct peer peer; /* of a played server */
	char folder[40];
	struct store *store;
	struct queue *queue;
	int64_t
	    timeout_ms; /* of the store; set before the beginning, 0: time enough for any test */
};

/* A lease of a minute, up to 3 failures and 3 lost claims, backoff from 1 s to 10 s. */
struct queue_config queue_stage_config(void);

/* A real server. `config` NULL: as above. */
void queue_stage_begin(struct queue_stage *q, const struct queue_config *config);

/* A played one: the connection is greeted and ready. */
void queue_stage_play(struct queue_stage *q);

/* Accepts the next connection to a played server and makes it ready. */
void queue_stage_greet(struct queue_stage *q);

/* Ends the store, as a process that goes: what is under way gets -ECANCELED. */
void queue_stage_cancel(struct queue_stage *q);
void queue_stage_end(struct queue_stage *q);

/* What a call ended with. */
struct queue_outcome {
	int ends, result;
	char error[200];
	size_t pushed_count;
	bool pushed[PUSH_MAX];
	size_t count;
	struct claim *claims[CLAIM_MAX]; /* freed by queue_outcome_free() */
	int64_t next_due_ms, moved;
};

void queue_outcome_free(struct queue_outcome *outcome);

/* Callbacks that note it in `arg`. */
void queue_stage_on_push(int result, const char *error, const bool *pushed, size_t count,
			 void *arg);
void queue_stage_on_claim(int result, const char *error, struct claim **claims, size_t count,
			  int64_t next_due_ms, void *arg);
void queue_stage_on_end(int result, const char *error, void *arg);
void queue_stage_on_moved(int result, const char *error, int64_t moved, void *arg);

/* Waits for the only end, which must be `result`. */
void queue_stage_expect(struct queue_stage *q, struct queue_outcome *outcome, int result);

/* Pushes one task at once; it must go in. */
void queue_stage_push(struct queue_stage *q, const char *level, const char *payload);

/* Claims up to `count`, which must be done without failure. */
void queue_stage_claim(struct queue_stage *q, size_t count, struct queue_outcome *outcome);

/* Claims one task, which must be there. The caller's to free(). */
struct claim *queue_stage_claim_one(struct queue_stage *q);

/* What of `later` is due first is due now. */
void queue_stage_is_due(struct queue_stage *q);

/* The server dies, and time passes until the store has lost its patience. The clock stands still until queue_stage_end(). */
void queue_stage_die(struct queue_stage *q);

/* Settles, and returns the result. */
int queue_stage_settle(struct queue_stage *q, const struct claim *claim, enum settle_verb verb,
		       int64_t ms, const char *reason);

#endif
