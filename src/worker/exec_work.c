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
#include "worker/drought.h"
#include "worker/outlook.h"

/* From SIGTERM to SIGKILL, for a command whose time is over. */
#define TERM_MS 2000
/* When the system has no room for one more process. */
#define CROWDED_MS 1000

struct exec_work {
	struct exec_work_config config;
	struct crew *crew;
	struct drought drought;
	struct outlook *outlook; /* NULL: nobody looks */
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
	loop_bury(errand->work->config.loop, &errand->grave);
}

/* One failure more, and the queue makes it a dead letter. */
static bool is_last_failure(const struct errand *errand)
{
	const int64_t failures_max = queue_config(errand->work->config.queue)->failures_max;

	return failures_max > 0 && errand->job->claim->failures + 1 >= failures_max;
}

/* The only end of an errand that was not given up. */
static void settle(struct errand *errand, enum outcome outcome, const char *reason)
{
	const struct member *member = errand->seek.member;
	const enum outcome final =
	    outcome == OUTCOME_RETRY && is_last_failure(errand) ? OUTCOME_DEAD : outcome;

	log_line(outcome == OUTCOME_DONE ? LOG_DEBUG : LOG_INFO, "task",
		 LOG_TEXT("task", errand->job->claim->id),
		 LOG_TEXT("member", member ? member->id : ""),
		 LOG_NUMBER("ms", clock_ms() - errand->began_ms),
		 LOG_TEXT("outcome", outcome_word(final)), LOG_TEXT("reason", reason));
	tally_add(errand->work->config.tally, final, member ? member->id : NULL);
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
		crew_pause(work->crew, work->crowded_until_ms);
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
			queue_keys(errand->work->config.queue)->levels[claim->level].name);
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

	drought_over(&errand->work->drought);
	describe(errand, &environment);
	r = child_start(&errand->child, config->loop, &request, on_ended, errand);
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
	drought_note(&errand->work->drought, reason);
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
				  .seek = {.pool = work->config.pool,
					   .lease_wait_ms = work->config.lease_wait_ms,
					   .cb = on_sought,
					   .arg = errand},
				  .began_ms = clock_ms()};
	alarm_init(&errand->timeout, work->config.loop, on_timeout, errand);
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
	tally_add(work->config.tally, OUTCOME_RELEASE,
		  errand->seek.member ? errand->seek.member->id : NULL);
	let_go(errand);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void on_crew_ended(void *arg)
{
	struct exec_work *work = arg;

	work->config.ended(work->config.arg);
}

static int make_crew(struct exec_work *work)
{
	const struct exec_work_config *config = &work->config;
	const struct crew_config crew = {.loop = config->loop,
					 .queue = config->queue,
					 .waits = config->waits,
					 .concurrency = config->concurrency,
					 .is_draining_queue = config->is_draining_queue,
					 .grace_ms = config->grace_ms,
					 .begin = begin,
					 .give_up = give_up,
					 .ended = on_crew_ended,
					 .arg = work};

	return crew_new(&work->crew, &crew);
}

static int make_outlook(struct exec_work *work)
{
	const struct exec_work_config *config = &work->config;
	const struct outlook_config outlook = {.loop = config->loop,
					       .crew = work->crew,
					       .queue = config->queue,
					       .pool = config->pool,
					       .tally = config->tally};

	return config->is_live ? outlook_new(&work->outlook, &outlook) : 0;
}

int exec_work_new(struct exec_work **ret, const struct exec_work_config *config)
{
	struct exec_work *work = calloc(1, sizeof *work);
	int r = -ENOMEM;

	if (!work)
		return r;
	work->config = *config;
	drought_init(&work->drought, config->loop, config->pool);
	r = make_crew(work);
	if (!r)
		r = make_outlook(work);
	if (r) {
		exec_work_end(work);
		exec_work_free(work);
		return r;
	}
	work->drought.crew = work->crew;
	*ret = work;
	return 0;
}

void exec_work_stop(struct exec_work *work)
{
	work->is_stopping = true;
	crew_stop(work->crew);
}

int exec_work_error(const struct exec_work *work)
{
	return work->error;
}

void exec_work_end(struct exec_work *work)
{
	outlook_free(work->outlook);
	drought_fini(&work->drought);
	crew_free(work->crew);
	work->outlook = NULL;
	work->crew = NULL;
}

void exec_work_free(struct exec_work *work)
{
	free(work);
}
