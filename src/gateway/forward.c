/* forward.c - a plain HTTP request to the member and its response to the client; the framing of both is made anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/body.h"
#include "gateway/head.h"
#include "gateway/internal.h"

/* A head that lacks its last byte, and one read. */
#define RESPONSE_IN_CAP (HTTP_HEAD_MAX + END_READ_SIZE)

struct forward {
	size_t head_len; /* of the request, at the front of client->in */
	bool is_idempotent;
	bool is_v10; /* the client speaks HTTP/1.0 */
	bool is_head;
	bool wants_upgrade;
	struct body request, first_request, response;
	size_t cursor;       /* bytes of client->in that have been given to the upstream */
	bool is_replayable;  /* client->in still holds the request from its first byte */
	bool has_left;       /* a byte was written upstream behind the handshake */
	bool has_head;       /* the response's head was dealt with */
	int64_t head_due_ms; /* of the response; 0: the request is not out yet */
	struct buffer in;    /* of the upstream, until the response's head is whole */
	struct http_scan scan;
};

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
	f->is_head = text_is(request->method, "HEAD");
	f->wants_upgrade = request->upgrade;
	f->first_request =
	    (struct body){.from = request->framing,
			  .to = request->framing,
			  .left = request->length,
			  .is_done = request->framing == HTTP_NO_BODY ||
				     (request->framing == HTTP_LENGTH && !request->length)};
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

/* The member failed: another one, if the request may be sent again. */
static void fail(struct exchange *x, int reason)
{
	record_try(reason);
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

/* The request is behind us: what stands in client->in is the next one. */
static void forget_request(struct exchange *x)
{
	struct forward *f = x->forward;

	buffer_consume(&x->client->in, f->cursor < buffer_len(&x->client->in)
					   ? f->cursor
					   : buffer_len(&x->client->in));
	f->cursor = 0;
	f->is_replayable = false;
}

static void settle(struct exchange *x);

void forward_begin(struct exchange *x)
{
	const struct endpoint *proxy =
	    x->member ? &x->member->endpoint : x->gateway->config.upstream;
	struct forward *f = x->forward;
	struct http_request request;
	struct buffer head;
	int r;

	rewind_request(x);
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
		settle(x);
}

/* --- the response ------------------------------------------------------------------------------------------------- */

/* How the client gets the body: HTTP/1.0 knows no chunks. */
static enum http_framing framing_to_client(const struct forward *f,
					   const struct http_response *response)
{
	if (response->framing == HTTP_CHUNKED && f->is_v10)
		return HTTP_UNTIL_CLOSE;
	return response->framing;
}

static void give_head(struct exchange *x, const struct http_response *response)
{
	struct forward *f = x->forward;
	struct buffer head;
	int r;

	buffer_init(&head, 2 * HTTP_HEAD_MAX);
	r = head_write_response(&head, response, f->response.to, x->keep_alive);
	if (!r)
		r = end_queue(&x->client->end, buffer_at(&head), buffer_len(&head));
	buffer_fini(&head);
	x->has_answer = true;
	if (r)
		x->client->end.is_broken = true;
}

/* A final head, or a 101. */
static void take_final(struct exchange *x, const struct http_response *response)
{
	struct forward *f = x->forward;

	f->has_head = true;
	x->status = response->status;
	f->response =
	    (struct body){.from = response->framing,
			  .to = framing_to_client(f, response),
			  .left = response->length,
			  .is_done = response->framing == HTTP_NO_BODY ||
				     (response->framing == HTTP_LENGTH && !response->length)};
	/* Once it has answered, a member may close without reading the rest of the request. */
	if (f->response.to == HTTP_UNTIL_CLOSE || !f->request.is_done)
		x->keep_alive = false;
	give_head(x, response);
}

/* The connection becomes a tunnel; bytes behind the head are the first of it. */
static void switch_protocols(struct exchange *x, const struct http_response *response,
			     size_t head_len)
{
	struct forward *f = x->forward;
	struct buffer early = f->in;

	record_try(REASON_OK);
	give_head(x, response);
	x->status = 101;
	x->keep_alive = false;
	forget_request(x);
	buffer_consume(&early, head_len);
	buffer_init(&f->in, RESPONSE_IN_CAP);
	x->forward = NULL;
	forward_free(f);
	if (buffer_len(&early) && end_write(&x->client->end, buffer_at(&early), buffer_len(&early)))
		x->client->end.is_broken = true;
	buffer_fini(&early);
	tunnel_continue(x);
}

enum head_found {
	HEAD_PARTIAL,
	HEAD_INTERIM,
	HEAD_FINAL,
	HEAD_OVER, /* the exchange is a tunnel, has ended, or begins anew with another member */
};

/* Takes one head out of f->in. */
static enum head_found take_head(struct exchange *x)
{
	struct forward *f = x->forward;
	const struct text method = {x->method, strlen(x->method)};
	struct http_response response;
	long head = http_scan_head(&f->scan, buffer_at(&f->in), buffer_len(&f->in));

	if (head == 0 && buffer_room(&f->in))
		return HEAD_PARTIAL;
	if (head <= 0 || http_parse_response(&response, buffer_at(&f->in), (size_t)head, method)) {
		fail(x, head == 0 || head == -REASON_REQUEST_HEAD_SIZE ? REASON_RESPONSE_HEAD_SIZE
								       : REASON_RESPONSE_SYNTAX);
		return HEAD_OVER;
	}
	f->scan = (struct http_scan){0};
	x->received_status = response.status;
	if (response.status == 407) {
		fail(x, REASON_PROXY_AUTH);
		return HEAD_OVER;
	}
	if (response.status == 101) {
		if (f->wants_upgrade)
			switch_protocols(x, &response, (size_t)head);
		else
			fail(x, REASON_RESPONSE_SYNTAX);
		return HEAD_OVER;
	}
	if (response.status < 200) {
		/* RFC 9110 15.2: passed on, but not to HTTP/1.0. */
		f->response.to = HTTP_NO_BODY;
		if (!f->is_v10)
			give_head(x, &response);
		x->has_answer = false;
		buffer_consume(&f->in, (size_t)head);
		return HEAD_INTERIM;
	}
	record_try(REASON_OK);
	take_final(x, &response);
	buffer_consume(&f->in, (size_t)head);
	return HEAD_FINAL;
}

static void take_body(struct exchange *x, const char *bytes, size_t len)
{
	struct forward *f = x->forward;
	size_t used;
	int r;

	if (f->response.is_done)
		return;
	r = body_pass(&f->response, &x->client->end, bytes, len, &used);
	if (r == -EPROTO)
		exchange_end(x, REASON_RESPONSE_INCOMPLETE);
	else
		settle(x);
}

/* The upstream's end: complete only if the framing says so. */
static void upstream_ended(struct exchange *x)
{
	struct forward *f = x->forward;

	if (!f->has_head)
		fail(x, REASON_PROXY_RESET);
	else if (!f->response.is_done &&
		 (f->response.from != HTTP_UNTIL_CLOSE || x->upstream.is_broken ||
		  body_finish(&f->response, &x->client->end)))
		exchange_end(x, REASON_RESPONSE_INCOMPLETE);
	else
		settle(x);
}

static void upstream_readable(struct exchange *x)
{
	struct forward *f = x->forward;
	enum head_found found;
	char *bytes;
	ssize_t n = end_read(&x->upstream, &bytes);

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		upstream_ended(x);
		return;
	}
	if (f->has_head) {
		take_body(x, bytes, (size_t)n);
		return;
	}
	if (buffer_add(&f->in, bytes, (size_t)n)) {
		fail(x, REASON_RESPONSE_HEAD_SIZE);
		return;
	}
	do
		found = take_head(x);
	while (found == HEAD_INTERIM);
	if (found == HEAD_PARTIAL)
		settle(x); /* an interim response may be waiting to be written */
	if (found != HEAD_FINAL)
		return;
	if (buffer_len(&f->in))
		take_body(x, buffer_at(&f->in), buffer_len(&f->in));
	else
		settle(x);
	if (x->state == EXCHANGE_RELAY)
		buffer_fini(&f->in);
}

/* --- both --------------------------------------------------------------------------------------------------------- */

/* While bytes of a request or a response come, only silence ends the exchange; between the two there is one deadline, which a
 * head that drips does not move. */
static int64_t deadline(struct exchange *x)
{
	const struct gateway_config *config = &x->gateway->config;
	struct forward *f = x->forward;
	int64_t now = clock_ms();

	if (f->has_head || !f->request.is_done)
		return now + config->idle_ms;
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

/* Ends the exchange when its response is out; else says what is waited for. */
static void settle(struct exchange *x)
{
	struct forward *f = x->forward;
	struct end *client = &x->client->end;

	/* A head was queued for its body to join it. When the socket is known to be full, its event brings the rest out. */
	if (end_is_full(client) && !(client->stream.wanted & STREAM_WRITE) && end_flush(client))
		client->is_broken = true;
	if (client->is_broken || (is_request_cut(x) && !f->has_head)) {
		exchange_end(x, REASON_CLIENT_GONE);
	} else if (f->has_head && f->response.is_done && !end_is_full(client)) {
		forget_request(x);
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
		settle(x);
}

void forward_ready(struct exchange *x, struct end *end, int ready)
{
	int r;

	if (ready & STREAM_WRITE) {
		/* A broken end shows in settle(), or when its last words have been read. */
		r = end_flush(end);
		if (!r && end == &x->upstream)
			r = send_body(x);
		if (r > 0)
			exchange_end(x, r);
		else
			settle(x);
	} else if (end == &x->upstream) {
		upstream_readable(x);
	} else {
		client_readable(x);
	}
}

void exchange_alarm(struct exchange *x)
{
	if (x->state != EXCHANGE_RELAY)
		return;
	if (x->forward && !x->forward->request.is_done)
		exchange_end(x, REASON_REQUEST_TIMEOUT);
	else if (x->forward && !x->forward->has_head)
		exchange_end(x, REASON_RESPONSE_TIMEOUT);
	else
		exchange_end(x, REASON_IDLE_TIMEOUT);
}
