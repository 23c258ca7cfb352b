/* peek.c - entries of a queue as they stand, read in small portions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/entry.h"
#include "queue/internal.h"

#define IDS_MAX ((size_t)500) /* of one page */
#define PORTION ((size_t)3)   /* payloads of one answer: three of the largest are within its cap */
#define SCAN_MAX ((int64_t)10000) /* entries of other levels that are passed over */

/* Where entries stand, and how each is read. Lists are read from the right, where the next one is taken. */
enum shape {
	RAW_LIST,    /* payloads */
	PACKED_LIST, /* packed entries */
	ID_LIST,     /* ids, whose packed entries a hash holds */
	ID_SET,      /* the same with a time; a claim's name begins with the id */
};

struct part {
	enum shape shape;
	const char *where;
	const char *level; /* NULL: the entry says it */
	struct word key, hash;
};

struct peeking {
	struct queue *queue;
	queue_entry_cb *cb;
	void *arg;
	const char *level; /* NULL: all */
	size_t wanted;     /* entries that are still to be given out */
	struct part parts[2 * QUEUE_LEVELS_MAX];
	size_t part_count, part;
	int64_t position; /* entries of this part that were read */
	int64_t scanned;
	size_t id_count, id_next, id_asked; /* of the page, in the order of reading */
	char ids[IDS_MAX][CLAIM_NAME_MAX + 1];
	int64_t times[IDS_MAX];
};

static void next_step(struct peeking *peeking);

static void finish(struct peeking *peeking, int result, const char *error)
{
	peeking->cb(result, error, NULL, peeking->arg);
	free(peeking);
}

static const struct part *current(const struct peeking *peeking)
{
	return &peeking->parts[peeking->part];
}

static void give_out(struct peeking *peeking, struct queue_entry *entry)
{
	const struct part *part = current(peeking);

	peeking->scanned++;
	if (peeking->wanted == 0)
		return;
	if (part->level)
		entry->level = part->level;
	if (peeking->level && strcmp(peeking->level, entry->level) != 0)
		return;
	entry->where = part->where;
	peeking->wanted--;
	peeking->cb(0, "", entry, peeking->arg);
}

static void give_out_packed(struct peeking *peeking, const struct reply *reply, const char *id,
			    int64_t at_ms)
{
	struct queue_entry entry;
	struct entry_texts texts;
	size_t len;
	const char *packed = reply_text(reply, &len);

	if (reply_kind(reply) != REPLY_TEXT)
		return; /* it has gone meanwhile */
	entry_read(&entry, &texts, packed, len);
	if (id)
		entry.id = id;
	if (at_ms)
		entry.at_ms = at_ms;
	give_out(peeking, &entry);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* A portion of a list of payloads or of packed entries. */
static void take_list(struct peeking *peeking, const struct reply *reply)
{
	for (size_t i = reply_count(reply); i-- > 0;) {
		const struct reply *element = reply_at(reply, i);
		struct queue_entry entry = {.id = "", .reason = ""};

		if (current(peeking)->shape == PACKED_LIST) {
			give_out_packed(peeking, element, NULL, 0);
			continue;
		}
		entry.payload.at = reply_text(element, &entry.payload.len);
		give_out(peeking, &entry);
	}
	peeking->position += (int64_t)reply_count(reply);
}

static void take_id(struct peeking *peeking, const struct reply *id, const struct reply *time)
{
	double at_ms = 0;

	if (time && reply_double(time, &at_ms))
		at_ms = 0;
	snprintf(peeking->ids[peeking->id_count], sizeof peeking->ids[0], "%s",
		 reply_text(id, NULL));
	peeking->times[peeking->id_count++] = at_ms < SCORE_ASIDE ? (int64_t)at_ms : 0;
}

static void take_page(struct peeking *peeking, const struct reply *reply)
{
	const size_t count = reply_count(reply);

	peeking->id_count = peeking->id_next = 0;
	if (current(peeking)->shape == ID_SET) {
		for (size_t i = 0; i + 1 < count && peeking->id_count < IDS_MAX; i += 2)
			take_id(peeking, reply_at(reply, i), reply_at(reply, i + 1));
	} else {
		for (size_t i = count; i-- > 0 && peeking->id_count < IDS_MAX;)
			take_id(peeking, reply_at(reply, i), NULL);
	}
	peeking->position += (int64_t)peeking->id_count;
}

static void on_page(int result, const struct reply *reply, void *arg)
{
	struct peeking *peeking = arg;

	if (result) {
		finish(peeking, result, reply_text(reply, NULL));
		return;
	}
	if (reply_count(reply) == 0) {
		peeking->part++;
		peeking->position = 0;
	} else if (current(peeking)->shape == RAW_LIST || current(peeking)->shape == PACKED_LIST) {
		take_list(peeking, reply);
	} else {
		take_page(peeking, reply);
	}
	next_step(peeking);
}

static void on_held(int result, const struct reply *reply, void *arg)
{
	struct peeking *peeking = arg;

	if (result) {
		finish(peeking, result, reply_text(reply, NULL));
		return;
	}
	for (size_t i = 0; i < peeking->id_asked; i++, peeking->id_next++) {
		char *id = peeking->ids[peeking->id_next];

		*strchrnul(id, ':') = '\0';
		give_out_packed(peeking, reply_at(reply, i), id, peeking->times[peeking->id_next]);
	}
	next_step(peeking);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static int ask_page(struct peeking *peeking)
{
	const struct part *part = current(peeking);
	const bool is_set = part->shape == ID_SET, has_ids = is_set || part->shape == ID_LIST;
	const int64_t count = (int64_t)(has_ids ? IDS_MAX : PORTION);
	const int64_t from = is_set ? peeking->position : -peeking->position - count;
	const int64_t to = is_set ? peeking->position + count - 1 : -peeking->position - 1;
	char first[QUEUE_NUMBER_SIZE], last[QUEUE_NUMBER_SIZE];

	snprintf(first, sizeof first, "%" PRId64, from);
	snprintf(last, sizeof last, "%" PRId64, to);
	return store_command(peeking->queue->store, STORE_IDEMPOTENT,
			     (struct word[]){WORD(is_set ? "ZRANGE" : "LRANGE"), part->key,
					     WORD(first), WORD(last), WORD("WITHSCORES")},
			     is_set ? 5 : 4, on_page, peeking);
}

static int ask_held(struct peeking *peeking)
{
	struct word words[2 + PORTION] = {WORD("HMGET"), current(peeking)->hash};
	size_t count = 0;

	while (count < PORTION && peeking->id_next + count < peeking->id_count) {
		words[2 + count] = WORD(peeking->ids[peeking->id_next + count]);
		count++;
	}
	peeking->id_asked = count;
	return store_command(peeking->queue->store, STORE_IDEMPOTENT, words, 2 + count, on_held,
			     peeking);
}

static void next_step(struct peeking *peeking)
{
	int r;

	if (peeking->wanted == 0 || peeking->part == peeking->part_count ||
	    peeking->scanned >= SCAN_MAX) {
		finish(peeking, 0, "");
		return;
	}
	r = peeking->id_next < peeking->id_count ? ask_held(peeking) : ask_page(peeking);
	if (r)
		finish(peeking, REASON_STORE_NOT_DONE, "");
}

/* --- where to look ------------------------------------------------------------------------------------------------ */

static void add_ready(struct peeking *peeking, const struct queue_level *level)
{
	const struct word held = queue_key(&peeking->queue->keys, QUEUE_HELD);

	if (peeking->level && strcmp(peeking->level, level->name) != 0)
		return;
	peeking->parts[peeking->part_count++] =
	    (struct part){ID_LIST, "returned", level->name, WORD(level->retry), held};
	peeking->parts[peeking->part_count++] =
	    (struct part){RAW_LIST, "ready", level->name, WORD(level->list), {0}};
}

static void add_parts(struct peeking *peeking, enum queue_place place)
{
	const struct queue_keys *keys = &peeking->queue->keys;
	struct part *part = peeking->parts;

	switch (place) {
	case QUEUE_READY:
		for (size_t i = 0; i < keys->level_count; i++)
			add_ready(peeking, &keys->levels[i]);
		return;
	case QUEUE_IN_LATER:
		*part = (struct part){ID_SET, "later", NULL, queue_key(keys, QUEUE_LATER),
				      queue_key(keys, QUEUE_HELD)};
		break;
	case QUEUE_IN_FLIGHT:
		*part = (struct part){ID_SET, "claimed", NULL, queue_key(keys, QUEUE_LEASES),
				      queue_key(keys, QUEUE_CLAIMS)};
		break;
	case QUEUE_DEAD_LETTERS:
		*part = (struct part){PACKED_LIST, "dead", NULL, queue_key(keys, QUEUE_DEAD), {0}};
		break;
	}
	peeking->part_count = 1;
}

int queue_peek(struct queue *queue, enum queue_place place, const char *level, size_t count,
	       queue_entry_cb *cb, void *arg)
{
	const int found = level ? queue_level_find(&queue->keys, level, strlen(level)) : 0;
	struct peeking *peeking;
	int r;

	if (found < 0 || count == 0)
		return -EINVAL;
	peeking = calloc(1, sizeof *peeking);
	if (!peeking)
		return -ENOMEM;
	peeking->queue = queue;
	peeking->cb = cb;
	peeking->arg = arg;
	peeking->level = level ? queue->keys.levels[found].name : NULL;
	peeking->wanted = count;
	add_parts(peeking, place);
	r = ask_page(peeking);
	if (r)
		free(peeking);
	return r;
}
