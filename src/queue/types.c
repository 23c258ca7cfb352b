/* types.c - does each key of a queue hold what belongs there, and do all stand in one slot? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/internal.h"

#define QUESTIONS_MAX (1 + QUEUE_KEY_COUNT + 2 * QUEUE_LEVELS_MAX)

static const char *const types[QUEUE_KEY_COUNT] = {
    [QUEUE_LATER] = "zset",  [QUEUE_HELD] = "hash",   [QUEUE_CLAIMS] = "hash",
    [QUEUE_LEASES] = "zset", [QUEUE_SETTLED] = "set", [QUEUE_SETTLED_BEFORE] = "set",
    [QUEUE_DEAD] = "list",   [QUEUE_IDS] = "zset",    [QUEUE_STATS] = "hash",
    [QUEUE_PAUSED] = "set",
};

/* One question a key, all in one write; the first of all is for the kind of server. */
struct check {
	struct queue *queue;
	queue_cb *cb;
	void *arg;
	struct question {
		struct check *check;
		const char *key;
		const char *type;
	} questions[QUESTIONS_MAX];
	size_t count, asked, answered;
	int result;
	char error[1000];
};

static void finish(struct check *check)
{
	if (check->answered < check->asked)
		return;
	check->cb(check->result, check->error, check->arg);
	free(check);
}

/* Every other key of the queue is in the slot of its tag. */
static void judge_slots(struct check *check)
{
	const struct word own = queue_key(&check->queue->keys, QUEUE_STATS);
	const unsigned slot = key_slot(own.at, own.len);

	for (size_t i = 0; i < check->queue->keys.level_count && !check->result; i++) {
		const char *list = check->queue->keys.levels[i].list;
		const unsigned other = key_slot(list, strlen(list));

		if (other == slot)
			continue;
		check->result = REASON_STORE_REFUSED;
		snprintf(check->error, sizeof check->error,
			 "CROSSSLOT the list %s is in slot %u, the queue's own keys are in slot %u",
			 list, other, slot);
	}
}

/* Who may not read INFO is told by the keys themselves. */
static void on_info(int result, const struct reply *reply, void *arg)
{
	struct check *check = arg;

	check->answered++;
	if (result && result != REASON_STORE_REFUSED)
		check->result = result;
	else if (strstr(reply_text(reply, NULL), "cluster_enabled:1"))
		judge_slots(check);
	finish(check);
}

static void on_type(int result, const struct reply *reply, void *arg)
{
	const struct question *question = arg;
	struct check *check = question->check;
	const char *type = reply_text(reply, NULL);

	check->answered++;
	if (result && !check->result) {
		check->result = result;
		snprintf(check->error, sizeof check->error, "%s", type);
	} else if (!check->result && strcmp(type, "none") && strcmp(type, question->type)) {
		check->result = REASON_STORE_REFUSED;
		snprintf(check->error, sizeof check->error,
			 "WRONGTYPE the key %s holds a %s, not a %s", question->key, type,
			 question->type);
	}
	finish(check);
}

static void add(struct check *check, const char *key, const char *type)
{
	check->questions[check->count++] = (struct question){check, key, type};
}

static int ask_all(struct check *check)
{
	const struct word info[] = {WORD("INFO"), WORD("cluster")};
	struct store *store = check->queue->store;
	int r = store_command(store, STORE_IDEMPOTENT, info, 2, on_info, check);

	check->asked = r ? 0 : 1;
	for (size_t i = 0; i < check->count && !r; i++) {
		struct question *question = &check->questions[i];
		const struct word words[] = {WORD("TYPE"), WORD(question->key)};

		r = store_command(store, STORE_IDEMPOTENT, words, 2, on_type, question);
		check->asked += r ? 0 : 1;
	}
	return r;
}

int queue_check_types(struct queue *queue, queue_cb *cb, void *arg)
{
	struct check *check = calloc(1, sizeof *check);
	int r;

	if (!check)
		return -ENOMEM;
	*check = (struct check){.queue = queue, .cb = cb, .arg = arg};
	for (int key = 0; key < QUEUE_KEY_COUNT; key++)
		add(check, queue->keys.text[key], types[key]);
	for (size_t i = 0; i < queue->keys.level_count; i++) {
		add(check, queue->keys.levels[i].list, "list");
		add(check, queue->keys.levels[i].retry, "list");
	}
	r = ask_all(check);
	if (r && check->asked > 0) {
		check->result = REASON_STORE_NOT_DONE;
		return 0; /* the answers that come will end it */
	}
	if (r)
		free(check);
	return r;
}
