/* internal.h - what the files of a schedule share; nobody else includes it. */
#ifndef FAIRLEAD_CHECK_INTERNAL_H
#define FAIRLEAD_CHECK_INTERNAL_H

#include "base/alarm.h"
#include "check/plan.h"
#include "check/schedule.h"

/* Who is due is asked for no more often than this, and what has ended is reported no later. */
#define GATHER_MS 50

/* One member that was taken. It stands in one list at a time: running (its probe is the crowd's), waiting (for what a direct
 * request says of its target), ended (to be reported). It holds its member, and its plan, until its report is on the way. */
struct check {
	TAILQ_ENTRY(check) link;
	struct schedule *schedule;
	struct member *member; /* NULL: a direct request to the target */
	struct plan *plan;
	int target; /* of the plan; -1: none */
	int64_t began_ms;
	struct probe_outcome outcome; /* when it has ended */
};

TAILQ_HEAD(checks, check);

struct schedule {
	struct loop *loop;
	struct pool *pool;
	struct schedule_config config;
	struct plan *plan; /* NULL: the rules ask for something that cannot be done */
	size_t turn;       /* whose target is next */
	struct checks running, waiting, ended;
	size_t idle_count, ended_count; /* taken and not under way; those of `ended` */
	struct alarm look, flush, mend;
	size_t asked; /* how many members the call that is in flight asks for; 0: there is none */
	bool is_full; /* somebody may be due for whom there was no room */
	int calls;    /* in flight; the last one frees a schedule that has ended */
	bool has_ended;
	int64_t sleep_ms;
	int64_t verdict_ms;  /* of the last one; 0: there is none, or nobody to be judged */
	int64_t expected_ms; /* a verdict is expected since; 0: none is */
	int64_t told_due_ms, told_plan_ms, told_held_ms, told_stuck_ms;
};

/* schedule.c: the last call of a schedule that has ended frees it. */
void schedule_release(struct schedule *schedule);

int64_t schedule_rule(const struct schedule *schedule, enum rule rule);

/* Is it time to say something again? Once a check interval is enough. */
bool schedule_may_tell(const struct schedule *schedule, int64_t *told_ms);

/* Do requests of our own tell whether a target is good (check_control=direct)? */
bool schedule_is_controlled(const struct schedule *schedule);

/* check.c: begins the check of a member; takes over the reference to it, or leaves it on failure. 0, -EAGAIN (no room) or
 * -ENOMEM. */
MUST_USE int check_start(struct schedule *schedule, struct member *member);

/* Reports up to REPORT_MAX of those that have ended. */
void check_report(void *schedule);

/* Frees what stands in a list. */
void check_end_list(struct checks *list);

#endif
