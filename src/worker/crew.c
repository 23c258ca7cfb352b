/* crew.c - a worker's main loop: claims as many tasks as there are free places, and ends when it is told to or all is done.
 *
 * One wait stands for all free places; it is made anew, at the end of a turn, when their number has changed. */
#include "worker/crew.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "worker/crew_parts.h"

#define REFUSED_FIRST_MS 250
#define REFUSED_MAX_MS 5000
#define NO_MEMORY_MS 1000

/* --- claiming ----------------------------------------------------------------------------------------------------- */

static void give_back(struct crew *crew, struct claim *claim)
{
	const struct settlement release = {
	    .verb = SETTLE_RELEASE, .id = claim->id, .token = claim->token};

	/* If not even that can be asked for, it comes back when its lease has ended. */
	(void)!queue_settle(crew->config.queue, &release, NULL, NULL);
	free(claim);
	crew_pause(crew, clock_ms() + NO_MEMORY_MS);
}

static void begin(struct crew *crew, struct claim *claim)
{
	struct place *place = calloc(1, sizeof *place);

	if (!place) {
		give_back(crew, claim);
		return;
	}
	place->job = (struct job){.crew = crew, .claim = claim};
	crew->in_flight++;
	crew_keep(crew, &place->job);
	if (crew->config.begin(&place->job, crew->config.arg))
		return;
	crew_settle(place, SETTLE_RELEASE);
	crew_pause(crew, clock_ms() + NO_MEMORY_MS);
}

/* The queue does not let us: the keys are of another type, the user may not ... */
static void refused(struct crew *crew, int result, const char *error)
{
	const int64_t pause = crew->refused_ms ? 2 * crew->refused_ms : REFUSED_FIRST_MS;

	crew->refused_ms = pause < REFUSED_MAX_MS ? pause : REFUSED_MAX_MS;
	log_error("no task can be claimed", LOG_TEXT("reason", result_word(result)),
		  LOG_TEXT("error", error), LOG_NUMBER("again_ms", crew->refused_ms));
	crew_pause(crew, clock_ms() + crew->refused_ms);
}

static void on_claimed(int result, const char *error, struct claim **claims, size_t count,
		       int64_t next_due_ms, void *arg)
{
	struct crew *crew = arg;

	(void)next_due_ms;
	if (result) {
		refused(crew, result, error);
		return;
	}
	KILL_POINT("work-claimed");
	crew->refused_ms = 0;
	crew->empty_looks = 0;
	for (size_t i = 0; i < count; i++)
		begin(crew, claims[i]);
}

static size_t wanted(const struct crew *crew)
{
	const size_t concurrency = crew->config.concurrency;
	const size_t free_places =
	    concurrency > crew->in_flight ? concurrency - crew->in_flight : 0;

	if (crew->is_stopping || clock_ms() < crew->paused_until_ms)
		return 0;
	return free_places < CLAIM_MAX ? free_places : CLAIM_MAX;
}

static void wait_for_tasks(struct crew *crew)
{
	const size_t count = wanted(crew);

	if (crew->wait.waits && crew->wait.count == count)
		return;
	wait_cancel(&crew->wait);
	if (count)
		wait_begin(crew->config.waits, &crew->wait, count, on_claimed, crew);
}

/* A turn ends, and that is all. */
static void on_pause_over(void *arg)
{
	(void)arg;
}

void crew_pause(struct crew *crew, int64_t until_ms)
{
	if (until_ms <= crew->paused_until_ms)
		return;
	crew->paused_until_ms = until_ms;
	wait_cancel(&crew->wait);
	alarm_set(&crew->pause, until_ms);
}

void crew_resume(struct crew *crew)
{
	crew->paused_until_ms = 0;
	loop_again(crew->config.loop);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void end_if_done(struct crew *crew)
{
	const bool may_end = crew->is_stopping || crew_is_drained(crew);

	if (crew->is_over || !may_end || crew->in_flight || !TAILQ_EMPTY(&crew->ended))
		return;
	crew->is_over = true;
	crew->is_stopping = true;
	wait_cancel(&crew->wait);
	crew->config.ended(crew->config.ended_arg);
}

static void on_turn_end(void *arg)
{
	struct crew *crew = arg;

	wait_for_tasks(crew);
	end_if_done(crew);
}

static void give_up_all(struct crew *crew)
{
	struct job *job;

	while ((job = TAILQ_FIRST(&crew->jobs))) {
		crew->config.give_up(job, crew->config.arg);
		crew_settle(place_of(job), SETTLE_RELEASE);
	}
}

/* What the store could not be told until now will be known when the leases have ended. */
static void on_grace_over(void *arg)
{
	struct crew *crew = arg;

	crew->is_grace_over = true;
	if (crew->in_flight)
		log_info("tasks in progress are given back",
			 LOG_NUMBER("tasks", (int64_t)crew->in_flight));
	give_up_all(crew);
	crew_settle_due(crew);
}

void crew_stop(struct crew *crew)
{
	if (crew->is_stopping)
		return;
	crew->is_stopping = true;
	wait_cancel(&crew->wait);
	crew_look_end(crew);
	alarm_set(&crew->grace, clock_ms() + crew->config.grace_ms);
	loop_again(crew->config.loop);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

size_t crew_in_flight(const struct crew *crew)
{
	return crew->in_flight;
}

int crew_new(struct crew **ret, const struct crew_config *config)
{
	struct crew *crew = calloc(1, sizeof *crew);

	if (!crew)
		return -ENOMEM;
	crew->config = *config;
	TAILQ_INIT(&crew->jobs);
	TAILQ_INIT(&crew->ended);
	alarm_init(&crew->pause, config->loop, on_pause_over, crew);
	alarm_init(&crew->keep, config->loop, crew_keep_due, crew);
	alarm_init(&crew->settle, config->loop, crew_settle_due, crew);
	alarm_init(&crew->look, config->loop, crew_look_due, crew);
	alarm_init(&crew->grace, config->loop, on_grace_over, crew);
	crew->hook = (struct turn_hook){.run = on_turn_end, .arg = crew};
	loop_hook(config->loop, &crew->hook);
	if (config->is_draining_queue)
		alarm_set(&crew->look, clock_ms());
	*ret = crew;
	return 0;
}

void crew_free(struct crew *crew)
{
	struct job *job;

	if (!crew)
		return;
	wait_cancel(&crew->wait);
	give_up_all(crew);
	while ((job = TAILQ_FIRST(&crew->ended))) {
		TAILQ_REMOVE(&crew->ended, job, link);
		job->crew = NULL;
		crew_bury(place_of(job));
	}
	crew_look_end(crew);
	loop_unhook(crew->config.loop, &crew->hook);
	alarm_fini(&crew->pause);
	alarm_fini(&crew->keep);
	alarm_fini(&crew->settle);
	alarm_fini(&crew->look);
	alarm_fini(&crew->grace);
	free(crew);
}
