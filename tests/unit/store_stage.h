/* store_stage.h - a store whose server the test plays line by line. */
#ifndef FAIRLEAD_TESTS_STORE_STAGE_H
#define FAIRLEAD_TESTS_STORE_STAGE_H

#include "peer.h"
#include "store/store.h"

/* The answer to ROLE. */
#define MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"

/* What an operation ended with. */
struct store_outcome {
	int ends, result;
	char text[200];
};

struct store_stage {
	struct stage stage;
	struct peer peer;
	struct store *store;
	char folder[40], path[64];
};

/* Notes the outcome that `arg` points at. */
void store_stage_on_end(int result, const struct reply *reply, void *arg);

/* Begins to connect to a server that listens and has not accepted yet. `userinfo`: "" or "user:password@". */
void store_stage_begin(struct store_stage *f, const char *userinfo, int64_t timeout_ms,
		       int64_t wait_ms);
void store_stage_end(struct store_stage *f);

/* Accepts the next connection and makes it ready. */
void store_stage_greet(struct store_stage *f);

/* As store_stage_begin() and store_stage_greet(), with time enough for any test. */
void store_stage_ready(struct store_stage *f);

/* Queues GET `word`, or a script that is not idempotent. */
void store_stage_ask(struct store_stage *f, int flags, const char *word,
		     struct store_outcome *outcome);
void store_stage_allocate(struct store_stage *f, struct store_outcome *outcome);

/* Waits for the end, which must be `result` and the only one. */
void store_stage_expect(struct store_stage *f, struct store_outcome *outcome, int result);

#endif
