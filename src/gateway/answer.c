/* answer.c - what the gateway says itself, in HTTP and in SOCKS. It holds nothing of the request but what was checked to be
 * harmless, and names a member only when it is told to (member_header). */
#include <stdio.h>
#include <string.h>

#include "dial/head.h"
#include "gateway/internal.h"

/* A Structured Fields String (RFC 8941) of what we say: a reason's word, and details that are ours or were checked to be
 * harmless. */
static int add_proxy_status(const struct exchange *x, const struct reason_row *row,
			    struct buffer *out)
{
	int r = buffer_printf(out, "Proxy-Status: %s", x->gateway->config.name);

	if (!r && *row->error)
		r = buffer_printf(out, "; error=%s", row->error);
	if (!r && x->received_status)
		r = buffer_printf(out, "; received-status=%d", x->received_status);
	if (!r && x->detail)
		return buffer_printf(out, "; details=\"%s: %s\"\r\n", row->word, x->detail);
	return r ? r : buffer_printf(out, "; details=\"%s\"\r\n", row->word);
}

int answer_fields(const struct exchange *x, struct buffer *out)
{
	int r = 0;

	if (x->is_session_moved && x->member)
		r = buffer_add_text(out, "Fairlead-Session: moved\r\n");
	if (!r && x->gateway->config.has_member_header && x->member)
		r = buffer_printf(out, "Fairlead-Member: \"%s\"; tries=%d\r\n", x->member->id,
				  x->tries);
	return r;
}

static const char *phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} table[] = {
	    {400, "Bad Request"},
	    {403, "Forbidden"},
	    {407, "Proxy Authentication Required"},
	    {408, "Request Timeout"},
	    {414, "URI Too Long"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"},
	    {501, "Not Implemented"},
	    {502, "Bad Gateway"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].status == status)
			return table[i].phrase;
	return "Error";
}

/* RFC 9110 10.2.3: whole seconds, rounded up. */
static int add_retry_after(const struct exchange *x, struct buffer *out)
{
	int64_t seconds =
	    x->retry_after_ms ? (x->retry_after_ms + 999) / 1000 : x->gateway->config.retry_after_s;

	return buffer_printf(out, "Retry-After: %lld\r\n", (long long)seconds);
}

/* RFC 7617, RFC 9110 11.7.1. */
static int add_challenge(const struct exchange *x, struct buffer *out)
{
	return buffer_printf(out, "Proxy-Authenticate: Basic realm=\"%s\", charset=\"UTF-8\"\r\n",
			     x->gateway->config.name);
}

/* A kept connection has no body, so that nobody can be mistaken about its end. */
static int compose_body(const struct exchange *x, const struct reason_row *row, struct buffer *out)
{
	bool has_detail = x->detail != NULL;
	char body[128 + IDENTITY_DETAIL_MAX];
	int r, len;

	if (x->keep_alive)
		return buffer_add_text(out, "Content-Length: 0\r\n\r\n");
	len = snprintf(body, sizeof body, "%s: %s%s%s\n", x->gateway->config.name, row->word,
		       has_detail ? ": " : "", has_detail ? x->detail : "");
	r = buffer_printf(
	    out, "Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
	    len);
	return r || !strcmp(x->method, "HEAD") ? r : buffer_add(out, body, (size_t)len);
}

static int compose(const struct exchange *x, const struct reason_row *row, struct buffer *out)
{
	int r = buffer_printf(out, "HTTP/1.1 %d %s\r\n", row->status, phrase(row->status));

	if (!r)
		r = add_proxy_status(x, row, out);
	if (!r && (row->status == 503 || row->status == 429))
		r = add_retry_after(x, out);
	if (!r && row->status == 407)
		r = add_challenge(x, out);
	if (!r)
		r = answer_fields(x, out);
	return r ? r : compose_body(x, row, out);
}

static void send_answer(struct exchange *x, struct buffer *out, int status)
{
	x->has_answer = true;
	x->status = status;
	if (end_write(&x->client->end, buffer_at(out), buffer_len(out)))
		x->keep_alive = false;
}

static void answer_http(struct exchange *x, const struct reason_row *row)
{
	struct buffer out;

	buffer_init(&out, 4096);
	if (!compose(x, row, &out))
		send_answer(x, &out, row->status);
	buffer_fini(&out);
}

/* What a SOCKS client is told depends on how far its handshake has come. */
static size_t compose_socks(const struct exchange *x, const struct reason_row *row, char *out)
{
	switch (x->client->protocol) {
	case CLIENT_SOCKS5_GREETING:
		return socks5_write_method(out, SOCKS_NO_METHOD);
	case CLIENT_SOCKS5_LOGIN:
		return socks5_write_login(out, false);
	case CLIENT_SOCKS5:
		return socks5_write_reply(out, row->socks);
	case CLIENT_SOCKS4:
		return socks4_write_reply(out, row->socks == 0);
	case CLIENT_UNKNOWN:
	case CLIENT_HTTP:
		break;
	}
	return 0;
}

static int answer_socks(struct exchange *x, const struct reason_row *row)
{
	char out[16];

	x->has_answer = true;
	return end_write(&x->client->end, out, compose_socks(x, row, out));
}

void answer_reason(struct exchange *x, int reason)
{
	const struct reason_row *row = reason_row(reason);

	if (x->has_answer || x->client->end.is_broken)
		return;
	if (x->client->protocol > CLIENT_HTTP) {
		if (answer_socks(x, row))
			x->client->end.is_broken = true;
	} else if (row->status) {
		answer_http(x, row);
	}
}

int answer_established(struct exchange *x)
{
	struct buffer out;
	int r;

	x->status = 200;
	if (x->client->protocol > CLIENT_HTTP)
		return answer_socks(x, reason_row(REASON_OK));
	x->has_answer = true;
	buffer_init(&out, 1024);
	r = buffer_add_text(&out, "HTTP/1.1 200 Connection established\r\n");
	if (!r)
		r = answer_fields(x, &out);
	if (!r)
		r = buffer_add(&out, "\r\n", 2);
	if (!r)
		r = end_write(&x->client->end, buffer_at(&out), buffer_len(&out));
	buffer_fini(&out);
	return r;
}

void answer_final(struct exchange *x, const struct http_request *request)
{
	bool is_trace = !strcmp(x->method, "TRACE");
	struct buffer out, trace;
	int r;

	buffer_init(&out, 2 * HTTP_HEAD_MAX);
	buffer_init(&trace, HTTP_HEAD_MAX + 1024);
	r = is_trace ? head_write_trace(&trace, request) : 0;
	if (!r)
		r = buffer_printf(&out, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n%s\r\n",
				  is_trace ? "Content-Type: message/http\r\n" : "",
				  buffer_len(&trace), x->keep_alive ? "" : "Connection: close\r\n");
	if (!r)
		r = buffer_add(&out, buffer_at(&trace), buffer_len(&trace));
	if (!r)
		send_answer(x, &out, 200);
	buffer_fini(&out);
	buffer_fini(&trace);
}
