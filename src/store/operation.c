/* operation.c - operations waiting and in flight, and the outcomes they end with. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/internal.h"

#define WORDS_MAX ((size_t)2100) /* a script's 9 keys and twice 256 items, with room to grow */
#define WAITING_MAX ((size_t)16384)
#define OUT_CAP ((size_t)64 << 20) /* one alone may be larger */

void operation_free(struct operation *op)
{
	if (!op)
		return;
	/* The words may hold a password. */
	if (op->bytes)
		explicit_bzero(op->bytes, op->len);
	free(op->bytes);
	free(op);
}

void operation_finish(struct operation *op, int result, const struct reply *reply)
{
	if (!op->is_greeting)
		metric_add(METRIC_STORE_OPS, result < 0 ? REASON_INTERNAL : result, 1);
	if (op->cb)
		op->cb(result, reply, op->arg);
	operation_free(op);
}

/* Formats the words as a RESP array into op->bytes. `tail_word`: the index of the word that op->tail points at. */
static int format(struct operation *op, const struct word *words, size_t count, size_t tail_word)
{
	const char *argv[WORDS_MAX] NOT_ZEROED;
	size_t lens[WORDS_MAX] NOT_ZEROED;
	char *bytes = NULL;
	long long len;

	if (count > WORDS_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		argv[i] = words[i].at;
		lens[i] = words[i].len;
	}
	len = redisFormatCommandArgv(&bytes, (int)count, argv, lens);
	if (len < 0)
		return -ENOMEM;
	op->bytes = bytes;
	op->len = (size_t)len;
	if (tail_word) {
		size_t head = (size_t)(strchr(bytes, '\n') - bytes) + 1;

		/* Each word is "$<len>\r\n<bytes>\r\n". */
		for (size_t i = 0; i < tail_word; i++)
			head += (size_t)snprintf(NULL, 0, "$%zu\r\n", lens[i]) + lens[i] + 2;
		op->tail = head;
	}
	return 0;
}

static int operation_new(struct operation **ret, const struct word *words, size_t count,
			 size_t tail_word)
{
	struct operation *op = calloc(1, sizeof *op);
	int r = op ? format(op, words, count, tail_word) : -ENOMEM;

	if (r) {
		free(op);
		return r;
	}
	op->script = -1;
	*ret = op;
	return 0;
}

static void wait_in_line(struct store *store, struct operation *op)
{
	TAILQ_INSERT_TAIL(&store->waiting, op, link);
	store->waiting_count++;
}

static void queue(struct store *store, struct operation *op, int flags, store_cb *cb, void *arg)
{
	op->cb = cb;
	op->arg = arg;
	op->flags = flags;
	op->deadline_ms = clock_ms() + store->config.timeout_ms;
	wait_in_line(store, op);
	loop_again(store->loop);
}

int store_command(struct store *store, int flags, const struct word *words, size_t count,
		  store_cb *cb, void *arg)
{
	struct operation *op;
	int r;

	if (store->is_ending || store->waiting_count >= WAITING_MAX)
		return -ENOBUFS;
	r = operation_new(&op, words, count, 0);
	if (!r)
		queue(store, op, flags, cb, arg);
	return r;
}

int store_script_keys(struct store *store, enum script_id id, int flags, size_t key_count,
		      const struct word *words, size_t count, store_cb *cb, void *arg)
{
	struct word all[WORDS_MAX] NOT_ZEROED;
	struct operation *op;
	char keys[24];
	int r;

	if (store->is_ending || store->waiting_count >= WAITING_MAX)
		return -ENOBUFS;
	if (count + 3 > WORDS_MAX)
		return -EMSGSIZE;
	snprintf(keys, sizeof keys, "%zu", key_count);
	all[0] = WORD("EVALSHA");
	all[1] = WORD(scripts[id].sha1);
	all[2] = WORD(keys);
	memcpy(all + 3, words, count * sizeof *words);
	r = operation_new(&op, all, count + 3, 2);
	if (r)
		return r;
	op->script = (int)id;
	queue(store, op, flags, cb, arg);
	return 0;
}

int store_script(struct store *store, enum script_id id, int flags, const struct word *words,
		 size_t count, store_cb *cb, void *arg)
{
	return store_script_keys(store, id, flags, (size_t)scripts[id].keys, words, count, cb, arg);
}

int operation_greet(struct store *store, const struct word *words, size_t count, store_cb *cb)
{
	struct operation *op;
	int r = operation_new(&op, words, count, 0);

	if (r)
		return r;
	op->cb = cb;
	op->arg = store;
	op->is_greeting = true;
	op->deadline_ms = store->phase_deadline_ms;
	op->start = store->out_position;
	r = buffer_add(&store->out, op->bytes, op->len);
	if (r) {
		operation_free(op);
		return r;
	}
	store->out_position += op->len;
	TAILQ_INSERT_TAIL(&store->sent, op, link);
	return 0;
}

/* The bytes of EVAL in place of those of EVALSHA: the script's text and the same tail. 0 or -ENOMEM. */
static int become_eval(struct operation *op)
{
	const struct script *script = &scripts[op->script];
	/* The array header of EVALSHA, with its line end, counts the same words. */
	size_t header = (size_t)(strchr(op->bytes, '\n') - op->bytes) + 1;
	struct buffer bytes;
	int r;

	buffer_init(&bytes, op->len + script->source_len + 64);
	r = buffer_add(&bytes, op->bytes, header);
	if (!r)
		r = buffer_printf(&bytes, "$4\r\nEVAL\r\n$%zu\r\n", script->source_len);
	if (!r)
		r = buffer_add(&bytes, script->source, script->source_len);
	if (!r)
		r = buffer_add(&bytes, "\r\n", 2);
	if (!r)
		r = buffer_add(&bytes, op->bytes + op->tail, op->len - op->tail);
	if (r) {
		buffer_fini(&bytes);
		return r;
	}
	free(op->bytes);
	op->len = buffer_len(&bytes);
	op->bytes = bytes.data;
	op->is_eval = true;
	return 0;
}

void operations_send(struct store *store)
{
	struct operation *op;

	while (store->state == STORE_READY && (op = TAILQ_FIRST(&store->waiting))) {
		if (buffer_len(&store->out) && buffer_len(&store->out) + op->len > OUT_CAP)
			return;
		op->start = store->out_position;
		if (buffer_add(&store->out, op->bytes, op->len))
			return;
		store->out_position += op->len;
		TAILQ_REMOVE(&store->waiting, op, link);
		store->waiting_count--;
		TAILQ_INSERT_TAIL(&store->sent, op, link);
	}
}

/* What waits longer than the store may be away fails at once: a request is not held up by a store known to be gone. */
static bool has_waited_enough(const struct store *store, const struct operation *op, int64_t now)
{
	if (now >= op->deadline_ms || store->trouble_is_final)
		return true;
	return store->state != STORE_READY && now - store->away_since_ms >= store->config.wait_ms;
}

void operations_expire(struct store *store)
{
	int64_t now = clock_ms();
	struct operation *op, *next;

	while ((op = TAILQ_FIRST(&store->failed))) {
		TAILQ_REMOVE(&store->failed, op, link);
		operation_finish(op, REASON_STORE_UNKNOWN, NULL);
	}
	for (op = TAILQ_FIRST(&store->waiting); op; op = next) {
		next = TAILQ_NEXT(op, link);
		if (!has_waited_enough(store, op, now))
			continue;
		TAILQ_REMOVE(&store->waiting, op, link);
		store->waiting_count--;
		operation_finish(op, op->may_be_done ? REASON_STORE_UNKNOWN : REASON_STORE_NOT_DONE,
				 NULL);
		/* The callback may have queued more; those stand at the end, so `next` is still right unless it was NULL. */
	}
	op = TAILQ_FIRST(&store->sent);
	if (op && now >= op->deadline_ms)
		connection_lost(store, "no answer in time");
}

void operations_lost(struct store *store)
{
	struct operations lost = TAILQ_HEAD_INITIALIZER(lost),
			  again = TAILQ_HEAD_INITIALIZER(again);
	struct operation *op;

	TAILQ_CONCAT(&lost, &store->sent, link);
	while ((op = TAILQ_FIRST(&lost))) {
		TAILQ_REMOVE(&lost, op, link);
		if (op->is_greeting) {
			operation_free(op);
		} else if (op->start >= store->out_written || op->flags & STORE_IDEMPOTENT) {
			op->may_be_done = op->may_be_done || op->start < store->out_written;
			TAILQ_INSERT_TAIL(&again, op, link);
			store->waiting_count++;
		} else {
			TAILQ_INSERT_TAIL(&store->failed, op, link);
		}
	}
	/* Older than all that waits. */
	TAILQ_CONCAT(&again, &store->waiting, link);
	TAILQ_CONCAT(&store->waiting, &again, link);
	loop_again(store->loop);
}

/* Takes the right way after an error reply; the operation goes on or ends. */
static void refuse(struct store *store, struct operation *op, const struct reply *reply)
{
	const char *error = reply_text(reply, NULL);

	op->may_be_done = false;
	switch (reply_classify(error, op->script >= 0)) {
	case ERROR_NOSCRIPT:
		if (op->script < 0 || op->is_eval || become_eval(op))
			break;
		wait_in_line(store, op);
		loop_again(store->loop);
		return;
	case ERROR_TRANSIENT:
		wait_in_line(store, op);
		connection_drain(store, error);
		return;
	case ERROR_PARTIAL:
		if (store->config.is_daemon)
			log_error("a script stopped, maybe after a write",
				  LOG_TEXT("script", scripts[op->script].name),
				  LOG_TEXT("error", error));
		operation_finish(op, REASON_STORE_PARTIAL, reply);
		return;
	case ERROR_REFUSED:
		break;
	}
	operation_finish(op, REASON_STORE_REFUSED, reply);
}

static void done(struct store *store, struct operation *op, const struct reply *reply)
{
	if (!op->is_greeting && store->is_unproven)
		connection_prove(store);
	operation_finish(op, 0, reply);
}

void operation_answered(struct store *store, const struct reply *reply)
{
	struct operation *op = TAILQ_FIRST(&store->sent);

	TAILQ_REMOVE(&store->sent, op, link);
	if (reply_kind(reply) == REPLY_ERROR && !op->is_greeting)
		refuse(store, op, reply);
	else
		done(store, op, reply);
}
