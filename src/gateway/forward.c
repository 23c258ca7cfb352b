/* forward.c - a plain HTTP request to the member and its response to the client; the framing of both is made anew.
 *
 * Here: the request, and what is waited for. forward_response.c: the response. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dial/head.h"
#include "gateway/forward_parts.h"

/* A client has this long for any body of a request, and longer at the rate of body_rate. */
#define BODY_GRACE_MS 60000

void forward_free(struct forward *f)
{
	if (!f)
		return;
	buffer_fini(&f->in);
	free(f);
}

static bool is_idempotent(struct text method)
{
	/* RFC 9110 9.2.2 */
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (method.len == strlen(methods[i]) && !memcmp(method.at, methods[i], method.len))
			return true;
	return false;
}

int forward_new(struct forward **ret, const struct http_request *request, size_t head_len)
{
	struct forward *f = calloc(1, sizeof *f);

	if (!f)
		return REASON_INTERNAL;
	f->head_len = head_len;
	f->is_idempotent = is_idempotent(request->method);
	f->is_v10 = request->minor == 0;
	f->wants_upgrade = request->upgrade;
	f->first_request = body_of(request->framing, request->framing, request->length);
	f->is_replayable = true;
	buffer_init(&f->in, RESPONSE_IN_CAP);
	*ret = f;
	return 0;
}

/* Forgets what was sent to the member before. */
static void rewind_request(struct exchange *x)
{
	struct forward *f = x->forward;

	f->request = f->first_request;
	f->cursor = f->head_len;
	f->has_left = f->has_head = false;
	f->head_due_ms = 0;
	f->scan = (struct http_scan){0};
	buffer_fini(&f->in);
}

bool forward_is_cut(const struct exchange *x)
{
	return x->forward->has_head && !x->forward->response.is_done;
}

/* May the request be sent to another member after `reason`? */
static bool may_repeat(const struct exchange *x, int reason)
{
	const struct forward *f = x->forward;

	if (x->has_answer || !f->is_replayable)
		return false;
	/* A 407 proves that nothing was forwarded (docs/design.md, section 6). */
	return !f->has_left || reason == REASON_PROXY_AUTH || f->is_idempotent;
}

void forward_fail(struct exchange *x, int reason)
{
	record_try(x, reason);
	if (may_repeat(x, reason))
		exchange_retry(x, reason);
	else
		exchange_end(x, reason);
}

/* --- the request -------------------------------------------------------------------------------------------------- */

/* Gives the upstream what client->in holds behind the cursor. 0 or a reason. */
static int send_body(struct exchange *x)
{
	struct forward *f = x->forward;
	struct buffer *in = &x->client->in;
	size_t used;
	int r;

	if (f->request.is_done || buffer_len(in) <= f->cursor || end_is_full(&x->upstream))
		return 0;
	r = body_pass(&f->request, &x->upstream, buffer_at(in) + f->cursor,
		      buffer_len(in) - f->cursor, &used);
	f->cursor += used;
	if (r == -EPROTO)
		return REASON_REQUEST_SYNTAX;
	/* Kept for another member as long as it is small, and leaves room for what is still to come. */
	if (f->cursor - f->head_len > x->gateway->config.retry_body_bytes || !buffer_room(in))
		f->is_replayable = false;
	if (!f->is_replayable) {
		buffer_consume(in, f->cursor);
		f->cursor = 0;
	}
	/* A broken upstream may have answered already: its response, or its end, is read first. */
	return 0;
}

void forward_forget_request(struct exchange *x)
{
	struct forward *f = x->forward;

	buffer_consume(&x->client->in, f->cursor < buffer_len(&x->client->in)
					   ? f->cursor
					   : buffer_len(&x->client->in));
	f->cursor = 0;
	f->is_replayable = false;
}

/* A proxy may be the last that a TRACE reaches, and shows it to the client with the credentials that it got from us. */
static bool shows_secret(const struct exchange *x, const struct endpoint *proxy)
{
	return !strcmp(x->method, "TRACE") && dial_forwards(proxy) && proxy->secret;
}

void forward_begin(struct exchange *x)
{
	const struct endpoint *proxy = forward_proxy(x);
	struct forward *f = x->forward;
	struct http_request request;
	struct buffer head;
	int r;

	rewind_request(x);
	if (shows_secret(x, proxy)) {
		forward_fail(x, REASON_PROXY_CANNOT);
		return;
	}
	buffer_init(&head, 2 * HTTP_HEAD_MAX);
	r = http_parse_request(&request, buffer_at(&x->client->in), f->head_len);
	if (!r)
		r = head_write_request(&head, &request, dial_forwards(proxy) ? proxy : NULL);
	if (r) {
		buffer_fini(&head);
		exchange_end(x, r < 0 ? REASON_INTERNAL : r);
		return;
	}
	f->has_left = true;
	r = end_write(&x->upstream, buffer_at(&head), buffer_len(&head));
	buffer_fini(&head);
	if (!r)
		r = send_body(x);
	if (r > 0)
		exchange_end(x, r);
	else
		forward_settle(x);
}

/* --- both --------------------------------------------------------------------------------------------------------- */

/* By when a client must have sent the next bytes of its body: those that drip move it by little. */
static int64_t body_deadline(const struct exchange *x)
{
	uint64_t received = x->client->end.bytes_in - x->client_in;

	return x->started_us / 1000 + BODY_GRACE_MS +
	       (int64_t)(received * 1000 / x->gateway->config.body_rate);
}

/* While bytes of a request or a response come, silence ends the exchange, or a body that drips; between the two there is one
 * deadline, which a head that drips does not move. */
static int64_t deadline(struct exchange *x)
{
	const struct gateway_config *config = &x->gateway->config;
	struct forward *f = x->forward;
	int64_t now = clock_ms(), idle = now + config->idle_ms;

	if (f->has_head)
		return idle;
	if (!f->request.is_done) {
		/* The upstream's slowness is not the client's. */
		if (!end_is_full(&x->upstream) && body_deadline(x) < idle)
			return body_deadline(x);
		return idle;
	}
	if (!f->head_due_ms)
		f->head_due_ms = now + config->response_ms;
	return f->head_due_ms;
}

static void watch(struct exchange *x)
{
	struct forward *f = x->forward;
	struct client *client = x->client;
	int from_client = 0, from_upstream = 0;

	/* Also when its request is complete: a client that was reset shall not be waited for. */
	if (!client->end.has_ended && buffer_room(&client->in) &&
	    (f->request.is_done || (!end_is_full(&x->upstream) && !x->upstream.is_broken)))
		from_client |= STREAM_READ;
	if (end_is_full(&client->end))
		from_client |= STREAM_WRITE;
	if (!x->upstream.has_ended && !end_is_full(&client->end))
		from_upstream |= STREAM_READ;
	if (end_is_full(&x->upstream))
		from_upstream |= STREAM_WRITE;
	stream_want(&client->end.stream, from_client);
	stream_want(&x->upstream.stream, from_upstream);
	alarm_set(&client->alarm, deadline(x));
}

/* The client ended its side before its request was whole. */
static bool is_request_cut(const struct exchange *x)
{
	const struct client *client = x->client;

	return client->end.has_ended && !x->forward->request.is_done &&
	       buffer_len(&client->in) <= x->forward->cursor;
}

void forward_settle(struct exchange *x)
{
	struct forward *f = x->forward;
	struct end *client = &x->client->end;

	/* A head was queued for its body to join it. When the socket is known to be full, its event brings the rest out. */
	if (end_is_full(client) && !(client->stream.wanted & STREAM_WRITE) && end_flush(client))
		client->is_broken = true;
	if (client->is_broken || (is_request_cut(x) && !f->has_head)) {
		exchange_end(x, REASON_CLIENT_GONE);
	} else if (f->has_head && f->response.is_done && !end_is_full(client)) {
		forward_forget_request(x);
		exchange_end(x, REASON_OK);
	} else {
		watch(x);
	}
}

static void client_readable(struct exchange *x)
{
	int r;

	if (!client_read(x->client) && !x->client->end.has_ended)
		return;
	r = send_body(x);
	if (r > 0)
		exchange_end(x, r);
	else
		forward_settle(x);
}

void forward_ready(struct exchange *x, struct end *end, int ready)
{
	int r;

	if (ready & STREAM_WRITE) {
		/* A broken end shows in forward_settle(), or when its last words have been read. */
		r = end_flush(end);
		if (!r && end == &x->upstream)
			r = send_body(x);
		if (r > 0)
			exchange_end(x, r);
		else
			forward_settle(x);
	} else if (end == &x->upstream) {
		forward_read_response(x);
	} else {
		client_readable(x);
	}
}

void exchange_alarm(struct exchange *x)
{
	if (x->state != EXCHANGE_RELAY)
		return;
	if (x->forward && !x->forward->request.is_done && !end_is_full(&x->upstream)) {
		exchange_end(x, REASON_REQUEST_TIMEOUT);
	} else if (x->forward && !x->forward->has_head) {
		record_try(x, REASON_RESPONSE_TIMEOUT);
		exchange_end(x, REASON_RESPONSE_TIMEOUT);
	} else {
		exchange_end(x, REASON_IDLE_TIMEOUT);
	}
}
