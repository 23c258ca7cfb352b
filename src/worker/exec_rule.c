/* exec_rule.c - what the end of a command says about its task. */
#include "worker/exec_rule.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

/* --- which statuses are dead letters ------------------------------------------------------------------------------ */

/* -1: none of 0 to 255. */
static int read_status(const char *text, size_t len)
{
	int status = 0;

	if (len == 0 || len > 3 || strspn(text, "0123456789") < len)
		return -1;
	for (size_t i = 0; i < len; i++)
		status = 10 * status + (text[i] - '0');
	return status <= 255 ? status : -1;
}

int exec_rule_add(struct exec_rule *rule, const char *statuses, char *error, size_t size)
{
	for (const char *text = statuses;; text++) {
		const size_t len = strcspn(text, ",");
		const int status = read_status(text, len);

		if (status <= 0 || status == EX_TEMPFAIL) {
			snprintf(error, size,
				 "'%.*s' must be an exit status of 1 to 255 but for %d, which is "
				 "tried again",
				 (int)(len < 20 ? len : 20), text, EX_TEMPFAIL);
			return -EINVAL;
		}
		rule->is_dead[status] = true;
		text += len;
		if (!*text)
			return 0;
	}
}

/* --- the end of a command ----------------------------------------------------------------------------------------- */

/* Whoever ends a service asks all of its processes, not the worker alone. */
static bool is_asked_to_end(const struct exec_end *end)
{
	const int number = WTERMSIG(end->status);

	return end->is_stopping &&
	       (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT);
}

static enum outcome judge_signal(const struct exec_end *end, char *reason)
{
	const char *name = sigabbrev_np(WTERMSIG(end->status));

	if (name)
		snprintf(reason, EXEC_REASON_SIZE, "killed by SIG%s", name);
	else
		snprintf(reason, EXEC_REASON_SIZE, "killed by signal %d", WTERMSIG(end->status));
	return is_asked_to_end(end) ? OUTCOME_RELEASE : OUTCOME_RETRY;
}

static enum outcome judge_exit(const struct exec_rule *rule, int status, char *reason)
{
	snprintf(reason, EXEC_REASON_SIZE, "exit status %d", status);
	if (status == 0)
		return OUTCOME_DONE;
	return rule->is_dead[status] ? OUTCOME_DEAD : OUTCOME_RETRY;
}

enum outcome exec_judge(const struct exec_rule *rule, const struct exec_end *end,
			char reason[static EXEC_REASON_SIZE])
{
	/* Whatever it says now: it was not done in time. */
	if (end->late_ms) {
		snprintf(reason, EXEC_REASON_SIZE, "timed out after %" PRId64 " ms", end->late_ms);
		return OUTCOME_RETRY;
	}
	if (WIFSIGNALED(end->status))
		return judge_signal(end, reason);
	return judge_exit(rule, WEXITSTATUS(end->status), reason);
}
