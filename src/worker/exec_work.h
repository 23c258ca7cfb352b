/* exec_work.h - tasks that are commands: for each claimed one a member is taken, a command is run with it, and its
 * exit status settles the task. No command is started without a member. */
#ifndef FAIRLEAD_WORKER_EXEC_WORK_H
#define FAIRLEAD_WORKER_EXEC_WORK_H

#include "worker/exec_rule.h"
#include "worker/shift.h"

struct exec_work;

struct exec_work_config {
	struct shift_config shift;
	char *const *command; /* NULL-terminated, the caller's */
	struct exec_rule rule;
	int64_t timeout_ms, lease_wait_ms;
};

/* 0 or -ENOMEM. */
MUST_USE int exec_work_new(struct exec_work **ret, const struct exec_work_config *config);

/* Claims no more, lets commands end within the grace period, then kills them and runs `ended`. */
void exec_work_stop(struct exec_work *work);

/* The -errno that keeps the command from being run at all, for which the work has stopped by itself; 0: none. */
int exec_work_error(const struct exec_work *work);

/* Kills what still runs, gives its tasks back. Before waits_free() and store_free(), and not inside `ended`. */
void exec_work_end(struct exec_work *work);

/* After exec_work_end() and store_free(). Accepts NULL. */
void exec_work_free(struct exec_work *work);

#endif
