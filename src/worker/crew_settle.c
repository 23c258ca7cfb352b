/* crew_settle.c - how the claims of a crew end: one call for all that ended in a turn, repeated while the store is away. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "worker/crew_parts.h"

#define AGAIN_MS 500

static const char *const words[] = {
    [SETTLE_ACK] = "done",
    [SETTLE_NACK] = "failed",
    [SETTLE_DEAD] = "dead",
    [SETTLE_RELEASE] = "given back",
};

void crew_leave(struct place *place)
{
	struct crew *crew = place->job.crew;

	TAILQ_REMOVE(&crew->jobs, &place->job, link);
	TAILQ_INSERT_TAIL(&crew->ended, &place->job, link);
	crew->in_flight--;
	place->is_ended = true;
	loop_again(crew->config.loop);
}

void crew_bury(struct place *place)
{
	struct crew *crew = place->job.crew;

	if (place->answers || (place->is_due && crew))
		return;
	if (crew) {
		TAILQ_REMOVE(&crew->ended, &place->job, link);
		loop_again(crew->config.loop);
	}
	free(place->job.claim);
	free(place->reason);
	free(place);
}

/* Whoever holds the token may settle until somebody has collected the claim, however long the store was away. */
static void again(struct place *place)
{
	struct crew *crew = place->job.crew;

	if (!crew || crew->is_grace_over)
		return;
	place->is_due = true;
	alarm_set(&crew->settle, clock_ms() + AGAIN_MS);
}

static void tell(const struct place *place, int result, const char *error)
{
	const char *task = place->job.claim->id;

	if (result == REASON_CLAIM_STALE)
		log_warn("refused, because it came too late: the claim of the task was lost, and "
			 "another has it, or had it",
			 LOG_TEXT("task", task), LOG_TEXT("settled", words[place->verb]));
	else if (result == REASON_CLAIM_DEAD && place->verb == SETTLE_NACK)
		log_warn("a task has failed too often and is a dead letter", LOG_TEXT("task", task),
			 LOG_TEXT("reason", place->reason ? place->reason : ""));
	else if (result > 0 && result != REASON_CLAIM_DEAD)
		log_error("a task could not be settled and comes again when its lease has ended",
			  LOG_TEXT("task", task), LOG_TEXT("settled", words[place->verb]),
			  LOG_TEXT("reason", result_word(result)), LOG_TEXT("error", error));
}

static void on_settled(int result, const char *error, void *arg)
{
	struct place *place = arg;

	place->answers--;
	if (result == REASON_STORE_NOT_DONE || result == REASON_STORE_UNKNOWN)
		again(place);
	if (!place->is_due)
		tell(place, result, error);
	crew_bury(place);
}

static void ask(struct place *place)
{
	const struct job *job = &place->job;
	const struct settlement settlement = {
	    .verb = place->verb,
	    .id = job->claim->id,
	    .token = job->claim->token,
	    .ms = place->verb == SETTLE_NACK ? place->delay_ms : 0,
	    .failures = job->claim->failures,
	    .reason = place->reason,
	};

	place->is_due = false;
	if (!queue_settle(job->crew->config.queue, &settlement, on_settled, place))
		place->answers++;
	else
		again(place);
}

void crew_settle(struct place *place, enum settle_verb verb)
{
	place->verb = verb;
	crew_leave(place);
	ask(place);
	crew_bury(place);
}

void crew_settle_due(void *arg)
{
	struct crew *crew = arg;
	struct job *job, *next;

	for (job = TAILQ_FIRST(&crew->ended); job; job = next) {
		struct place *place = place_of(job);

		next = TAILQ_NEXT(job, link);
		if (!place->is_due)
			continue;
		ask(place);
		crew_bury(place);
	}
}

enum outcome job_final(const struct job *job, enum outcome outcome)
{
	const int64_t failures_max = queue_config(job->crew->config.queue)->failures_max;
	const bool is_last = failures_max > 0 && job->claim->failures + 1 >= failures_max;

	return outcome == OUTCOME_RETRY && is_last ? OUTCOME_DEAD : outcome;
}

void job_done(struct job *job, enum outcome outcome, int64_t delay_ms, const char *reason)
{
	static const enum settle_verb verbs[] = {
	    [OUTCOME_DONE] = SETTLE_ACK,
	    [OUTCOME_RETRY] = SETTLE_NACK,
	    [OUTCOME_RELEASE] = SETTLE_RELEASE,
	    [OUTCOME_DEAD] = SETTLE_DEAD,
	};
	struct place *place = place_of(job);

	KILL_POINT("work-result-written");
	place->delay_ms = delay_ms > 0 ? delay_ms : -1;
	/* A dead letter without its reason is better than none. */
	if (reason && *reason)
		place->reason = strdup(reason);
	crew_settle(place, verbs[outcome]);
}
