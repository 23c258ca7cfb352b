/* crew.h - a worker's main loop: claims as many tasks as it may carry out at a time, keeps their claims while they
 * last, settles them.
 *
 * How a task is carried out is its owner's affair: `begin` starts it, job_done() ends it. */
#ifndef FAIRLEAD_WORKER_CREW_H
#define FAIRLEAD_WORKER_CREW_H

#include "queue/settle.h"
#include "queue/wait.h"
#include "worker/outcome.h"

struct crew;

/* A claimed task under way. */
struct job {
	TAILQ_ENTRY(job) link;
	struct crew *crew;
	struct claim *claim;
	void *work;   /* of the owner */
	bool is_lost; /* the claim is no longer ours */
	int64_t kept_ms;
};

struct crew_config {
	struct loop *loop;
	struct queue *queue;
	struct waits *waits;
	size_t concurrency;
	/* End when the queue is empty: nothing ready, returned, later or in flight. */
	bool is_draining_queue;
	int64_t grace_ms; /* of crew_stop() */
	/* Begins; job->work is the owner's. False: no memory; the job is released. */
	bool (*begin)(struct job *job, void *arg);
	/* Ends what is under way at once, without job_done(): the claim was lost, or the grace period is over. */
	void (*give_up)(struct job *job, void *arg);
	void *arg; /* of these two */
	/* All has ended: after crew_stop(), or when the queue is drained. */
	void (*ended)(void *arg);
	void *ended_arg;
};

/* 0 or -ENOMEM. Claims from the first turn on. */
MUST_USE int crew_new(struct crew **ret, const struct crew_config *config);

/* What is under way is given up and released: before store_free() and waits_free(), and not inside `ended`. Accepts NULL. */
void crew_free(struct crew *crew);

/* The job has ended and its result is written: settles it, and frees the job. `delay_ms`, 0: by backoff. `reason`:
 * for a dead letter. */
void job_done(struct job *job, enum outcome outcome, int64_t delay_ms, const char *reason);

/* What the task comes to: one failure more may be its last, and then the queue makes a dead letter of it. */
enum outcome job_final(const struct job *job, enum outcome outcome);

/* No task is claimed until `until_ms` of clock_ms(): the pool is empty, results cannot be written. */
void crew_pause(struct crew *crew, int64_t until_ms);

/* What it was paused for is over. */
void crew_resume(struct crew *crew);

/* Claims no more; what is under way may end within grace_ms, then it is given up and released. */
void crew_stop(struct crew *crew);

size_t crew_in_flight(const struct crew *crew);

#endif
