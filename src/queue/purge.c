/* purge.c - drops the tasks of a queue that nobody has claimed, in portions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/entry.h"
#include "queue/internal.h"

/* Tasks in `later` are read to learn their level: few at a time, until their payloads have shown to be small. */
#define PORTION_FIRST ((size_t)3)
#define PORTION_MAX ((size_t)128)
#define SMALL_BYTES ((size_t)1 << 20)

struct purging {
	struct queue *queue;
	queue_moved_cb *cb;
	void *arg;
	const char *only; /* this level alone; NULL: all */
	int64_t dropped;
	size_t level;     /* that is being purged */
	int64_t in_list;  /* its tasks */
	int64_t position; /* in `later`: tasks of other levels stay */
	size_t portion;
	size_t id_count;
	char ids[PORTION_MAX][CLAIM_ID_MAX + 1];
};

static int purge_level(struct purging *purging);
static int purge_later(struct purging *purging);

static void finish(struct purging *purging, int result, const char *error)
{
	purging->cb(result, error, purging->dropped, purging->arg);
	free(purging);
}

/* True: the answer is a failure, and this was the end. */
static bool has_failed(struct purging *purging, int result, const struct reply *reply)
{
	if (!result)
		return false;
	finish(purging, result, reply_text(reply, NULL));
	return true;
}

static void go_on(struct purging *purging, int (*step)(struct purging *purging))
{
	if (step(purging))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static int ask(struct purging *purging, const struct word *words, size_t count, store_cb *cb)
{
	return store_command(purging->queue->store, STORE_IDEMPOTENT, words, count, cb, purging);
}

static void keep_id(struct purging *purging, const struct reply *id)
{
	snprintf(purging->ids[purging->id_count++], sizeof purging->ids[0], "%s",
		 reply_text(id, NULL));
}

/* `command` on `key` with all ids that are kept. */
static int ask_ids(struct purging *purging, const char *command, enum queue_key key, store_cb *cb)
{
	struct word words[2 + PORTION_MAX] = {WORD(command), queue_key(&purging->queue->keys, key)};

	for (size_t i = 0; i < purging->id_count; i++)
		words[2 + i] = WORD(purging->ids[i]);
	return ask(purging, words, 2 + purging->id_count, cb);
}

static const struct queue_level *level_of(const struct purging *purging)
{
	return &purging->queue->keys.levels[purging->level];
}

/* --- a level's list ----------------------------------------------------------------------------------------------- */

static void on_list_dropped(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (has_failed(purging, result, reply))
		return;
	purging->dropped += purging->in_list;
	purging->level++;
	go_on(purging, purge_level);
}

/* Redis drops it in the background. */
static void on_list_counted(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;
	const struct word words[] = {WORD("UNLINK"), WORD(level_of(purging)->list)};

	if (has_failed(purging, result, reply))
		return;
	purging->in_list = reply_integer(reply, 0);
	if (ask(purging, words, 2, on_list_dropped))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static int count_list(struct purging *purging)
{
	const struct word words[] = {WORD("LLEN"), WORD(level_of(purging)->list)};

	return ask(purging, words, 2, on_list_counted);
}

/* --- its retry list ----------------------------------------------------------------------------------------------- */

static void on_retry_removed(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (!has_failed(purging, result, reply))
		go_on(purging, purge_level);
}

/* By id, and not by place: others take from the list meanwhile. Only the last answer counts. */
static int remove_from_retry(struct purging *purging)
{
	int r = 0;

	for (size_t i = 0; i < purging->id_count && !r; i++) {
		const struct word words[] = {WORD("LREM"), WORD(level_of(purging)->retry),
					     WORD("-1"), WORD(purging->ids[i])};
		const bool is_last = i + 1 == purging->id_count;

		r = store_command(purging->queue->store, STORE_IDEMPOTENT, words, 4,
				  is_last ? on_retry_removed : NULL, is_last ? purging : NULL);
	}
	return r;
}

/* Whoever removes what is held has dropped the task: a claim that comes first makes it its own. */
static void on_retry_forgotten(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (has_failed(purging, result, reply))
		return;
	purging->dropped += reply_integer(reply, 0);
	go_on(purging, remove_from_retry);
}

static void on_retry_page(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (has_failed(purging, result, reply))
		return;
	purging->id_count = 0;
	for (size_t i = 0; i < reply_count(reply) && i < PORTION_MAX; i++)
		keep_id(purging, reply_at(reply, i));
	if (purging->id_count == 0)
		go_on(purging, count_list);
	else if (ask_ids(purging, "HDEL", QUEUE_HELD, on_retry_forgotten))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static int purge_level(struct purging *purging)
{
	const struct queue_keys *keys = &purging->queue->keys;

	while (purging->level < keys->level_count && purging->only &&
	       strcmp(purging->only, level_of(purging)->name) != 0)
		purging->level++;
	if (purging->level == keys->level_count)
		return purge_later(purging);
	return ask(purging,
		   (struct word[]){WORD("LRANGE"), WORD(level_of(purging)->retry), WORD("-128"),
				   WORD("-1")},
		   4, on_retry_page);
}

/* --- what is due later -------------------------------------------------------------------------------------------- */

static void on_later_removed(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (!has_failed(purging, result, reply))
		go_on(purging, purge_later);
}

static void on_later_forgotten(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (has_failed(purging, result, reply))
		return;
	purging->dropped += reply_integer(reply, 0);
	if (ask_ids(purging, "ZREM", QUEUE_LATER, on_later_removed))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static bool is_wanted(const struct purging *purging, const struct reply *packed)
{
	struct queue_entry entry;
	struct entry_texts texts;
	size_t len;
	const char *text = reply_text(packed, &len);

	entry_read(&entry, &texts, text, len);
	if (purging->only)
		return !strcmp(purging->only, entry.level);
	return queue_level_find(&purging->queue->keys, entry.level, strlen(entry.level)) >= 0;
}

static void on_later_held(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;
	const size_t count = purging->id_count;
	size_t bytes = 0, len;

	if (has_failed(purging, result, reply))
		return;
	purging->id_count = 0;
	for (size_t i = 0; i < count; i++) {
		reply_text(reply_at(reply, i), &len);
		bytes += len;
		if (!is_wanted(purging, reply_at(reply, i)))
			purging->position++;
		else
			memmove(purging->ids[purging->id_count++], purging->ids[i],
				sizeof purging->ids[0]);
	}
	purging->portion = bytes < SMALL_BYTES ? PORTION_MAX : PORTION_FIRST;
	if (purging->id_count == 0)
		go_on(purging, purge_later);
	else if (ask_ids(purging, "HDEL", QUEUE_HELD, on_later_forgotten))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static void on_later_page(int result, const struct reply *reply, void *arg)
{
	struct purging *purging = arg;

	if (has_failed(purging, result, reply))
		return;
	purging->id_count = 0;
	for (size_t i = 0; i < reply_count(reply) && i < PORTION_MAX; i++)
		keep_id(purging, reply_at(reply, i));
	if (purging->id_count == 0)
		finish(purging, 0, "");
	else if (ask_ids(purging, "HMGET", QUEUE_HELD, on_later_held))
		finish(purging, REASON_STORE_NOT_DONE, "");
}

static int purge_later(struct purging *purging)
{
	char first[QUEUE_NUMBER_SIZE], last[QUEUE_NUMBER_SIZE];

	snprintf(first, sizeof first, "%" PRId64, purging->position);
	snprintf(last, sizeof last, "%" PRId64, purging->position + (int64_t)purging->portion - 1);
	return ask(purging,
		   (struct word[]){WORD("ZRANGE"), queue_key(&purging->queue->keys, QUEUE_LATER),
				   WORD(first), WORD(last)},
		   4, on_later_page);
}

int queue_purge(struct queue *queue, const char *level, queue_moved_cb *cb, void *arg)
{
	const int found = level ? queue_level_find(&queue->keys, level, strlen(level)) : 0;
	struct purging *purging;
	int r;

	if (found < 0)
		return -EINVAL;
	purging = calloc(1, sizeof *purging);
	if (!purging)
		return -ENOMEM;
	purging->queue = queue;
	purging->cb = cb;
	purging->arg = arg;
	purging->only = level ? queue->keys.levels[found].name : NULL;
	purging->portion = PORTION_FIRST;
	r = purge_level(purging);
	if (r)
		free(purging);
	return r;
}
