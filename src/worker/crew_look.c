/* crew_look.c - whether nothing is left to do: nothing ready, returned, later or in flight, in other workers' hands
 * either. */
#include <stdlib.h>

#include "base/clock.h"
#include "queue/view.h"
#include "worker/crew_parts.h"

#define LOOK_MS 200
#define LOOKS_WANTED 2

/* One look under way. */
struct crew_look {
	struct crew *crew; /* NULL: gone meanwhile */
};

static bool is_empty(const struct queue_view *view)
{
	int64_t tasks = view->later + view->in_flight;

	for (size_t i = 0; i < view->level_count; i++)
		tasks += view->levels[i].ready + view->levels[i].returned;
	return tasks == 0;
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct crew_look *look = arg;
	struct crew *crew = look->crew;

	(void)error; /* the next look will tell, and claims that are refused do */
	free(look);
	if (!crew)
		return;
	crew->looking = NULL;
	crew->empty_looks =
	    !result && !crew->in_flight && is_empty(view) ? crew->empty_looks + 1 : 0;
	alarm_set(&crew->look, clock_ms() + (crew->empty_looks ? 0 : LOOK_MS));
}

/* Whoever has something to do himself need not ask. */
void crew_look_due(void *arg)
{
	struct crew *crew = arg;
	struct crew_look *look;

	if (crew->is_stopping || crew_is_drained(crew))
		return;
	alarm_set(&crew->look, clock_ms() + LOOK_MS);
	if (crew->looking || crew->in_flight || !TAILQ_EMPTY(&crew->ended))
		return;
	look = malloc(sizeof *look);
	if (!look)
		return;
	look->crew = crew;
	if (queue_view(crew->config.queue, on_view, look))
		free(look);
	else
		crew->looking = look;
}

void crew_look_end(struct crew *crew)
{
	if (crew->looking)
		crew->looking->crew = NULL;
	crew->looking = NULL;
	alarm_off(&crew->look);
}

bool crew_is_drained(const struct crew *crew)
{
	return crew->config.is_draining_queue && crew->empty_looks >= LOOKS_WANTED;
}
