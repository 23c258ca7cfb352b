/* move.c - what people do to a queue: take dead letters back, hand returned tasks to others, pause. In portions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/internal.h"
#include "queue/view.h"

#define PORTION_TEXT "128"
#define PORTION 128

struct moving {
	struct queue *queue;
	queue_moved_cb *cb;
	void *arg;
	int64_t moved;
	size_t level, level_end; /* those that are still to be done */
	int64_t calls_left;      /* of dead_retry.lua; < 0: not known yet */
};

static struct moving *moving_new(struct queue *queue, queue_moved_cb *cb, void *arg)
{
	struct moving *moving = calloc(1, sizeof *moving);

	if (moving)
		*moving = (struct moving){.queue = queue,
					  .cb = cb,
					  .arg = arg,
					  .level_end = queue->keys.level_count,
					  .calls_left = -1};
	return moving;
}

static void finish(struct moving *moving, int result, const char *error)
{
	moving->cb(result, error, moving->moved, moving->arg);
	free(moving);
}

/* NULL: all. 0 or -EINVAL. */
static int choose_level(struct moving *moving, const char *level)
{
	const int found = level ? queue_level_find(&moving->queue->keys, level, strlen(level)) : 0;

	if (found < 0)
		return -EINVAL;
	if (level) {
		moving->level = (size_t)found;
		moving->level_end = moving->level + 1;
	}
	return 0;
}

/* Begins with `step`. 0 or -errno, and nothing is left. */
static int begin(struct moving *moving, int (*step)(struct moving *moving))
{
	int r = step(moving);

	if (r)
		free(moving);
	return r;
}

/* Goes on with `step`. */
static void go_on(struct moving *moving, int (*step)(struct moving *moving))
{
	if (step(moving))
		finish(moving, REASON_STORE_NOT_DONE, "");
}

/* --- dead letters ------------------------------------------------------------------------------------------------- */

static int retry_dead(struct moving *moving);

/* Letters of unknown levels stay, behind the others: nobody walks around twice. */
static void on_dead_retried(int result, const struct reply *reply, void *arg)
{
	struct moving *moving = arg;
	const int64_t moved = reply_integer(reply_at(reply, 0), 0);
	const int64_t left = reply_integer(reply_at(reply, 1), 0);

	if (result) {
		finish(moving, result, reply_text(reply, NULL));
		return;
	}
	moving->moved += moved;
	if (moving->calls_left < 0)
		moving->calls_left = (moved + left + PORTION - 1) / PORTION;
	if (left == 0 || --moving->calls_left <= 0)
		finish(moving, 0, "");
	else
		go_on(moving, retry_dead);
}

static int retry_dead(struct moving *moving)
{
	const struct queue_keys *keys = &moving->queue->keys;
	const size_t levels = keys->level_count;
	struct word words[2 + QUEUE_LEVELS_MAX + 1 + QUEUE_LEVELS_MAX];

	words[0] = queue_key(keys, QUEUE_DEAD);
	words[1] = queue_key(keys, QUEUE_STATS);
	words[2 + levels] = WORD(PORTION_TEXT);
	for (size_t i = 0; i < levels; i++) {
		words[2 + i] = WORD(keys->levels[i].list);
		words[3 + levels + i] = WORD(keys->levels[i].name);
	}
	return store_script_keys(moving->queue->store, SCRIPT_DEAD_RETRY, 0, 2 + levels, words,
				 3 + 2 * levels, on_dead_retried, moving);
}

int queue_dead_retry(struct queue *queue, queue_moved_cb *cb, void *arg)
{
	struct moving *moving = moving_new(queue, cb, arg);

	return moving ? begin(moving, retry_dead) : -ENOMEM;
}

static int ask_dead(struct moving *moving, const char *command, store_cb *cb)
{
	const struct word words[] = {WORD(command), queue_key(&moving->queue->keys, QUEUE_DEAD)};

	return store_command(moving->queue->store, STORE_IDEMPOTENT, words, 2, cb, moving);
}

static void on_dead_purged(int result, const struct reply *reply, void *arg)
{
	struct moving *moving = arg;

	if (result)
		moving->moved = 0;
	finish(moving, result, reply_text(reply, NULL));
}

/* Redis drops them in the background. */
static void on_dead_counted(int result, const struct reply *reply, void *arg)
{
	struct moving *moving = arg;

	if (result) {
		finish(moving, result, reply_text(reply, NULL));
		return;
	}
	moving->moved = reply_integer(reply, 0);
	if (ask_dead(moving, "UNLINK", on_dead_purged))
		finish(moving, REASON_STORE_NOT_DONE, "");
}

static int count_dead(struct moving *moving)
{
	return ask_dead(moving, "LLEN", on_dead_counted);
}

int queue_dead_purge(struct queue *queue, queue_moved_cb *cb, void *arg)
{
	struct moving *moving = moving_new(queue, cb, arg);

	return moving ? begin(moving, count_dead) : -ENOMEM;
}

/* --- returned tasks ----------------------------------------------------------------------------------------------- */

static int publish(struct moving *moving);

static void on_published(int result, const struct reply *reply, void *arg)
{
	struct moving *moving = arg;
	const int64_t moved = reply_integer(reply, 0);

	if (result) {
		finish(moving, result, reply_text(reply, NULL));
		return;
	}
	moving->moved += moved;
	if (moved == 0)
		moving->level++;
	if (moving->level == moving->level_end)
		finish(moving, 0, "");
	else
		go_on(moving, publish);
}

static int publish(struct moving *moving)
{
	const struct queue_keys *keys = &moving->queue->keys;
	const struct queue_level *level = &keys->levels[moving->level];
	const struct word words[] = {WORD(level->retry), queue_key(keys, QUEUE_HELD),
				     WORD(level->list), queue_key(keys, QUEUE_STATS),
				     WORD(PORTION_TEXT)};

	return store_script(moving->queue->store, SCRIPT_RETRY_PUBLIC, 0, words, 5, on_published,
			    moving);
}

int queue_retry_public(struct queue *queue, const char *level, queue_moved_cb *cb, void *arg)
{
	struct moving *moving = moving_new(queue, cb, arg);
	int r = moving ? choose_level(moving, level) : -ENOMEM;

	if (r) {
		free(moving);
		return r;
	}
	return begin(moving, publish);
}

/* --- pause -------------------------------------------------------------------------------------------------------- */

struct pausing {
	queue_cb *cb;
	void *arg;
};

static void on_paused(int result, const struct reply *reply, void *arg)
{
	struct pausing *pausing = arg;

	pausing->cb(result, reply_text(reply, NULL), pausing->arg);
	free(pausing);
}

int queue_pause(struct queue *queue, const char *level, bool is_paused, queue_cb *cb, void *arg)
{
	const struct queue_keys *keys = &queue->keys;
	struct word words[2 + QUEUE_LEVELS_MAX] = {WORD(is_paused ? "SADD" : "SREM"),
						   queue_key(keys, QUEUE_PAUSED)};
	size_t count = 2;
	struct pausing *pausing;
	int r;

	if (level && queue_level_find(keys, level, strlen(level)) < 0)
		return -EINVAL;
	for (size_t i = 0; i < keys->level_count; i++)
		if (!level || !strcmp(level, keys->levels[i].name))
			words[count++] = WORD(keys->levels[i].name);
	pausing = malloc(sizeof *pausing);
	if (!pausing)
		return -ENOMEM;
	*pausing = (struct pausing){cb, arg};
	r = store_command(queue->store, STORE_IDEMPOTENT, words, count, on_paused, pausing);
	if (r)
		free(pausing);
	return r;
}
