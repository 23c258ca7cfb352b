/* sweep.c - the janitor of a pool.
 *
 * Two alarms: one collects leases that have run out, one walks over pool and busy, a slice at a time with a pause
 * behind it. An idle pool, whose policy needs no leases and which has none, is looked at once a minute. */
#include "pool/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "pool/internal.h"

#define EXPIRE_MAX 256 /* of one call of lua/expire.lua */
#define EXPIRE_MAX_TEXT "256"
#define EXPIRE_LEAST_MS 1000
#define EXPIRE_MOST_MS 4000
#define IDLE_MS 60000
#define RETRY_MS 5000
#define WALK_MS 60000
#define SLICE ((size_t)128)
#define SLICE_TEXT "128"
#define SLICE_PAUSE_MS 50
#define FIRST_WALK_MS 1000
#define CURSOR_SIZE 24

/* What is walked: who may be missing in busy, then who may be wrong there. */
static const enum pool_key walked[] = {KEY_POOL, KEY_BUSY};
#define WALKED (sizeof walked / sizeof *walked)

struct sweep {
	struct pool *pool;
	struct alarm expire, walk;
	bool has_leases;  /* when they were looked at last */
	int64_t asked_ms; /* when that was */
	size_t set;       /* index in `walked` */
	char cursor[CURSOR_SIZE];
	int64_t begun_ms; /* this walk */
	size_t parts;     /* of the slice, that are not answered yet */
	bool has_failed;  /* one of them */
};

static bool is_needed(const struct sweep *sweep)
{
	return sweep->has_leases ||
	       !strcmp(pool_rules(sweep->pool)->value[RULE_POLICY], "least-concurrent");
}

/* --- leases that have run out ------------------------------------------------------------------------------------- */

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* From 1 to 5 s; a little later by chance, since there may be more than one janitor. */
static void expire_in(struct sweep *sweep, int64_t wait_ms)
{
	int64_t wait = within(wait_ms, EXPIRE_LEAST_MS, EXPIRE_MOST_MS);

	wait += arc4random_uniform((uint32_t)wait / 4 + 1);
	alarm_set(&sweep->expire, clock_ms() + wait);
}

static void on_expired(int result, const struct reply *reply, void *arg)
{
	const int64_t collected = reply_integer(reply_at(reply, 0), 0);
	const int64_t next_ms = reply_integer(reply_at(reply, 1), -1);
	const int64_t now_ms = reply_integer(reply_at(reply, 2), 0);
	struct sweep *sweep = arg;

	if (result) {
		expire_in(sweep, EXPIRE_MOST_MS);
		return;
	}
	if (collected)
		log_info("leases that have run out were collected",
			 LOG_TEXT("pool", pool_name(sweep->pool)), LOG_NUMBER("leases", collected));
	sweep->has_leases = next_ms >= 0;
	if (collected == EXPIRE_MAX)
		alarm_set(&sweep->expire, clock_ms());
	else
		expire_in(sweep, sweep->has_leases ? next_ms - now_ms : EXPIRE_MOST_MS);
}

static void expire(void *arg)
{
	struct sweep *sweep = arg;
	const struct pool_keys *keys = pool_keys(sweep->pool);
	const bool is_idle = !is_needed(sweep) && clock_ms() < sweep->asked_ms + IDLE_MS;

	if (is_idle || pool_is_newer(sweep->pool) ||
	    store_script(pool_store(sweep->pool), SCRIPT_EXPIRE, STORE_IDEMPOTENT,
			 (struct word[]){pool_key(keys, KEY_LIVE), pool_key(keys, KEY_BUSY),
					 pool_key(keys, KEY_LEASES), pool_key(keys, KEY_HOLDERS),
					 WORD(""), WORD(EXPIRE_MAX_TEXT)},
			 6, on_expired, sweep)) {
		expire_in(sweep, EXPIRE_MOST_MS);
		return;
	}
	sweep->asked_ms = clock_ms();
	KILL_POINT("sweep-queued");
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static void begin_walk(struct sweep *sweep)
{
	sweep->set = 0;
	snprintf(sweep->cursor, sizeof sweep->cursor, "0");
}

/* The slice is done: the next, or the next walk. What has failed is walked again. */
static void finish_slice(struct sweep *sweep)
{
	const int64_t now_ms = clock_ms();
	int64_t next_ms = now_ms + SLICE_PAUSE_MS;

	if (sweep->has_failed) {
		begin_walk(sweep);
		next_ms = now_ms + RETRY_MS;
	} else if (!strcmp(sweep->cursor, "0") && ++sweep->set == WALKED) {
		begin_walk(sweep);
		next_ms = within(sweep->begun_ms + WALK_MS, next_ms, now_ms + WALK_MS);
	}
	alarm_set(&sweep->walk, next_ms);
}

static void end_part(struct sweep *sweep, int result)
{
	sweep->has_failed = sweep->has_failed || result;
	if (--sweep->parts == 0)
		finish_slice(sweep);
}

static void on_mended(int result, const struct reply *reply, void *arg)
{
	(void)reply;
	end_part(arg, result);
}

/* The members from `first` on, as ZSCAN has named them: each with its score. */
static void mend_part(struct sweep *sweep, const struct reply *items, size_t first, size_t count)
{
	const struct pool_keys *keys = pool_keys(sweep->pool);
	struct word words[3 + SLICE] = {pool_key(keys, KEY_POOL), pool_key(keys, KEY_LIVE),
					pool_key(keys, KEY_BUSY)};
	size_t n = 0;

	for (; n < SLICE && first + n < count; n++) {
		struct word *word = &words[3 + n];

		word->at = reply_text(reply_at(items, 2 * (first + n)), &word->len);
	}
	sweep->parts++;
	if (store_script(pool_store(sweep->pool), SCRIPT_BUSY_MEND, STORE_IDEMPOTENT, words, 3 + n,
			 on_mended, sweep))
		end_part(sweep, REASON_STORE_NOT_DONE);
}

/* ZSCAN gives a small set whole, and of a large one a few more than asked for: several parts. The slice counts as
 * one, so that it does not end before they are all sent. */
static void on_slice(int result, const struct reply *reply, void *arg)
{
	const struct reply *items = reply_at(reply, 1);
	const size_t count = reply_count(items) / 2;
	struct sweep *sweep = arg;

	if (!result)
		snprintf(sweep->cursor, sizeof sweep->cursor, "%s",
			 reply_text(reply_at(reply, 0), NULL));
	for (size_t first = 0; !result && first < count; first += SLICE)
		mend_part(sweep, items, first, count);
	end_part(sweep, result);
}

static void walk(void *arg)
{
	struct sweep *sweep = arg;
	const struct pool_keys *keys = pool_keys(sweep->pool);
	const bool is_begin = sweep->set == 0 && !strcmp(sweep->cursor, "0");

	if (is_begin)
		sweep->begun_ms = clock_ms();
	if ((is_begin && !is_needed(sweep)) || pool_is_newer(sweep->pool) ||
	    store_command(pool_store(sweep->pool), STORE_IDEMPOTENT,
			  (struct word[]){WORD("ZSCAN"), pool_key(keys, walked[sweep->set]),
					  WORD(sweep->cursor), WORD("COUNT"), WORD(SLICE_TEXT)},
			  5, on_slice, sweep)) {
		alarm_set(&sweep->walk, clock_ms() + RETRY_MS);
		return;
	}
	sweep->has_failed = false;
	sweep->parts = 1;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int pool_sweep_new(struct sweep **ret, struct loop *loop, struct pool *pool)
{
	struct sweep *sweep = calloc(1, sizeof *sweep);

	if (!sweep)
		return -ENOMEM;
	/* The pool has not told its policy yet, and may have leases of before. */
	*sweep = (struct sweep){.pool = pool, .has_leases = true};
	begin_walk(sweep);
	alarm_init(&sweep->expire, loop, expire, sweep);
	alarm_init(&sweep->walk, loop, walk, sweep);
	expire_in(sweep, EXPIRE_LEAST_MS);
	alarm_set(&sweep->walk, clock_ms() + FIRST_WALK_MS);
	*ret = sweep;
	return 0;
}

void pool_sweep_free(struct sweep *sweep)
{
	if (!sweep)
		return;
	alarm_fini(&sweep->expire);
	alarm_fini(&sweep->walk);
	free(sweep);
}
