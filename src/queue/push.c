/* push.c - tasks in. */
#include "queue/push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kill_point.h"
#include "queue/internal.h"

#define BYTES_MAX ((size_t)65 << 20) /* of all payloads of a call: the store holds them twice */
#define KEYS 5

struct pushing {
	push_cb *cb;
	void *arg;
	size_t count;
};

static void on_pushed(int result, const struct reply *reply, void *arg)
{
	struct pushing *pushing = arg;
	bool pushed[PUSH_MAX] = {false};

	KILL_POINT("push-answered");
	if (result) {
		pushing->cb(result, reply_text(reply, NULL), NULL, 0, pushing->arg);
		free(pushing);
		return;
	}
	for (size_t i = 0; i < pushing->count; i++)
		pushed[i] = reply_integer(reply_at(reply, 1 + i), 0) == 1;
	pushing->cb(0, "", pushed, pushing->count, pushing->arg);
	free(pushing);
}

static int check_items(const struct push_item *items, size_t count)
{
	size_t bytes = 0;

	if (count == 0 || count > PUSH_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (items[i].payload.len > BYTES_MAX - bytes)
			return -EMSGSIZE;
		bytes += items[i].payload.len;
	}
	return 0;
}

/* "" at once (1970 has passed), "@MS" at a time, "+MS" so long from now on the clock of Redis. */
static void print_due(char *ret, size_t size, const struct push *push)
{
	ret[0] = '\0';
	if (push->when_ms > 0)
		snprintf(ret, size, "%c%" PRId64, push->is_at ? '@' : '+', push->when_ms);
}

static int send(struct queue *queue, const struct push *push, const struct queue_level *level,
		const struct push_item *items, struct pushing *pushing)
{
	const struct queue_keys *keys = &queue->keys;
	struct word words[KEYS + 5 + 2 * PUSH_MAX] NOT_ZEROED;
	char due[QUEUE_NUMBER_SIZE + 1], window[QUEUE_NUMBER_SIZE];
	struct word *word = words;

	print_due(due, sizeof due, push);
	snprintf(window, sizeof window, "%" PRId64, push->window_ms);
	*word++ = WORD(level->list);
	*word++ = queue_key(keys, QUEUE_LATER);
	*word++ = queue_key(keys, QUEUE_HELD);
	*word++ = queue_key(keys, QUEUE_IDS);
	*word++ = queue_key(keys, QUEUE_STATS);
	*word++ = WORD("");
	*word++ = WORD(push->is_urgent ? "head" : "tail");
	*word++ = WORD(level->name);
	*word++ = WORD(due);
	*word++ = WORD(window);
	for (size_t i = 0; i < pushing->count; i++) {
		*word++ = items[i].key.len ? items[i].key : WORD("");
		*word++ = items[i].payload.len ? items[i].payload : WORD("");
	}
	return store_script_keys(queue->store, SCRIPT_PUSH, 0, KEYS, words, (size_t)(word - words),
				 on_pushed, pushing);
}

int queue_push(struct queue *queue, const struct push *push, const struct push_item *items,
	       size_t count, push_cb *cb, void *arg)
{
	const int level = queue_level_find(&queue->keys, push->level, strlen(push->level));
	int r = level < 0 ? -EINVAL : check_items(items, count);
	struct pushing *pushing;

	if (r)
		return r;
	pushing = malloc(sizeof *pushing);
	if (!pushing)
		return -ENOMEM;
	*pushing = (struct pushing){.cb = cb, .arg = arg, .count = count};
	r = send(queue, push, &queue->keys.levels[level], items, pushing);
	if (r)
		free(pushing);
	else
		KILL_POINT("push-queued");
	return r;
}
