/* stage.c - what tests of the event loop stand on. */
#include "stage.h"

#include <event2/event.h>
#include <stdlib.h>
#include <time.h>

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

void stage_init(struct stage *stage)
{
	struct timeval millisecond = {.tv_usec = 1000};

	if (loop_new(&stage->loop))
		abort();
	event_assign(&stage->tick, loop_base(stage->loop), -1, EV_PERSIST, on_tick, NULL);
	event_add(&stage->tick, &millisecond);
}

void stage_turn(struct stage *stage)
{
	loop_turn(stage->loop);
}

void stage_fini(struct stage *stage)
{
	for (int i = 0; i < 3; i++)
		stage_turn(stage);
	event_del(&stage->tick);
	loop_free(stage->loop);
}

int64_t stage_real_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
