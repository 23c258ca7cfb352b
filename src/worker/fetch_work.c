/* fetch_work.c - tasks that are requests. The result is written before the task is settled, so that it may be there
 * twice, but is never missing. */
#include "worker/fetch_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"

#define REASON_SIZE 240
#define MEMBER_SIZE 320
#define UNWRITTEN_FIRST_MS 250
#define UNWRITTEN_MAX_MS 5000

struct fetch_work {
	struct fetch_work_config config;
	struct shift shift;
	int64_t unwritten_ms; /* the last pause after a result that could not be written; 0: none */
	int64_t unwritten_until_ms;
	TAILQ_HEAD(, errand) writing; /* their results are on their way */
};

/* A task under way. */
struct errand {
	TAILQ_ENTRY(errand) link; /* while its result is being written */
	struct fetch_work *work;
	struct job *job; /* NULL: given up while its result is being written */
	struct task task;
	struct carry *carry;
	enum outcome outcome; /* how the claim is settled */
	enum outcome final;   /* what the task has come to, as far as this worker knows */
	int64_t delay_ms;
	bool is_writing, has_member;
	char reason[REASON_SIZE];
	char member[MEMBER_SIZE];
};

static void errand_free(struct errand *errand)
{
	task_fini(&errand->task);
	free(errand);
}

/* The only end of an errand that was not given up. */
static void settle(struct errand *errand, enum outcome outcome)
{
	tally_add(errand->work->config.shift.tally,
		  outcome == errand->outcome ? errand->final : outcome,
		  errand->has_member ? errand->member : NULL);
	job_done(errand->job, outcome, errand->delay_ms,
		 outcome == OUTCOME_RETRY || outcome == OUTCOME_DEAD ? errand->reason : NULL);
	errand_free(errand);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The task is done once more, later: nobody would know that it was. */
static void not_written(struct errand *errand, int result)
{
	struct fetch_work *work = errand->work;
	const int64_t pause = work->unwritten_ms ? 2 * work->unwritten_ms : UNWRITTEN_FIRST_MS;

	/* Once for all that end together. */
	if (clock_ms() >= work->unwritten_until_ms) {
		work->unwritten_ms = pause < UNWRITTEN_MAX_MS ? pause : UNWRITTEN_MAX_MS;
		work->unwritten_until_ms = clock_ms() + work->unwritten_ms;
		log_error("results cannot be written: their tasks go back, the worker waits",
			  LOG_TEXT("reason", result_word(result)),
			  LOG_NUMBER("again_ms", work->unwritten_ms));
		crew_pause(work->shift.crew, work->unwritten_until_ms);
	}
	settle(errand, OUTCOME_RELEASE);
}

static void on_written(int result, void *arg)
{
	struct errand *errand = arg;
	struct fetch_work *work = errand->work;

	TAILQ_REMOVE(&work->writing, errand, link);
	errand->is_writing = false;
	if (!errand->job) {
		errand_free(errand);
		return;
	}
	if (result) {
		not_written(errand, result);
		return;
	}
	work->unwritten_ms = 0;
	settle(errand, errand->outcome);
}

static const char *level_of(const struct errand *errand)
{
	return queue_keys(errand->work->config.shift.queue)->levels[errand->job->claim->level].name;
}

static void write_result(struct errand *errand, const struct task *task,
			 const struct carried *carried)
{
	struct fetch_work *work = errand->work;
	int r = results_add(work->config.results, errand->job->claim, level_of(errand), task,
			    carried, errand->final, on_written, errand);

	if (r) {
		not_written(errand, r);
		return;
	}
	errand->is_writing = true;
	TAILQ_INSERT_TAIL(&work->writing, errand, link);
}

/* --- what came of it ---------------------------------------------------------------------------------------------- */

static void decide(struct errand *errand, const struct carried *carried)
{
	const int status = carried->answer ? carried->answer->status : 0;

	errand->outcome =
	    outcome_of(carried->reason, status, carried->retry_after_ms, &errand->delay_ms);
	errand->final = job_final(errand->job, errand->outcome);
}

static void note(struct errand *errand, const struct carried *carried)
{
	const int status = carried->answer ? carried->answer->status : 0;

	errand->has_member = carried->member != NULL;
	if (carried->member)
		snprintf(errand->member, sizeof errand->member, "%s", carried->member);
	if (carried->reason == REASON_OK)
		snprintf(errand->reason, sizeof errand->reason, "status %d", status);
	else
		snprintf(errand->reason, sizeof errand->reason, "%s%s%s",
			 result_word(carried->reason), *carried->detail ? ": " : "",
			 carried->detail);
}

/* It has waited for its turn; the pool has nothing to do with it. */
static bool is_of_host(int reason)
{
	return reason == REASON_HOST_LIMIT || reason == REASON_HOST_RATE;
}

static void conclude(struct errand *errand, const struct task *task, const struct carried *carried)
{
	struct fetch_work *work = errand->work;

	decide(errand, carried);
	note(errand, carried);
	if (errand->outcome == OUTCOME_RELEASE && !is_of_host(carried->reason))
		drought_note(&work->shift.drought, carried->reason);
	else if (carried->tries)
		drought_over(&work->shift.drought);
	log_debug("task", LOG_TEXT("task", errand->job->claim->id),
		  LOG_TEXT("url", task ? task->shown : ""), LOG_TEXT("member", errand->member),
		  LOG_NUMBER("tries", carried->tries),
		  LOG_TEXT("outcome", outcome_word(errand->final)),
		  LOG_TEXT("reason", errand->reason));
	if (errand->final == OUTCOME_DONE || errand->final == OUTCOME_DEAD)
		write_result(errand, task, carried);
	else
		settle(errand, errand->outcome);
}

static void on_carried(const struct carried *carried, void *arg)
{
	struct errand *errand = arg;

	KILL_POINT("work-answered");
	errand->carry = NULL;
	conclude(errand, &errand->task, carried);
}

/* --- the crew ----------------------------------------------------------------------------------------------------- */

static bool begin(struct job *job, void *arg)
{
	struct fetch_work *work = arg;
	struct errand *errand = calloc(1, sizeof *errand);
	char error[TASK_ERROR_MAX];
	int r;

	if (!errand)
		return false;
	*errand = (struct errand){.work = work, .job = job};
	job->work = errand;
	r = task_read(&errand->task, work->config.mode, job->claim->payload, job->claim->len,
		      error);
	if (r == REASON_TASK_INVALID) {
		const struct carried carried = {
		    .reason = r, .detail = error, .began_ms = clock_wall_ms()};

		conclude(errand, NULL, &carried);
		return true;
	}
	if (!r)
		r = carry_start(&errand->carry, &work->config.carry, &errand->task, on_carried,
				errand);
	if (r)
		errand_free(errand);
	return r == 0;
}

static void give_up(struct job *job, void *arg)
{
	struct errand *errand = job->work;

	(void)arg;
	errand->job = NULL;
	carry_cancel(errand->carry);
	errand->carry = NULL;
	/* Its callback is on its way. */
	if (!errand->is_writing)
		errand_free(errand);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int fetch_work_new(struct fetch_work **ret, const struct fetch_work_config *config)
{
	struct fetch_work *work = calloc(1, sizeof *work);
	int r;

	if (!work)
		return -ENOMEM;
	work->config = *config;
	TAILQ_INIT(&work->writing);
	r = shift_begin(&work->shift, &config->shift, begin, give_up, work);
	if (r) {
		fetch_work_end(work);
		fetch_work_free(work);
		return r;
	}
	*ret = work;
	return 0;
}

void fetch_work_stop(struct fetch_work *work)
{
	crew_stop(work->shift.crew);
}

void fetch_work_end(struct fetch_work *work)
{
	shift_end(&work->shift);
}

bool fetch_work_is_writing(const struct fetch_work *work)
{
	return !TAILQ_EMPTY(&work->writing);
}

void fetch_work_free(struct fetch_work *work)
{
	struct errand *errand;

	if (!work)
		return;
	/* They will not be answered any more. */
	while ((errand = TAILQ_FIRST(&work->writing))) {
		TAILQ_REMOVE(&work->writing, errand, link);
		errand_free(errand);
	}
	free(work);
}
