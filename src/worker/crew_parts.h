/* crew_parts.h - what the files of the crew share; nobody else includes it. */
#ifndef FAIRLEAD_WORKER_CREW_PARTS_H
#define FAIRLEAD_WORKER_CREW_PARTS_H

#include "base/alarm.h"
#include "worker/crew.h"

TAILQ_HEAD(jobs, job);

/* A job, and how its claim ends. It lives until the queue has answered all that was asked about it. */
struct place {
	struct job job;
	enum settle_verb verb;
	int64_t delay_ms;
	char *reason;  /* NULL: none */
	int answers;   /* of the queue, awaited */
	bool is_ended; /* no longer under way */
	bool is_due;   /* to be settled once more */
};

struct crew_look;

struct crew {
	struct crew_config config;
	struct wait wait;
	struct jobs jobs;  /* under way, about in the order of kept_ms */
	struct jobs ended; /* the queue has not answered yet */
	size_t in_flight;  /* of `jobs` */
	struct turn_hook hook;
	struct alarm pause, keep, settle, look, grace;
	struct crew_look *looking; /* at the queue, whether it is empty; NULL: not now */
	int64_t paused_until_ms;   /* of clock_ms() */
	int64_t refused_ms;        /* the last pause after a claim that was refused */
	int empty_looks;           /* in a row */
	bool is_stopping, is_grace_over, is_over;
};

static inline struct place *place_of(struct job *job)
{
	return (struct place *)job;
}

/* --- crew_keep.c -------------------------------------------------------------------------------------------------- */

/* The job begins: its claim is extended from now on, as long as it stands among those under way. */
void crew_keep(struct crew *crew, struct job *job);

/* The alarm for the next extension. */
void crew_keep_due(void *arg);

/* --- crew_settle.c ------------------------------------------------------------------------------------------------ */

/* Takes the job out of those under way, and asks the queue to settle its claim. */
void crew_settle(struct place *place, enum settle_verb verb);

/* The alarm for settlements that the store could not take. */
void crew_settle_due(void *arg);

/* The job is no longer under way; its claim is another's affair. */
void crew_leave(struct place *place);

/* Frees a place that has ended and of which nothing is awaited. */
void crew_bury(struct place *place);

/* --- crew_look.c -------------------------------------------------------------------------------------------------- */

/* Looks from time to time whether nothing is left to do in the queue; with --drain it is all over then. */
void crew_look_due(void *arg);
void crew_look_end(struct crew *crew);

/* Seen twice in a row: a task that moves while its places are read one after the other is missed once. */
bool crew_is_drained(const struct crew *crew);

#endif
