/* answer.c - responses that the gateway makes itself. They hold nothing of the request and no address of a member. */
#include <stdio.h>
#include <string.h>

#include "gateway/internal.h"

/* A Structured Fields String (RFC 8941) of what we say: reasons and statuses only. */
static int add_proxy_status(const struct exchange *x, const struct reason_row *row,
			    struct buffer *out)
{
	int r = buffer_printf(out, "Proxy-Status: %s", x->gateway->config.name);

	if (!r && *row->error)
		r = buffer_printf(out, "; error=%s", row->error);
	if (!r && x->received_status)
		r = buffer_printf(out, "; received-status=%d", x->received_status);
	return r ? r : buffer_printf(out, "; details=\"%s\"\r\n", row->word);
}

static const char *phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} table[] = {
	    {400, "Bad Request"},
	    {403, "Forbidden"},
	    {408, "Request Timeout"},
	    {414, "URI Too Long"},
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

static int compose(const struct exchange *x, const struct reason_row *row, struct buffer *out)
{
	bool is_head = !strcmp(x->method, "HEAD");
	char body[128];
	int len = snprintf(body, sizeof body, "%s: %s\n", x->gateway->config.name, row->word);
	int r = buffer_printf(out, "HTTP/1.1 %d %s\r\n", row->status, phrase(row->status));

	if (!r)
		r = add_proxy_status(x, row, out);
	if (!r && row->status == 503)
		r = buffer_printf(out, "Retry-After: %lld\r\n",
				  (long long)x->gateway->config.retry_after_s);
	if (!r)
		r = buffer_printf(
		    out,
		    "Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		    len);
	if (!r && !is_head)
		r = buffer_add(out, body, (size_t)len);
	return r;
}

static void send_answer(struct exchange *x, struct buffer *out, int status)
{
	x->has_answer = true;
	x->status = status;
	if (end_write(&x->client->end, buffer_at(out), buffer_len(out)))
		x->keep_alive = false;
}

void answer_reason(struct exchange *x, int reason)
{
	const struct reason_row *row = reason_row(reason);
	struct buffer out;

	if (!row->status || x->has_answer || x->client->end.is_broken)
		return;
	x->keep_alive = false;
	buffer_init(&out, 2048);
	if (!compose(x, row, &out))
		send_answer(x, &out, row->status);
	buffer_fini(&out);
}

void answer_options(struct exchange *x)
{
	struct buffer out;

	buffer_init(&out, 512);
	if (!buffer_printf(&out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%s\r\n",
			   x->keep_alive ? "" : "Connection: close\r\n"))
		send_answer(x, &out, 200);
	buffer_fini(&out);
}
