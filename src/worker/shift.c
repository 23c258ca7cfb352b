/* shift.c - what every worker has, whatever its tasks are. */
#include "worker/shift.h"

#include "worker/outlook.h"

static int make_outlook(struct shift *shift, const struct shift_config *config)
{
	const struct outlook_config outlook = {.loop = config->loop,
					       .crew = shift->crew,
					       .queue = config->queue,
					       .pool = config->pool,
					       .tally = config->tally};

	return config->is_live ? outlook_new(&shift->outlook, &outlook) : 0;
}

int shift_begin(struct shift *shift, const struct shift_config *config,
		bool (*begin)(struct job *job, void *arg),
		void (*give_up)(struct job *job, void *arg), void *arg)
{
	const struct crew_config crew = {.loop = config->loop,
					 .queue = config->queue,
					 .waits = config->waits,
					 .concurrency = config->concurrency,
					 .is_draining_queue = config->is_draining_queue,
					 .grace_ms = config->grace_ms,
					 .begin = begin,
					 .give_up = give_up,
					 .arg = arg,
					 .ended = config->ended,
					 .ended_arg = config->arg};
	int r;

	drought_init(&shift->drought, config->loop, config->pool);
	r = crew_new(&shift->crew, &crew);
	if (!r)
		r = make_outlook(shift, config);
	shift->drought.crew = shift->crew;
	return r;
}

void shift_end(struct shift *shift)
{
	outlook_free(shift->outlook);
	drought_fini(&shift->drought);
	crew_free(shift->crew);
	shift->outlook = NULL;
	shift->crew = NULL;
}
