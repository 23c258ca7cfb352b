/* sweep.c - the janitor of a queue. */
#include "queue/sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "queue/internal.h"

#define PERIOD_MS 1000

struct queue_sweep {
	struct queue *queue;
	struct alarm alarm;
	bool is_told; /* that the store refuses, since it last did not */
};

static void tell(struct queue_sweep *sweep, int result, const char *error)
{
	if (result != REASON_STORE_REFUSED || sweep->is_told)
		return;
	sweep->is_told = true;
	log_error("the queue cannot be swept", LOG_TEXT("queue", sweep->queue->keys.name),
		  LOG_TEXT("error", error));
}

/* When to look again: at once while a call was full, else when something is due, but at least once a period, since
 * anybody may have added what is due sooner. */
static int64_t pause_ms(const struct reply *reply)
{
	const int64_t next = claim_next_due(reply);

	if (claim_was_full(reply))
		return 0;
	return next >= 0 && next < PERIOD_MS ? next + 1 : PERIOD_MS;
}

static void on_swept(int result, const struct reply *reply, void *arg)
{
	struct queue_sweep *sweep = arg;

	if (result == -ECANCELED)
		return;
	if (result)
		tell(sweep, result, reply_text(reply, NULL));
	else
		sweep->is_told = false;
	alarm_set(&sweep->alarm, clock_ms() + (result ? PERIOD_MS : pause_ms(reply)));
}

static void on_alarm(void *arg)
{
	struct queue_sweep *sweep = arg;

	if (claim_sweep(sweep->queue, on_swept, sweep))
		alarm_set(&sweep->alarm, clock_ms() + PERIOD_MS);
	else
		KILL_POINT("queue-sweep-queued");
}

int queue_sweep_new(struct queue_sweep **ret, struct loop *loop, struct queue *queue)
{
	struct queue_sweep *sweep = calloc(1, sizeof *sweep);

	if (!sweep)
		return -ENOMEM;
	sweep->queue = queue;
	alarm_init(&sweep->alarm, loop, on_alarm, sweep);
	alarm_set(&sweep->alarm, clock_ms());
	*ret = sweep;
	return 0;
}

void queue_sweep_free(struct queue_sweep *sweep)
{
	if (!sweep)
		return;
	alarm_fini(&sweep->alarm);
	free(sweep);
}
