/* exec_work.c - tasks that are commands: a member, a command that uses it, its exit status.
 *
 * A command gets its payload on standard input; its output is ours, inherited. */
#include "worker/exec_work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alarm.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/environment.h"
#include "pool/seek.h"

/* From SIGTERM to SIGKILL, for a command whose time is over. */
#define TERM_MS 2000
/* When the system has no room for one more process. */
#define CROWDED_MS 1000

struct exec_work {
	struct exec_work_config config;
	struct shift shift;
	int64_t crowded_until_ms;
	int error; /* -errno: the command cannot be run */
	bool is_stopping;
};

/* A task under way. */
struct errand {
	struct grave grave;
	struct exec_work *work;
	struct job *job;
	struct seek seek;    /* holds the member, and its lease, until the command has ended */
	struct child *child; /* NULL: a member is sought */
	struct alarm timeout;
	int64_t began_ms;
	bool is_late; /* told to end, because its time was over */
};

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void errand_free(struct grave *grave)
{
	free(grave);
}

/* Whatever still runs is killed first: then others may have the member, and the task. */
static void let_go(struct errand *errand)
{
	child_free(errand->child);
	errand->child = NULL;
	seek_end(&errand->seek);
	alarm_fini(&errand->timeout);
	loop_bury(errand->work->config.shift.loop, &errand->grave);
}

/* The only end of an errand that was not given up. */
static void settle(struct errand *errand, enum outcome outcome, const char *reason)
{
	const struct member *member = errand->seek.member;
	const enum outcome final = job_final(errand->job, outcome);

	log_line(outcome == OUTCOME_DONE ? LOG_DEBUG : LOG_INFO, "task",
		 LOG_TEXT("task", errand->job->claim->id),
		 LOG_TEXT("member", member ? member->id : ""),
		 LOG_NUMBER("ms", clock_ms() - errand->began_ms),
		 LOG_TEXT("outcome", outcome_word(final)), LOG_TEXT("reason", reason));
	tally_add(errand->work->config.shift.tally, final, member ? member->id : NULL);
	job_done(errand->job, outcome, 0,
		 outcome == OUTCOME_RETRY || outcome == OUTCOME_DEAD ? reason : NULL);
	let_go(errand);
}

static void on_ended(int status, void *arg)
{
	struct errand *errand = arg;
	const struct exec_work *work = errand->work;
	const struct exec_end end = {.status = status,
				     .late_ms = errand->is_late ? work->config.timeout_ms : 0,
				     .is_stopping = work->is_stopping};
	char reason[EXEC_REASON_SIZE];
	const enum outcome outcome = exec_judge(&work->config.rule, &end, reason);

	settle(errand, outcome, reason);
}

static void on_timeout(void *arg)
{
	struct errand *errand = arg;

	errand->is_late = true;
	child_stop(errand->child);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* Room may come; all else will be the same next time. */
static bool is_crowded(int result)
{
	return result == -EAGAIN || result == -ENOMEM || result == -EMFILE || result == -ENFILE ||
	       result == -ETXTBSY;
}

static void not_started(struct errand *errand, int result)
{
	struct exec_work *work = errand->work;

	if (!is_crowded(result)) {
		work->error = result;
		exec_work_stop(work);
	} else if (clock_ms() >= work->crowded_until_ms) {
		log_error("a command cannot be started now: its task goes back, the worker waits",
			  LOG_TEXT("reason", result_word(result)),
			  LOG_NUMBER("again_ms", CROWDED_MS));
		work->crowded_until_ms = clock_ms() + CROWDED_MS;
		crew_pause(work->shift.crew, work->crowded_until_ms);
	}
	settle(errand, OUTCOME_RELEASE, result_word(result));
}

/* FAIRLEAD_LEASE and the like would be settings of whatever fairlead the command runs. */
static void describe(const struct errand *errand, struct environment *environment)
{
	const struct claim *claim = errand->job->claim;
	char attempt[24];

	environment_init(environment, &errand->seek.member->endpoint);
	environment_add(environment, "FAIRLEAD_TASK_ID", claim->id);
	environment_add(environment, "FAIRLEAD_TASK_LEVEL",
			queue_keys(errand->work->config.shift.queue)->levels[claim->level].name);
	snprintf(attempt, sizeof attempt, "%" PRId64, claim->failures + claim->lost + 1);
	environment_add(environment, "FAIRLEAD_TASK_ATTEMPT", attempt);
}

static void start(struct errand *errand)
{
	static struct environment environment;
	const struct exec_work_config *config = &errand->work->config;
	const struct child_request request = {.argv = config->command,
					      .environment = environment.list,
					      .input = errand->job->claim->payload,
					      .input_len = errand->job->claim->len,
					      .grace_ms = TERM_MS};
	int r;

	drought_over(&errand->work->shift.drought);
	describe(errand, &environment);
	r = child_start(&errand->child, config->shift.loop, &request, on_ended, errand);
	environment_wipe(&environment);
	if (r)
		not_started(errand, r);
	else
		alarm_set(&errand->timeout, clock_ms() + config->timeout_ms);
}

/* --- the member --------------------------------------------------------------------------------------------------- */

/* Nothing was attempted. */
static void go_without(struct errand *errand, int reason)
{
	drought_note(&errand->work->shift.drought, reason);
	settle(errand, OUTCOME_RELEASE, result_word(reason));
}

/* No other program understands `direct`, and it is no proxy. */
static bool is_usable(const struct member *member)
{
	return member->endpoint.scheme != SCHEME_DIRECT;
}

/* None was eligible but those that no command understands. */
static bool is_all_passed_over(int result, const struct seek *seek)
{
	return !result || (result == REASON_POOL_EMPTY && seek->avoid_count);
}

/* While all are at their cap, it stands in line again: a task that is given back would only come again at once. */
static void on_sought(int result, struct seek *seek)
{
	struct errand *errand = seek->arg;

	if (errand->work->is_stopping)
		settle(errand, OUTCOME_RELEASE, "worker ends");
	else if (!result && is_usable(seek->member))
		start(errand);
	else if ((result && result != REASON_POOL_FULL) || seek_next(seek))
		go_without(errand,
			   is_all_passed_over(result, seek) ? REASON_MEMBER_UNREADABLE : result);
}

/* --- the crew ----------------------------------------------------------------------------------------------------- */

static bool begin(struct job *job, void *arg)
{
	struct exec_work *work = arg;
	struct errand *errand = calloc(1, sizeof *errand);

	if (!errand)
		return false;
	*errand = (struct errand){.grave.free_object = errand_free,
				  .work = work,
				  .job = job,
				  .seek = {.pool = work->config.shift.pool,
					   .lease_wait_ms = work->config.lease_wait_ms,
					   .cb = on_sought,
					   .arg = errand},
				  .began_ms = clock_ms()};
	alarm_init(&errand->timeout, work->config.shift.loop, on_timeout, errand);
	job->work = errand;
	if (!seek_next(&errand->seek))
		return true;
	let_go(errand);
	return false;
}

static void give_up(struct job *job, void *arg)
{
	struct exec_work *work = arg;
	struct errand *errand = job->work;

	log_info("task", LOG_TEXT("task", job->claim->id),
		 LOG_TEXT("member", errand->seek.member ? errand->seek.member->id : ""),
		 LOG_NUMBER("ms", clock_ms() - errand->began_ms), LOG_TEXT("outcome", "given up"),
		 LOG_TEXT("reason", job->is_lost ? "claim lost" : "worker ends"));
	tally_add(work->config.shift.tally, OUTCOME_RELEASE,
		  errand->seek.member ? errand->seek.member->id : NULL);
	let_go(errand);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int exec_work_new(struct exec_work **ret, const struct exec_work_config *config)
{
	struct exec_work *work = calloc(1, sizeof *work);
	int r;

	if (!work)
		return -ENOMEM;
	work->config = *config;
	r = shift_begin(&work->shift, &config->shift, begin, give_up, work);
	if (r) {
		exec_work_end(work);
		exec_work_free(work);
		return r;
	}
	*ret = work;
	return 0;
}

void exec_work_stop(struct exec_work *work)
{
	work->is_stopping = true;
	crew_stop(work->shift.crew);
}

int exec_work_error(const struct exec_work *work)
{
	return work->error;
}

void exec_work_end(struct exec_work *work)
{
	shift_end(&work->shift);
}

void exec_work_free(struct exec_work *work)
{
	free(work);
}
