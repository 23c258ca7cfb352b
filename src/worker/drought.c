/* drought.c - what a worker does while its pool has nothing to give. */
#include "worker/drought.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS 5000
/* So many tasks in a row must meet nothing but members that cannot be reached: in a pool that is half dead some do. */
#define MISSES_MIN 4
/* The crew waits until it is told, but not for ever. */
#define HOLD_MS 60000

/* One question under way. */
struct drought_look {
	struct drought *drought; /* NULL: gone meanwhile */
};

static void wait_on(struct drought *drought)
{
	const int64_t pause = drought->pause_ms ? 2 * drought->pause_ms : PAUSE_FIRST_MS;

	drought->pause_ms = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
	drought->is_pausing = true;
	crew_pause(drought->crew, clock_ms() + HOLD_MS);
	alarm_set(&drought->alarm, clock_ms() + drought->pause_ms);
}

static void on_eligible(int result, const struct reply *reply, void *arg)
{
	struct drought_look *look = arg;
	struct drought *drought = look->drought;

	free(look);
	if (!drought)
		return;
	drought->looking = NULL;
	drought->eligible = result ? -1 : reply_integer(reply, -1);
	if (drought->eligible <= 0) {
		wait_on(drought);
		return;
	}
	drought->is_pausing = false;
	crew_resume(drought->crew);
}

static int ask(struct drought *drought)
{
	struct word words[] = {WORD("ZCARD"), pool_key(pool_keys(drought->pool), KEY_POOL)};
	struct drought_look *look = malloc(sizeof *look);

	if (!look)
		return -1;
	look->drought = drought;
	if (store_command(pool_store(drought->pool), STORE_IDEMPOTENT, words, 2, on_eligible,
			  look)) {
		free(look);
		return -1;
	}
	drought->looking = look;
	return 0;
}

static void on_alarm(void *arg)
{
	struct drought *drought = arg;

	if (ask(drought))
		wait_on(drought);
}

static bool is_of_proxies(int reason)
{
	return reason_row(reason)->fault == FAULT_PROXY;
}

static void say(struct drought *drought, int reason)
{
	log_warn(
	    is_of_proxies(reason)
		? "no member of the pool can be reached: tasks stay in the queue, the worker waits"
		: "no member of the pool can be had: no request is made, tasks stay in the queue, "
		  "the worker waits",
	    LOG_TEXT("pool", pool_name(drought->pool)), LOG_TEXT("reason", result_word(reason)));
	drought->is_said = true;
}

void drought_note(struct drought *drought, int reason)
{
	if (reason == REASON_POOL_EMPTY)
		drought->eligible = 0;
	if (is_of_proxies(reason) && ++drought->misses < MISSES_MIN)
		return;
	if (!drought->is_said)
		say(drought, reason);
	/* What was under way when it began ends the same way. */
	if (!drought->is_pausing)
		wait_on(drought);
}

void drought_over(struct drought *drought)
{
	drought->misses = 0;
	drought->pause_ms = 0;
	if (drought->is_said)
		log_info("members of the pool can be used again",
			 LOG_TEXT("pool", pool_name(drought->pool)));
	drought->is_said = false;
	drought->eligible = -1;
	if (!drought->is_pausing)
		return;
	drought->is_pausing = false;
	alarm_off(&drought->alarm);
	crew_resume(drought->crew);
}

void drought_init(struct drought *drought, struct loop *loop, struct pool *pool)
{
	*drought = (struct drought){.pool = pool, .eligible = -1};
	alarm_init(&drought->alarm, loop, on_alarm, drought);
}

void drought_fini(struct drought *drought)
{
	if (drought->looking)
		drought->looking->drought = NULL;
	drought->looking = NULL;
	alarm_fini(&drought->alarm);
}
