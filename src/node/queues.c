/* queues.c - the queue that the settings name: opened, and kept in order by a keeper. */
#include "node/queues.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/metric.h"
#include "queue/sweep.h"
#include "queue/view.h"

#define LOOK_MS 2000
#define TELL_MS 10000
#define LEVELS_TEXT_MAX ((size_t)1 << 16)

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* Names of levels, cut out of the elements of --levels or --lists; one more than there may be, so that too many are told. */
struct levels {
	struct buffer text;
	const char *names[QUEUE_LEVELS_MAX + 1];
	size_t count;
	bool are_lists;
};

/* An element of a flag may name several: --levels high,low. 0, -EMSGSIZE or -ENOMEM. */
static int levels_read(struct levels *levels, const struct conf *conf)
{
	const bool are_lists = conf_count(conf, CONF_LISTS) > 0 &&
			       conf_level(conf, CONF_LISTS) >= conf_level(conf, CONF_LEVELS);
	const enum conf_id id = are_lists ? CONF_LISTS : CONF_LEVELS;
	char *rest;
	int r = 0;

	*levels = (struct levels){.are_lists = are_lists};
	buffer_init(&levels->text, LEVELS_TEXT_MAX);
	for (size_t i = 0; i < conf_count(conf, id) && !r; i++)
		r = buffer_printf(&levels->text, i ? ",%s" : "%s", conf_at(conf, id, i));
	if (!r)
		r = buffer_add(&levels->text, "", 1);
	if (r) {
		buffer_fini(&levels->text);
		return r;
	}
	rest = buffer_at(&levels->text);
	while (rest && levels->count <= QUEUE_LEVELS_MAX)
		levels->names[levels->count++] = strsep(&rest, ",");
	return 0;
}

int queues_check(const struct conf *conf, char *error, size_t size)
{
	struct queue_keys keys NOT_ZEROED;
	struct levels levels;
	int r = levels_read(&levels, conf);

	if (r) {
		snprintf(error, size, "the levels of the queue: %s", strerror(-r));
		return r;
	}
	r = queue_keys_init(&keys, conf_text(conf, CONF_QUEUE), levels.names, levels.count,
			    levels.are_lists, error, size);
	buffer_fini(&levels.text);
	return r;
}

int queues_open(struct queue **ret, struct loop *loop, struct store *store, const struct conf *conf,
		char *error, size_t size)
{
	struct levels levels;
	struct queue_config config = {
	    .name = conf_text(conf, CONF_QUEUE),
	    .lease_ms = conf_ms(conf, CONF_LEASE),
	    .failures_max = conf_int(conf, CONF_FAILURES_MAX),
	    .lost_max = conf_int(conf, CONF_LOST_MAX),
	    .dead_max = conf_int(conf, CONF_DEAD_MAX),
	    .backoff_ms = conf_ms(conf, CONF_BACKOFF),
	    .backoff_max_ms = conf_ms(conf, CONF_BACKOFF_LONGEST),
	    .aging = conf_int(conf, CONF_AGING),
	};
	int r = levels_read(&levels, conf);

	snprintf(error, size, "the levels of the queue: %s", strerror(ENOMEM));
	if (r)
		return r;
	config.levels = levels.names;
	config.level_count = levels.count;
	config.are_lists = levels.are_lists;
	r = queue_new(ret, loop, store, &config, error, size);
	buffer_fini(&levels.text);
	return r;
}

/* --- care --------------------------------------------------------------------------------------------------------- */

struct queue_care {
	struct loop *loop;
	struct queue *queue;
	struct queue_sweep *sweep; /* NULL: nothing was ever seen in the queue */
	struct alarm alarm;
};

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	int64_t ready = 0, stall_ms = 0;

	(void)error; /* the sweep tells it */
	(void)arg;
	if (result)
		return;
	for (size_t i = 0; i < view->level_count; i++) {
		ready += view->levels[i].ready + view->levels[i].returned;
		if (view->levels[i].stall_ms > stall_ms)
			stall_ms = view->levels[i].stall_ms;
	}
	metric_set(METRIC_QUEUE_READY, ready);
	metric_set(METRIC_QUEUE_LATER, view->later);
	metric_set(METRIC_QUEUE_IN_FLIGHT, view->in_flight);
	metric_set(METRIC_QUEUE_DEAD, view->dead);
	metric_set(METRIC_QUEUE_STALL, stall_ms);
}

static void on_seen(int result, const struct reply *reply, void *arg)
{
	struct queue_care *care = arg;

	if (!result && reply_integer(reply, 0) > 0 && !care->sweep &&
	    !queue_sweep_new(&care->sweep, care->loop, care->queue))
		alarm_set(&care->alarm, clock_ms());
}

/* A node without a queue is not to write the statistics of one. */
static int look(struct queue_care *care)
{
	const struct queue_keys *keys = queue_keys(care->queue);
	struct word words[3 + QUEUE_LEVELS_MAX] = {WORD("EXISTS"), queue_key(keys, QUEUE_STATS)};

	for (size_t i = 0; i < keys->level_count; i++)
		words[2 + i] = WORD(keys->levels[i].list);
	return store_command(queue_store(care->queue), STORE_IDEMPOTENT, words,
			     2 + keys->level_count, on_seen, care);
}

/* What the store does not take is asked again when the alarm rings next. */
static void on_alarm(void *arg)
{
	struct queue_care *care = arg;
	int r = care->sweep ? queue_view(care->queue, on_view, care) : look(care);

	alarm_set(&care->alarm, clock_ms() + (care->sweep && !r ? TELL_MS : LOOK_MS));
}

int queue_care_new(struct queue_care **ret, struct loop *loop, struct store *store,
		   const struct conf *conf, char *error, size_t size)
{
	struct queue_care *care = calloc(1, sizeof *care);
	int r;

	if (!care) {
		snprintf(error, size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	r = queues_open(&care->queue, loop, store, conf, error, size);
	if (r) {
		free(care);
		return r;
	}
	care->loop = loop;
	alarm_init(&care->alarm, loop, on_alarm, care);
	alarm_set(&care->alarm, clock_ms());
	*ret = care;
	return 0;
}

void queue_care_free(struct queue_care *care)
{
	if (!care)
		return;
	alarm_fini(&care->alarm);
	queue_sweep_free(care->sweep);
	queue_free(care->queue);
	free(care);
}
