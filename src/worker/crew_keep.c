/* crew_keep.c - the claims of jobs under way are extended at a third of their lease; one that was lost all the same
 * ends its job. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/crew_parts.h"

/* Two extensions may fail before a claim is lost. */
#define PARTS 3

static int64_t keep_ms(const struct crew *crew)
{
	return queue_config(crew->config.queue)->lease_ms / PARTS;
}

/* Another has the task, or had it: whatever comes of this job now is of no use. */
static void lose(struct place *place)
{
	struct job *job = &place->job;
	struct crew *crew = job->crew;

	job->is_lost = true;
	log_warn("the claim of a task was lost: another has it now, and this attempt is given up",
		 LOG_TEXT("task", job->claim->id));
	crew->config.give_up(job, crew->config.arg);
	crew_leave(place);
	crew_bury(place);
}

static void on_kept(int result, const char *error, void *arg)
{
	struct place *place = arg;

	(void)error;
	place->answers--;
	/* What the store did not take is asked again in a third of a lease; it tells about itself. */
	if (place->is_ended)
		crew_bury(place);
	else if (result == REASON_CLAIM_STALE)
		lose(place);
}

static void extend(struct crew *crew, struct job *job)
{
	const struct settlement settlement = {
	    .verb = SETTLE_EXTEND, .id = job->claim->id, .token = job->claim->token};

	TAILQ_REMOVE(&crew->jobs, job, link);
	TAILQ_INSERT_TAIL(&crew->jobs, job, link);
	job->kept_ms = clock_ms();
	if (!queue_settle(crew->config.queue, &settlement, on_kept, job))
		place_of(job)->answers++;
}

void crew_keep_due(void *arg)
{
	struct crew *crew = arg;
	const int64_t due_ms = clock_ms() - keep_ms(crew);
	struct job *job;

	while ((job = TAILQ_FIRST(&crew->jobs)) && job->kept_ms <= due_ms)
		extend(crew, job);
	if (job)
		alarm_set(&crew->keep, job->kept_ms + keep_ms(crew));
}

void crew_keep(struct crew *crew, struct job *job)
{
	/* The lease began when it was asked for. */
	job->kept_ms = job->claim->deadline_ms - queue_config(crew->config.queue)->lease_ms;
	if (TAILQ_EMPTY(&crew->jobs))
		alarm_set(&crew->keep, job->kept_ms + keep_ms(crew));
	TAILQ_INSERT_TAIL(&crew->jobs, job, link);
}
