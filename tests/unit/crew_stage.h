/* crew_stage.h - a crew on the queue "q" of a redis-server of the test's own; what it begins, the test ends. */
#ifndef FAIRLEAD_TESTS_CREW_STAGE_H
#define FAIRLEAD_TESTS_CREW_STAGE_H

#include "queue_stage.h"
#include "worker/crew.h"

#define CREW_JOBS_MAX 64

struct crew_stage {
	struct queue_stage q; /* its own store and queue are somebody else's */
	struct store *store;
	struct queue *queue;
	struct waits *waits;
	struct crew *crew;
	struct job *jobs[CREW_JOBS_MAX]; /* begun, in order; NULL: ended or given up */
	int begun, given_up, ends;
	size_t most; /* under way at a time */
	bool is_out_of_memory;
};

/* `q`: the configuration of the queue, NULL: of queue_stage_config(). `timeout_ms`: of the store. */
void crew_stage_begin(struct crew_stage *c, const struct queue_config *q, int64_t timeout_ms);
void crew_stage_end(struct crew_stage *c);

/* Makes the crew. */
void crew_stage_hire(struct crew_stage *c, size_t concurrency, bool is_draining_queue,
		     int64_t grace_ms);

/* Pushes so many tasks to low, named 0, 1, 2 ... */
void crew_stage_push(struct crew_stage *c, int count);

/* The `index`th that was begun is done. */
void crew_stage_done(struct crew_stage *c, int index, enum outcome outcome);

/* Waits until the store has answered all. */
void crew_stage_settle(struct crew_stage *c);

/* A number that a command answers. */
long crew_stage_number(struct crew_stage *c, const char *command);

#endif
