/* claim.c - tasks out, with a lease. */
#include "queue/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/kill_point.h"
#include "queue/internal.h"

#define BYTES_MAX "8388608" /* payloads of one answer; one is given whatever its size */
#define LIMIT 64            /* due tasks and lost claims that a claim takes care of on its way */
#define NONCE_BYTES 8

/* --- the call ----------------------------------------------------------------------------------------------------- */

/* The keys and words of claim.lua, with room for their numbers. */
struct call {
	struct word words[7 + 3 * QUEUE_LEVELS_MAX + 8];
	size_t key_count, count;
	char nonce[2 * NONCE_BYTES + 1];
	char lease[QUEUE_NUMBER_SIZE], tasks[QUEUE_NUMBER_SIZE], lost_max[QUEUE_NUMBER_SIZE],
	    dead_max[QUEUE_NUMBER_SIZE], limit[QUEUE_NUMBER_SIZE];
};

static void add(struct call *call, struct word word)
{
	call->words[call->count++] = word;
}

/* The level that is tried as the `place`th. */
static const struct queue_level *level_at(const struct queue_keys *keys, size_t place,
					  bool is_from_bottom)
{
	return &keys->levels[is_from_bottom ? keys->level_count - 1 - place : place];
}

static void add_keys(struct call *call, const struct queue_keys *keys, bool is_from_bottom)
{
	static const enum queue_key fixed[] = {QUEUE_LATER, QUEUE_HELD,  QUEUE_CLAIMS, QUEUE_LEASES,
					       QUEUE_DEAD,  QUEUE_STATS, QUEUE_PAUSED};

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		add(call, queue_key(keys, fixed[i]));
	for (size_t i = 0; i < keys->level_count; i++) {
		const struct queue_level *level = level_at(keys, i, is_from_bottom);

		add(call, WORD(level->list));
		add(call, WORD(level->retry));
	}
	call->key_count = call->count;
}

static void add_arguments(struct call *call, const struct queue_config *config, size_t tasks,
			  int limit)
{
	snprintf(call->lease, sizeof call->lease, "%" PRId64, config->lease_ms);
	snprintf(call->tasks, sizeof call->tasks, "%zu", tasks);
	snprintf(call->lost_max, sizeof call->lost_max, "%" PRId64, config->lost_max);
	snprintf(call->dead_max, sizeof call->dead_max, "%" PRId64, config->dead_max);
	snprintf(call->limit, sizeof call->limit, "%d", limit);
	add(call, WORD("")); /* now: by the clock of Redis */
	add(call, WORD(call->nonce));
	add(call, WORD(call->lease));
	add(call, WORD(call->tasks));
	add(call, WORD(BYTES_MAX));
	add(call, WORD(call->lost_max));
	add(call, WORD(call->dead_max));
	add(call, WORD(call->limit));
}

/* Never idempotent: what was claimed by a call whose answer is lost belongs to nobody until its lease ends. */
static int call_claim(struct queue *queue, size_t tasks, int limit, bool is_from_bottom,
		      store_cb *cb, void *arg)
{
	const struct queue_keys *keys = &queue->keys;
	uint8_t nonce[NONCE_BYTES];
	struct call call NOT_ZEROED;
	int r = random_bytes(nonce, sizeof nonce);

	if (r)
		return r;
	hex_print(nonce, sizeof nonce, call.nonce);
	call.count = 0;
	add_keys(&call, keys, is_from_bottom);
	add_arguments(&call, &queue->config, tasks, limit);
	for (size_t i = 0; i < keys->level_count; i++)
		add(&call, WORD(level_at(keys, i, is_from_bottom)->name));
	return store_script_keys(queue->store, SCRIPT_CLAIM, 0, call.key_count, call.words,
				 call.count, cb, arg);
}

int claim_sweep(struct queue *queue, store_cb *cb, void *arg)
{
	return call_claim(queue, 0, SWEEP_LIMIT, false, cb, arg);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

struct claiming {
	struct queue *queue;
	claim_cb *cb;
	void *arg;
	int64_t deadline_ms;
};

enum { ANSWER_NOW, ANSWER_DUE, ANSWER_EXPIRY, ANSWER_PROMOTED, ANSWER_EXPIRED, ANSWER_CLAIMS };
enum {
	CLAIM_NAME,
	CLAIM_LEVEL,
	CLAIM_FAILURES,
	CLAIM_LOST,
	CLAIM_RELEASED,
	CLAIM_EXPIRES,
	CLAIM_PAYLOAD
};

int64_t claim_next_due(const struct reply *reply)
{
	const int64_t due = reply_integer(reply_at(reply, ANSWER_DUE), -1);
	const int64_t expiry = reply_integer(reply_at(reply, ANSWER_EXPIRY), -1);
	const int64_t now = reply_integer(reply_at(reply, ANSWER_NOW), 0);
	const int64_t next = due < 0 || (expiry >= 0 && expiry < due) ? expiry : due;

	if (next < 0)
		return -1;
	return next > now ? next - now : 0;
}

bool claim_was_full(const struct reply *reply)
{
	return reply_integer(reply_at(reply, ANSWER_PROMOTED), 0) >= SWEEP_LIMIT ||
	       reply_integer(reply_at(reply, ANSWER_EXPIRED), 0) >= SWEEP_LIMIT;
}

static bool copy_text(char *ret, size_t size, const char *text, size_t len)
{
	if (len == 0 || len >= size)
		return false;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return true;
}

/* ID:TOKEN */
static bool read_name(struct claim *claim, const struct reply *reply)
{
	size_t len;
	const char *name = reply_text(reply, &len), *colon = memchr(name, ':', len);

	return colon && copy_text(claim->id, sizeof claim->id, name, (size_t)(colon - name)) &&
	       copy_text(claim->token, sizeof claim->token, colon + 1,
			 (size_t)(name + len - colon - 1));
}

/* NULL: no memory, or nothing that claim.lua says. */
static struct claim *read_claim(const struct claiming *claiming, const struct reply *reply)
{
	size_t level_len, len;
	const char *level = reply_text(reply_at(reply, CLAIM_LEVEL), &level_len);
	const char *payload = reply_text(reply_at(reply, CLAIM_PAYLOAD), &len);
	const int place = queue_level_find(&claiming->queue->keys, level, level_len);
	struct claim *claim = place < 0 ? NULL : malloc(sizeof *claim + len + 1);

	if (!claim)
		return NULL;
	if (!read_name(claim, reply_at(reply, CLAIM_NAME))) {
		free(claim);
		return NULL;
	}
	claim->level = (size_t)place;
	claim->failures = reply_integer(reply_at(reply, CLAIM_FAILURES), 0);
	claim->lost = reply_integer(reply_at(reply, CLAIM_LOST), 0);
	claim->released = reply_integer(reply_at(reply, CLAIM_RELEASED), 0);
	claim->expires_ms = reply_integer(reply_at(reply, CLAIM_EXPIRES), 0);
	claim->deadline_ms = claiming->deadline_ms;
	claim->len = len;
	memcpy(claim->payload, payload, len);
	claim->payload[len] = '\0';
	return claim;
}

/* What cannot be read here comes back when its lease has ended. */
static void on_claimed(int result, const struct reply *reply, void *arg)
{
	struct claiming *claiming = arg;
	const size_t answers = reply_count(reply);
	struct claim *claims[CLAIM_MAX] NOT_ZEROED;
	size_t count = 0;

	KILL_POINT("claim-answered");
	if (result) {
		claiming->cb(result, reply_text(reply, NULL), NULL, 0, -1, claiming->arg);
		free(claiming);
		return;
	}
	for (size_t i = ANSWER_CLAIMS; i < answers && count < CLAIM_MAX; i++) {
		claims[count] = read_claim(claiming, reply_at(reply, i));
		if (claims[count])
			count++;
	}
	if (count == 0 && answers > ANSWER_CLAIMS)
		result = REASON_INTERNAL;
	claiming->cb(result, "", claims, count, claim_next_due(reply), claiming->arg);
	free(claiming);
}

int queue_claim(struct queue *queue, size_t count, claim_cb *cb, void *arg)
{
	const int64_t aging = queue->config.aging;
	struct claiming *claiming = malloc(sizeof *claiming);
	bool is_from_bottom = false;
	int r;

	if (!claiming)
		return -ENOMEM;
	if (count > CLAIM_MAX)
		count = CLAIM_MAX;
	if (count > 0 && aging > 0)
		is_from_bottom = ++queue->turns % (uint64_t)aging == 0;
	/* The lease begins when the script runs, which is not before now. */
	*claiming = (struct claiming){.queue = queue,
				      .cb = cb,
				      .arg = arg,
				      .deadline_ms = clock_ms() + queue->config.lease_ms};
	r = call_claim(queue, count, LIMIT, is_from_bottom, on_claimed, claiming);
	if (r)
		free(claiming);
	else
		KILL_POINT("claim-queued");
	return r;
}
