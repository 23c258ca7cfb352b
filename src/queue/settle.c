/* settle.c - how claims end: gathered over a turn of the loop, one call for up to 128. */
#include "queue/settle.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kill_point.h"
#include "queue/internal.h"

#define OPS_MAX ((size_t)128) /* of one call of lua/settle.lua */
#define REASON_MAX ((size_t)200)
#define WORDS_OP ((size_t)5)
#define KEYS 8 /* before the retry lists */

static const char *const verbs[] = {
    [SETTLE_ACK] = "ack",         [SETTLE_NACK] = "nack",     [SETTLE_DEAD] = "dead",
    [SETTLE_RELEASE] = "release", [SETTLE_EXTEND] = "extend",
};

struct op {
	settle_cb *cb;
	void *arg;
	const char *verb;
	char *reason; /* NULL: none */
	char name[CLAIM_NAME_MAX + 1];
	char number[QUEUE_NUMBER_SIZE];
};

struct settle_call {
	TAILQ_ENTRY(settle_call) link;
	size_t count;
	struct op ops[OPS_MAX];
};

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void op_finish(struct op *op, int result, const char *error)
{
	if (op->cb)
		op->cb(result, error, op->arg);
	free(op->reason);
}

static void call_finish(struct settle_call *call, int result, const char *error)
{
	for (size_t i = 0; i < call->count; i++)
		op_finish(&call->ops[i], result, error);
	free(call);
}

static int outcome(const struct reply *reply)
{
	switch (reply_integer(reply, -1)) {
	case 0:
		return 0;
	case 1:
		return REASON_CLAIM_STALE;
	case 2:
		return REASON_CLAIM_DEAD;
	default:
		return REASON_INTERNAL;
	}
}

static void on_settled(int result, const struct reply *reply, void *arg)
{
	struct settle_call *call = arg;

	KILL_POINT("settle-answered");
	if (result) {
		call_finish(call, result, reply_text(reply, NULL));
		return;
	}
	for (size_t i = 0; i < call->count; i++)
		op_finish(&call->ops[i], outcome(reply_at(reply, i)), "");
	free(call);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool is_same(const struct op *op, const struct op *other)
{
	return op->verb == other->verb && strcmp(op->number, other->number) == 0 && !op->reason &&
	       !other->reason;
}

/* The group that begins with the `*at`th operation; `count` is for the text of its size. Returns where the next word
 * goes. */
static struct word *add_group(struct word *word, const struct settle_call *call, size_t *at,
			      char count[QUEUE_NUMBER_SIZE])
{
	const struct op *first = &call->ops[*at];
	struct word *size = &word[3];

	*word++ = WORD(first->verb);
	*word++ = WORD(first->number);
	*word++ = WORD(first->reason ? first->reason : "");
	word++;
	do {
		const char *name = call->ops[(*at)++].name;

		*word++ = WORD(name);
	} while (*at < call->count && is_same(first, &call->ops[*at]));
	snprintf(count, QUEUE_NUMBER_SIZE, "%zd", word - size - 1);
	*size = WORD(count);
	return word;
}

/* The call's own copy of everything: the store repeats it when an answer is lost, and the tokens let it act only once. */
static int call_send(struct queue *queue, struct settle_call *call)
{
	const struct queue_keys *keys = &queue->keys;
	struct word words[KEYS + 2 * QUEUE_LEVELS_MAX + 4 + WORDS_OP * OPS_MAX] NOT_ZEROED;
	char dead_max[QUEUE_NUMBER_SIZE], failures_max[QUEUE_NUMBER_SIZE],
	    levels[QUEUE_NUMBER_SIZE], counts[OPS_MAX][QUEUE_NUMBER_SIZE];
	struct word *word = words;

	snprintf(dead_max, sizeof dead_max, "%" PRId64, queue->config.dead_max);
	snprintf(failures_max, sizeof failures_max, "%" PRId64, queue->config.failures_max);
	snprintf(levels, sizeof levels, "%zu", keys->level_count);
	*word++ = queue_key(keys, QUEUE_CLAIMS);
	*word++ = queue_key(keys, QUEUE_LEASES);
	*word++ = queue_key(keys, QUEUE_SETTLED);
	*word++ = queue_key(keys, QUEUE_SETTLED_BEFORE);
	*word++ = queue_key(keys, QUEUE_HELD);
	*word++ = queue_key(keys, QUEUE_LATER);
	*word++ = queue_key(keys, QUEUE_DEAD);
	*word++ = queue_key(keys, QUEUE_STATS);
	for (size_t i = 0; i < keys->level_count; i++)
		*word++ = WORD(keys->levels[i].retry);
	*word++ = WORD("");
	*word++ = WORD(dead_max);
	*word++ = WORD(failures_max);
	*word++ = WORD(levels);
	for (size_t i = 0; i < keys->level_count; i++)
		*word++ = WORD(keys->levels[i].name);
	for (size_t i = 0; i < call->count;)
		word = add_group(word, call, &i, counts[i]);
	return store_script_keys(queue->store, SCRIPT_SETTLE, STORE_IDEMPOTENT,
				 KEYS + keys->level_count, words, (size_t)(word - words),
				 on_settled, call);
}

/* At the end of a turn. */
static void send_all(void *arg)
{
	struct queue *queue = arg;
	struct settle_call *call;

	while ((call = TAILQ_FIRST(&queue->settling))) {
		TAILQ_REMOVE(&queue->settling, call, link);
		if (call_send(queue, call))
			call_finish(call, REASON_STORE_NOT_DONE, "");
		else
			KILL_POINT("settle-queued");
	}
}

/* The call that takes one more; NULL without memory. */
static struct settle_call *open_call(struct queue *queue)
{
	struct settle_call *call = TAILQ_LAST(&queue->settling, settle_calls);

	if (call && call->count < OPS_MAX)
		return call;
	call = malloc(sizeof *call);
	if (!call)
		return NULL;
	call->count = 0;
	TAILQ_INSERT_TAIL(&queue->settling, call, link);
	return call;
}

/* --- one settlement ----------------------------------------------------------------------------------------------- */

/* As lua/claim.lua makes them: what people give on a command line must not be able to refuse the others' call. */
static bool is_handle(const char *id, const char *token)
{
	const size_t id_len = strlen(id), token_len = strlen(token);

	return id_len >= 1 && id_len <= CLAIM_ID_MAX && strspn(id, "0123456789") == id_len &&
	       token_len >= 1 && token_len <= CLAIM_TOKEN_MAX &&
	       strspn(token, "0123456789abcdef-") == token_len;
}

/* Anything from half of the delay to the whole, which doubles with each failure, so that tasks that failed together
 * do not come back together. */
static int64_t backoff_ms(const struct queue_config *config, int64_t failures)
{
	int64_t delay = config->backoff_ms;

	for (int64_t i = 0; i < failures && delay > 0 && delay < config->backoff_max_ms; i++)
		delay *= 2;
	if (delay > config->backoff_max_ms)
		delay = config->backoff_max_ms;
	return delay - arc4random_uniform((uint32_t)(delay / 2 + 1));
}

static int64_t op_number(const struct queue *queue, const struct settlement *settlement)
{
	if (settlement->verb == SETTLE_NACK)
		return settlement->ms < 0 ? backoff_ms(&queue->config, settlement->failures)
					  : settlement->ms;
	if (settlement->verb == SETTLE_EXTEND)
		return settlement->ms ? settlement->ms : queue->config.lease_ms;
	return 0;
}

/* A reason is one value of a packed line: cut, without what would end it. NULL without memory. */
static char *copy_reason(const char *reason)
{
	char *copy = strndup(reason, REASON_MAX);

	for (char *c = copy; c && *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = ' ';
	return copy;
}

int queue_settle(struct queue *queue, const struct settlement *settlement, settle_cb *cb, void *arg)
{
	struct settle_call *call;
	struct op *op;
	char *reason = NULL;

	if (!is_handle(settlement->id, settlement->token))
		return -EINVAL;
	if (settlement->reason) {
		reason = copy_reason(settlement->reason);
		if (!reason)
			return -ENOMEM;
	}
	call = open_call(queue);
	if (!call) {
		free(reason);
		return -ENOMEM;
	}
	op = &call->ops[call->count++];
	op->cb = cb;
	op->arg = arg;
	op->verb = verbs[settlement->verb];
	op->reason = reason;
	snprintf(op->name, sizeof op->name, "%s:%s", settlement->id, settlement->token);
	snprintf(op->number, sizeof op->number, "%" PRId64, op_number(queue, settlement));
	loop_again(queue->loop);
	return 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void settling_init(struct queue *queue)
{
	TAILQ_INIT(&queue->settling);
	queue->hook = (struct turn_hook){.run = send_all, .arg = queue};
	loop_hook(queue->loop, &queue->hook);
}

void settling_fini(struct queue *queue)
{
	struct settle_call *call;

	loop_unhook(queue->loop, &queue->hook);
	while ((call = TAILQ_FIRST(&queue->settling))) {
		TAILQ_REMOVE(&queue->settling, call, link);
		call_finish(call, -ECANCELED, "");
	}
}
