/* forward_response.c - the member's response on its way to the client. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "dial/head.h"
#include "gateway/forward_parts.h"

/* How the client gets the body: HTTP/1.0 knows no chunks. */
static enum http_framing framing_to_client(const struct forward *f,
					   const struct http_response *response)
{
	if (response->framing == HTTP_CHUNKED && f->is_v10)
		return HTTP_UNTIL_CLOSE;
	return response->framing;
}

/* What a final response gets from us: RFC 9110 6.6.1 demands a Date of whoever passes on a response without one. */
static int add_extra(const struct exchange *x, const struct http_response *response,
		     struct buffer *out)
{
	int r = 0;

	if (response->status >= 200 && !http_find(response->fields, response->field_count, "date"))
		r = head_write_date(out, clock_wall_ms());
	if (!r && response->status >= 200)
		r = answer_fields(x, out);
	return r ? r : buffer_add(out, "", 1);
}

static void give_head(struct exchange *x, const struct http_response *response)
{
	struct forward *f = x->forward;
	struct buffer head, extra;
	int r;

	buffer_init(&head, 2 * HTTP_HEAD_MAX);
	buffer_init(&extra, 4096);
	r = add_extra(x, response, &extra);
	if (!r)
		r = head_write_response(&head, response, f->response.to, x->keep_alive,
					buffer_at(&extra));
	if (!r)
		r = end_queue(&x->client->end, buffer_at(&head), buffer_len(&head));
	buffer_fini(&head);
	buffer_fini(&extra);
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
	f->response = body_of(response->framing, framing_to_client(f, response), response->length);
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

	record_try(x, REASON_OK);
	give_head(x, response);
	x->status = 101;
	x->keep_alive = false;
	forward_forget_request(x);
	buffer_consume(&early, head_len);
	buffer_init(&f->in, RESPONSE_IN_CAP);
	x->forward = NULL;
	forward_free(f);
	if (buffer_len(&early) && end_write(&x->client->end, buffer_at(&early), buffer_len(&early)))
		x->client->end.is_broken = true;
	buffer_fini(&early);
	tunnel_continue(x);
}

/* RFC 9110 7.8, 15.2.2: only to what the client asked for, and not while its request is still on its way, which would
 * leave the rest in the tunnel. */
static bool may_switch(const struct forward *f, const struct http_response *response)
{
	const struct http_field *upgrade =
	    http_find(response->fields, response->field_count, "upgrade");

	return f->wants_upgrade && f->request.is_done && upgrade &&
	       text_is(upgrade->value, "websocket");
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
	int r;

	if (head == 0 && buffer_room(&f->in))
		return HEAD_PARTIAL;
	if (head > 0)
		r = http_parse_response(&response, buffer_at(&f->in), (size_t)head, method);
	else
		r = head == -REASON_REQUEST_SYNTAX ? REASON_RESPONSE_SYNTAX
						   : REASON_RESPONSE_HEAD_SIZE;
	if (r) {
		forward_fail(x, r);
		return HEAD_OVER;
	}
	f->scan = (struct http_scan){0};
	x->received_status = response.status;
	if (response.status == 407) {
		/* Behind a tunnel it is the target's, which says nothing of the member. */
		forward_fail(x, dial_forwards(forward_proxy(x)) ? REASON_PROXY_AUTH
								: REASON_TARGET_FAILED);
		return HEAD_OVER;
	}
	if (response.status == 101) {
		if (may_switch(f, &response))
			switch_protocols(x, &response, (size_t)head);
		else
			forward_fail(x, REASON_RESPONSE_SYNTAX);
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
	record_try(x, REASON_OK);
	record_status(x, response.status);
	take_final(x, &response);
	buffer_consume(&f->in, (size_t)head);
	return HEAD_FINAL;
}

static void take_body(struct exchange *x, const char *bytes, size_t len)
{
	struct forward *f = x->forward;
	size_t used;
	int r;

	if (f->response.is_done) {
		forward_settle(x); /* what stands behind it is nobody's */
		return;
	}
	r = body_pass(&f->response, &x->client->end, bytes, len, &used);
	if (r == -EPROTO)
		exchange_end(x, REASON_RESPONSE_INCOMPLETE);
	else
		forward_settle(x);
}

/* The upstream's end: complete only if the framing says so. */
static void upstream_ended(struct exchange *x)
{
	struct forward *f = x->forward;

	if (!f->has_head)
		forward_fail(x, REASON_PROXY_RESET);
	else if (!f->response.is_done &&
		 (f->response.from != HTTP_UNTIL_CLOSE || x->upstream.is_broken ||
		  stream_is_truncated(&x->upstream.stream) ||
		  body_finish(&f->response, &x->client->end)))
		exchange_end(x, REASON_RESPONSE_INCOMPLETE);
	else
		forward_settle(x);
}

void forward_read_response(struct exchange *x)
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
		forward_fail(x, REASON_RESPONSE_HEAD_SIZE);
		return;
	}
	do
		found = take_head(x);
	while (found == HEAD_INTERIM);
	if (found == HEAD_PARTIAL)
		forward_settle(x); /* an interim response may be waiting to be written */
	if (found != HEAD_FINAL)
		return;
	if (buffer_len(&f->in))
		take_body(x, buffer_at(&f->in), buffer_len(&f->in));
	else
		forward_settle(x);
	if (x->state == EXCHANGE_RELAY)
		buffer_fini(&f->in);
}
