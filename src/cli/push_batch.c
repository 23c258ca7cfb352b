/* push_batch.c - tasks on their way into a queue, in calls of many, in order. */
#include "cli/push_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Payloads of one call: a script runs alone, and its arguments are in memory twice. */
#define CALL_BYTES ((size_t)4 << 20)
#define BYTES_CAP ((size_t)64 << 20)

void push_batch_init(struct push_batch *batch, struct session *session, const char *unit)
{
	*batch = (struct push_batch){.session = session, .unit = unit};
	buffer_init(&batch->bytes, BYTES_CAP);
}

void push_batch_fini(struct push_batch *batch)
{
	buffer_fini(&batch->bytes);
}

static void on_pushed(int result, const char *error, const bool *pushed, size_t count, void *arg)
{
	struct push_batch *batch = arg;

	for (size_t i = 0; i < count && !result; i++) {
		batch->pushed += pushed[i];
		batch->left_out += !pushed[i];
	}
	session_answered(batch->session, result, error);
}

static int ask(struct push_batch *batch)
{
	const struct queue *queue = batch->session->queue;
	struct push push = {
	    .level = queue_keys(queue)->levels[batch->way.level].name,
	    .is_urgent = batch->way.is_urgent,
	    .is_at = batch->way.is_at,
	    .when_ms = batch->way.when_ms,
	    .window_ms = conf_ms(&batch->session->cli->conf, CONF_WINDOW),
	};
	struct push_item items[PUSH_MAX];
	const char *bytes = buffer_at(&batch->bytes);

	for (size_t i = 0; i < batch->count; i++) {
		const struct push_slice *slice = &batch->slices[i];

		items[i] = (struct push_item){
		    .payload = {bytes + slice->payload_at, slice->payload_len},
		    .key = {bytes + slice->key_at, slice->key_len},
		};
	}
	return queue_push(batch->session->queue, &push, items, batch->count, on_pushed, batch);
}

/* Where it stopped, behind why. */
static int fail(struct push_batch *batch)
{
	bool is_unknown = batch->session->result == REASON_STORE_UNKNOWN ||
			  batch->session->result == REASON_STORE_PARTIAL;
	int r = session_failed(batch->session);

	cli_error(batch->session->cli,
		  "%" PRIu64 " tasks went in; %ss %" PRIu64 " to %" PRIu64
		  " %s, and what follows did not",
		  batch->pushed, batch->unit, batch->first, batch->last,
		  is_unknown ? "may have" : "did not");
	return r;
}

int push_batch_send(struct push_batch *batch)
{
	int r;

	if (batch->count == 0)
		return EXIT_FINE;
	r = ask(batch);
	batch->session->result = r;
	if (r || session_wait(batch->session))
		return fail(batch);
	batch->count = 0;
	buffer_consume(&batch->bytes, buffer_len(&batch->bytes));
	return EXIT_FINE;
}

static bool is_same_way(const struct push_way *a, const struct push_way *b)
{
	return a->level == b->level && a->is_urgent == b->is_urgent && a->is_at == b->is_at &&
	       a->when_ms == b->when_ms;
}

static bool is_enough(const struct push_batch *batch, size_t more)
{
	return batch->count == PUSH_MAX ||
	       (batch->count > 0 && buffer_len(&batch->bytes) + more > CALL_BYTES);
}

static int copy(struct push_batch *batch, const struct word *word, size_t *ret_at)
{
	*ret_at = buffer_len(&batch->bytes);
	return buffer_add(&batch->bytes, word->at, word->len);
}

int push_batch_add(struct push_batch *batch, const struct push_way *way,
		   const struct push_item *item, uint64_t number)
{
	struct push_slice *slice;
	int r = EXIT_FINE;

	if (!is_same_way(way, &batch->way) || is_enough(batch, item->payload.len + item->key.len))
		r = push_batch_send(batch);
	if (r)
		return r;
	if (batch->count == 0)
		batch->first = number;
	slice = &batch->slices[batch->count];
	*slice = (struct push_slice){.payload_len = item->payload.len, .key_len = item->key.len};
	if (copy(batch, &item->payload, &slice->payload_at) ||
	    copy(batch, &item->key, &slice->key_at)) {
		cli_error(batch->session->cli, "%s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	batch->way = *way;
	batch->last = number;
	batch->count++;
	return EXIT_FINE;
}
