/* outlook.c - what the live line shows beside what has been done. */
#include "worker/outlook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "queue/view.h"

#define PERIOD_MS 1000

struct outlook {
	struct outlook_config config;
	struct alarm alarm;
	int64_t waiting, eligible; /* -1: not known */
	int answers;               /* awaited */
	bool is_over;
};

/* An answer has come. False when nobody wants it any more. */
static bool is_wanted(struct outlook *outlook)
{
	outlook->answers--;
	if (outlook->is_over && !outlook->answers)
		free(outlook);
	else if (!outlook->is_over)
		return true;
	return false;
}

static void show(const struct outlook *outlook)
{
	tally_state(outlook->config.tally, (int64_t)crew_in_flight(outlook->config.crew),
		    outlook->waiting, outlook->eligible);
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct outlook *outlook = arg;

	(void)error;
	if (!is_wanted(outlook))
		return;
	outlook->waiting = result ? -1 : view->later;
	for (size_t i = 0; i < view->level_count && !result; i++)
		outlook->waiting += view->levels[i].ready + view->levels[i].returned;
	show(outlook);
}

static void on_eligible(int result, const struct reply *reply, void *arg)
{
	struct outlook *outlook = arg;

	if (!is_wanted(outlook))
		return;
	outlook->eligible = result ? -1 : reply_integer(reply, -1);
	show(outlook);
}

static void on_alarm(void *arg)
{
	struct outlook *outlook = arg;
	const struct outlook_config *config = &outlook->config;
	struct word words[] = {WORD("ZCARD"), pool_key(pool_keys(config->pool), KEY_POOL)};

	alarm_set(&outlook->alarm, clock_ms() + PERIOD_MS);
	show(outlook);
	if (outlook->answers)
		return;
	outlook->answers += !queue_view(config->queue, on_view, outlook);
	outlook->answers += !store_command(pool_store(config->pool), STORE_IDEMPOTENT, words, 2,
					   on_eligible, outlook);
}

int outlook_new(struct outlook **ret, const struct outlook_config *config)
{
	struct outlook *outlook = calloc(1, sizeof *outlook);

	if (!outlook)
		return -ENOMEM;
	*outlook = (struct outlook){.config = *config, .waiting = -1, .eligible = -1};
	alarm_init(&outlook->alarm, config->loop, on_alarm, outlook);
	alarm_set(&outlook->alarm, clock_ms());
	*ret = outlook;
	return 0;
}

void outlook_free(struct outlook *outlook)
{
	if (!outlook)
		return;
	alarm_fini(&outlook->alarm);
	outlook->is_over = true;
	if (!outlook->answers)
		free(outlook);
}
