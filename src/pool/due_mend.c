/* due_mend.c - the walk over a pool that keeps its list of checks right, a slice a call. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pool/change.h"
#include "pool/due.h"
#include "pool/internal.h"

#define SLICE ((size_t)128)
#define SLICE_TEXT "128"
#define DROP_MS "86400000" /* a day behind its expiry a member is removed */
#define NUMBER_SIZE 24

/* Of lua/due_mend.lua. */
enum { CODE_EXPIRED = 2, CODE_DROPPED = 3 };

/* What is walked: everybody who may need a check, then everybody who has one. */
static const enum pool_key walked[] = {KEY_POOL, KEY_PARKED, KEY_DUE};
#define WALKED (sizeof walked / sizeof *walked)

struct mending {
	struct pool *pool;
	size_t set; /* index in `walked` */
	char cursor[NUMBER_SIZE];
	/* A slice under way. ZSCAN gives a small set whole, so that its members come in several parts. */
	bool is_busy;
	due_mend_cb *cb;
	void *arg;
	int64_t spread_ms;
	size_t count, next; /* texts[next..count) are still to be looked at */
	char **texts;
	size_t *lens;
	size_t part; /* how many of them are with the store, and what it said of them */
	int64_t codes[SLICE];
	size_t step; /* index in `steps` */
};

/* What becomes of those that have expired. */
static const struct {
	int64_t code;
	enum change change;
	const char *message;
} steps[] = {
    {CODE_EXPIRED, CHANGE_PLACE, "parked members that have expired"},
    {CODE_DROPPED, CHANGE_REMOVE, "removed members that expired a day ago"},
};
#define STEPS (sizeof steps / sizeof *steps)

static void forget_texts(struct mending *mending)
{
	for (size_t i = 0; i < mending->count; i++)
		free(mending->texts[i]);
	free(mending->texts);
	free(mending->lens);
	mending->texts = NULL;
	mending->lens = NULL;
	mending->count = mending->next = 0;
}

void mending_free(struct mending *mending)
{
	if (!mending)
		return;
	forget_texts(mending);
	free(mending);
}

static void finish(struct mending *mending, int result)
{
	bool is_complete = false;

	forget_texts(mending);
	mending->is_busy = false;
	if (!result && !strcmp(mending->cursor, "0")) {
		mending->set = (mending->set + 1) % WALKED;
		is_complete = mending->set == 0;
	}
	mending->cb(result, is_complete, mending->arg);
}

static void next_part(struct mending *mending);
static void next_step(struct mending *mending);

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct mending *mending = arg;

	(void)error;
	(void)placed;
	if (result) {
		finish(mending, result);
		return;
	}
	log_info(steps[mending->step].message, LOG_TEXT("pool", pool_name(mending->pool)),
		 LOG_NUMBER("members", (int64_t)count));
	mending->step++;
	next_step(mending);
}

static void next_step(struct mending *mending)
{
	struct change_item items[SLICE];
	size_t count = 0;
	int r;

	for (; mending->step < STEPS && !count; mending->step += !count)
		for (size_t i = 0; i < mending->part; i++)
			if (mending->codes[i] == steps[mending->step].code)
				items[count++] =
				    (struct change_item){.id = mending->texts[mending->next + i]};
	if (!count) {
		mending->next += mending->part;
		next_part(mending);
		return;
	}
	r = pool_change(mending->pool, steps[mending->step].change, NULL, items, count, on_changed,
			mending);
	if (r)
		finish(mending, r == -EPERM ? REASON_STORE_NEWER : REASON_STORE_NOT_DONE);
}

static void on_mended(int result, const struct reply *reply, void *arg)
{
	struct mending *mending = arg;

	if (result) {
		finish(mending, result);
		return;
	}
	for (size_t i = 0; i < mending->part; i++)
		mending->codes[i] = reply_integer(reply_at(reply, i), 0);
	mending->step = 0;
	next_step(mending);
}

/* FNV-1a: all nodes give a member the same place within the spread. */
static uint32_t hash_of(const char *text, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static void next_part(struct mending *mending)
{
	struct word words[6 + 2 * SLICE] = {pool_key(&mending->pool->keys, KEY_POOL),
					    pool_key(&mending->pool->keys, KEY_PARKED),
					    pool_key(&mending->pool->keys, KEY_ADMIN),
					    pool_key(&mending->pool->keys, KEY_DUE),
					    WORD(""),
					    WORD(DROP_MS)};
	char delays[SLICE][NUMBER_SIZE];
	size_t left = mending->count - mending->next;

	mending->part = left < SLICE ? left : SLICE;
	for (size_t i = 0; i < mending->part; i++) {
		const char *text = mending->texts[mending->next + i];
		size_t len = mending->lens[mending->next + i];
		uint64_t place = hash_of(text, len);

		snprintf(delays[i], NUMBER_SIZE, "%" PRIu64,
			 place * (uint64_t)mending->spread_ms >> 32);
		words[6 + 2 * i] = (struct word){text, len};
		words[7 + 2 * i] = WORD(delays[i]);
	}
	if (!mending->part)
		finish(mending, 0);
	else if (store_script(mending->pool->store, SCRIPT_DUE_MEND, STORE_IDEMPOTENT, words,
			      6 + 2 * mending->part, on_mended, mending))
		finish(mending, REASON_STORE_NOT_DONE);
}

/* 0 or -ENOMEM. */
static int keep_slice(struct mending *mending, const struct reply *items)
{
	size_t count = reply_count(items) / 2;

	if (!count)
		return 0;
	mending->texts = calloc(count, sizeof *mending->texts);
	mending->lens = calloc(count, sizeof *mending->lens);
	if (!mending->texts || !mending->lens)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t len;
		const char *text = reply_text(reply_at(items, 2 * i), &len);
		char *copy = malloc(len + 1);

		if (!copy)
			return -ENOMEM;
		memcpy(copy, text, len + 1);
		mending->texts[mending->count] = copy;
		mending->lens[mending->count++] = len;
	}
	return 0;
}

static void on_slice(int result, const struct reply *reply, void *arg)
{
	struct mending *mending = arg;

	if (!result) {
		snprintf(mending->cursor, sizeof mending->cursor, "%s",
			 reply_text(reply_at(reply, 0), NULL));
		if (keep_slice(mending, reply_at(reply, 1)))
			result = REASON_INTERNAL;
	}
	if (result)
		finish(mending, result);
	else
		next_part(mending);
}

int pool_due_mend(struct pool *pool, int64_t spread_ms, due_mend_cb *cb, void *arg)
{
	struct mending *mending = pool->mending;
	int r;

	if (pool_is_newer(pool))
		return -EPERM;
	if (spread_ms < 0 || spread_ms > UINT32_MAX || (mending && mending->is_busy))
		return -EINVAL;
	if (!mending) {
		pool->mending = mending = calloc(1, sizeof *mending);
		if (!mending)
			return -ENOMEM;
		*mending = (struct mending){.pool = pool, .cursor = "0"};
	}
	mending->cb = cb;
	mending->arg = arg;
	mending->spread_ms = spread_ms;
	r = store_command(pool->store, STORE_IDEMPOTENT,
			  (struct word[]){WORD("ZSCAN"),
					  pool_key(&pool->keys, walked[mending->set]),
					  WORD(mending->cursor), WORD("COUNT"), WORD(SLICE_TEXT)},
			  5, on_slice, mending);
	mending->is_busy = !r;
	return r;
}
