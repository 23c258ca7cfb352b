/* view.c - the depths and counters of a queue, in questions that each cost the same at any depth. */
#include "queue/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/internal.h"

#define FIELD_SIZE (KEY_PART_MAX + 16)

/* Fields of stats: these, then four of each level. */
enum { COUNT_ACKED, COUNT_FAILED, COUNT_LOST, COUNT_RELEASED, COUNT_DEAD, COUNT_DROPPED, COUNTS };
static const char *const counts[COUNTS] = {
    [COUNT_ACKED] = "acked",       [COUNT_FAILED] = "failed", [COUNT_LOST] = "lost",
    [COUNT_RELEASED] = "released", [COUNT_DEAD] = "dead",     [COUNT_DROPPED] = "dropped",
};
enum { OF_PUSHED, OF_CLAIMED, OF_STALL, OF_LEVEL };
static const char *const of_level[OF_LEVEL] = {
    [OF_PUSHED] = "pushed", [OF_CLAIMED] = "claimed", [OF_STALL] = "stall"};

struct viewing {
	struct queue *queue;
	queue_view_cb *cb;
	void *arg;
	size_t asked, answered;
	int result;
	char error[200];
	int64_t now_ms;
	struct queue_view view;
	struct question {
		struct viewing *viewing;
		void (*take)(struct viewing *viewing, const struct reply *reply, size_t level);
		size_t level;
	} questions[8 + 2 * QUEUE_LEVELS_MAX];
};

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Times of Redis's clock become durations. */
static void finish(struct viewing *viewing)
{
	struct queue_view *view = &viewing->view;

	if (viewing->answered < viewing->asked)
		return;
	for (size_t i = 0; i < view->level_count; i++) {
		struct queue_level_view *level = &view->levels[i];
		const int64_t since = level->stall_ms;

		level->stall_ms = 0;
		if (level->ready + level->returned > 0 && since > 0 && since < viewing->now_ms)
			level->stall_ms = viewing->now_ms - since;
	}
	if (view->oldest_claim_ms != INT64_MAX)
		view->oldest_claim_ms = view->oldest_claim_ms < SCORE_ASIDE
					    ? view->oldest_claim_ms - viewing->now_ms
					    : -1;
	viewing->cb(viewing->result, viewing->error, view, viewing->arg);
	free(viewing);
}

static void on_answer(int result, const struct reply *reply, void *arg)
{
	const struct question *question = arg;
	struct viewing *viewing = question->viewing;

	viewing->answered++;
	if (!result) {
		question->take(viewing, reply, question->level);
	} else if (!viewing->result) {
		viewing->result = result;
		snprintf(viewing->error, sizeof viewing->error, "%s", reply_text(reply, NULL));
	}
	finish(viewing);
}

static void take_time(struct viewing *viewing, const struct reply *reply, size_t level)
{
	(void)level;
	viewing->now_ms = reply_integer(reply_at(reply, 0), 0) * 1000 +
			  reply_integer(reply_at(reply, 1), 0) / 1000;
}

static void take_counts(struct viewing *viewing, const struct reply *reply, size_t count)
{
	struct queue_view *view = &viewing->view;
	int64_t *const places[COUNTS] = {
	    [COUNT_ACKED] = &view->acked,      [COUNT_FAILED] = &view->failed,
	    [COUNT_LOST] = &view->lost,        [COUNT_RELEASED] = &view->released,
	    [COUNT_DEAD] = &view->became_dead, [COUNT_DROPPED] = &view->dropped,
	};

	(void)count;
	for (size_t i = 0; i < COUNTS; i++)
		*places[i] = reply_integer(reply_at(reply, i), 0);
	for (size_t i = 0; i < view->level_count; i++) {
		struct queue_level_view *level = &view->levels[i];
		const size_t at = COUNTS + i * OF_LEVEL;

		level->pushed = reply_integer(reply_at(reply, at + OF_PUSHED), 0);
		level->claimed = reply_integer(reply_at(reply, at + OF_CLAIMED), 0);
		level->stall_ms = reply_integer(reply_at(reply, at + OF_STALL), 0);
	}
}

static void take_paused(struct viewing *viewing, const struct reply *reply, size_t level)
{
	(void)level;
	for (size_t i = 0; i < viewing->view.level_count; i++)
		viewing->view.levels[i].is_paused = reply_integer(reply_at(reply, i), 0) == 1;
}

static void take_oldest(struct viewing *viewing, const struct reply *reply, size_t level)
{
	double expiry;

	(void)level;
	if (!reply_double(reply_at(reply, 1), &expiry))
		viewing->view.oldest_claim_ms = (int64_t)expiry;
}

static void take_later(struct viewing *viewing, const struct reply *reply, size_t level)
{
	(void)level;
	viewing->view.later = reply_integer(reply, 0);
}

static void take_in_flight(struct viewing *viewing, const struct reply *reply, size_t level)
{
	(void)level;
	viewing->view.in_flight = reply_integer(reply, 0);
}

static void take_dead(struct viewing *viewing, const struct reply *reply, size_t level)
{
	(void)level;
	viewing->view.dead = reply_integer(reply, 0);
}

static void take_ready(struct viewing *viewing, const struct reply *reply, size_t level)
{
	viewing->view.levels[level].ready = reply_integer(reply, 0);
}

static void take_returned(struct viewing *viewing, const struct reply *reply, size_t level)
{
	viewing->view.levels[level].returned = reply_integer(reply, 0);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

typedef void take_answer(struct viewing *viewing, const struct reply *reply, size_t level);

static int ask(struct viewing *viewing, take_answer *take, size_t level, const struct word *words,
	       size_t count)
{
	struct question *question = &viewing->questions[viewing->asked];
	int r;

	*question = (struct question){viewing, take, level};
	r = store_command(viewing->queue->store, STORE_IDEMPOTENT, words, count, on_answer,
			  question);
	viewing->asked += r ? 0 : 1;
	return r;
}

static int ask_key(struct viewing *viewing, take_answer *take, const char *command,
		   enum queue_key key)
{
	return ask(viewing, take, 0,
		   (struct word[]){WORD(command), queue_key(&viewing->queue->keys, key)}, 2);
}

static int ask_stats(struct viewing *viewing)
{
	const struct queue_keys *keys = &viewing->queue->keys;
	char fields[QUEUE_LEVELS_MAX * OF_LEVEL][FIELD_SIZE] NOT_ZEROED;
	struct word words[2 + COUNTS + QUEUE_LEVELS_MAX * OF_LEVEL] = {
	    WORD("HMGET"), queue_key(keys, QUEUE_STATS)};
	size_t count = 2;

	for (size_t i = 0; i < COUNTS; i++)
		words[count++] = WORD(counts[i]);
	for (size_t i = 0; i < keys->level_count * OF_LEVEL; i++) {
		snprintf(fields[i], FIELD_SIZE, "%s:%s", of_level[i % OF_LEVEL],
			 keys->levels[i / OF_LEVEL].name);
		words[count++] = WORD(fields[i]);
	}
	return ask(viewing, take_counts, 0, words, count);
}

static int ask_paused(struct viewing *viewing)
{
	const struct queue_keys *keys = &viewing->queue->keys;
	struct word words[2 + QUEUE_LEVELS_MAX] = {WORD("SMISMEMBER"),
						   queue_key(keys, QUEUE_PAUSED)};

	for (size_t i = 0; i < keys->level_count; i++)
		words[2 + i] = WORD(keys->levels[i].name);
	return ask(viewing, take_paused, 0, words, 2 + keys->level_count);
}

static int ask_level(struct viewing *viewing, size_t level)
{
	const struct queue_level *names = &viewing->queue->keys.levels[level];
	int r =
	    ask(viewing, take_ready, level, (struct word[]){WORD("LLEN"), WORD(names->list)}, 2);

	if (!r)
		r = ask(viewing, take_returned, level,
			(struct word[]){WORD("LLEN"), WORD(names->retry)}, 2);
	return r;
}

/* All in one write. */
static int ask_all(struct viewing *viewing)
{
	const struct queue_keys *keys = &viewing->queue->keys;
	const struct word oldest[] = {WORD("ZRANGE"), queue_key(keys, QUEUE_LEASES), WORD("0"),
				      WORD("0"), WORD("WITHSCORES")};
	int r = ask(viewing, take_time, 0, (struct word[]){WORD("TIME")}, 1);

	r = r ? r : ask_stats(viewing);
	r = r ? r : ask_paused(viewing);
	r = r ? r : ask(viewing, take_oldest, 0, oldest, 5);
	r = r ? r : ask_key(viewing, take_later, "ZCARD", QUEUE_LATER);
	r = r ? r : ask_key(viewing, take_in_flight, "HLEN", QUEUE_CLAIMS);
	r = r ? r : ask_key(viewing, take_dead, "LLEN", QUEUE_DEAD);
	for (size_t i = 0; i < keys->level_count && !r; i++)
		r = ask_level(viewing, i);
	return r;
}

int queue_view(struct queue *queue, queue_view_cb *cb, void *arg)
{
	struct viewing *viewing = calloc(1, sizeof *viewing);
	int r;

	if (!viewing)
		return -ENOMEM;
	*viewing = (struct viewing){.queue = queue, .cb = cb, .arg = arg};
	viewing->view.level_count = queue->keys.level_count;
	viewing->view.oldest_claim_ms = INT64_MAX;
	for (size_t i = 0; i < queue->keys.level_count; i++)
		viewing->view.levels[i].name = queue->keys.levels[i].name;
	r = ask_all(viewing);
	if (r && viewing->asked > 0) {
		viewing->result = REASON_STORE_NOT_DONE;
		return 0; /* the answers that come will end it */
	}
	if (r)
		free(viewing);
	return r;
}
