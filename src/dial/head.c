/* head.c - request and response heads written anew. */
#include "dial/head.h"

#include <string.h>
#include <time.h>

#include "dial/credentials.h"

static int add_text(struct buffer *out, struct text text)
{
	return buffer_add(out, text.at, text.len);
}

static int add_field(struct buffer *out, const struct http_field *field)
{
	int r = add_text(out, field->name);

	if (!r)
		r = buffer_add(out, ": ", 2);
	if (!r)
		r = add_text(out, field->value);
	return r ? r : buffer_add(out, "\r\n", 2);
}

/* Fields between us and the client, which nobody else may send or see. */
static bool is_ours(struct text name)
{
	static const char prefix[] = "fairlead-";
	size_t len = sizeof prefix - 1;

	return name.len >= len && text_is((struct text){name.at, len}, prefix);
}

/* Host is made from the target, Max-Forwards counts down, and HTTP/1.0 expects nothing (RFC 9110 10.1.1). */
static bool is_written_anew(const struct http_request *request, struct text name)
{
	return text_is(name, "host") ||
	       (request->max_forwards >= 0 && text_is(name, "max-forwards")) ||
	       (request->minor == 0 && text_is(name, "expect"));
}

/* `request`: whose fields these are; NULL: a response's. */
static int add_fields(struct buffer *out, const struct http_field *fields, size_t count,
		      const struct http_request *request)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		if (!http_is_hop_by_hop(fields, count, &fields[i]) && !is_ours(fields[i].name) &&
		    !(request && is_written_anew(request, fields[i].name)))
			r = add_field(out, &fields[i]);
	return r;
}

static int add_framing(struct buffer *out, enum http_framing framing, uint64_t length)
{
	switch (framing) {
	case HTTP_CHUNKED:
		return buffer_add_text(out, "Transfer-Encoding: chunked\r\n");
	case HTTP_LENGTH:
		return buffer_printf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
	case HTTP_NO_BODY:
	case HTTP_UNTIL_CLOSE:
		break;
	}
	return 0;
}

static int add_authority(struct buffer *out, const struct http_request *request)
{
	char host[ENDPOINT_HOST_MAX + 1];
	int r = http_canonical_host(request->host, host, sizeof host);
	bool is_v6 = !r && strchr(host, ':');

	if (!r)
		r = buffer_printf(out, is_v6 ? "[%s]" : "%s", host);
	if (!r && request->port != 80)
		r = buffer_printf(out, ":%u", request->port);
	return r;
}

/* What a client may keep open ends here; an upgrade is the one thing that a connection is asked for. */
static int add_connection(struct buffer *out, const struct http_field *fields, size_t count,
			  bool is_upgrade, const char *otherwise)
{
	const struct http_field *upgrade = is_upgrade ? http_find(fields, count, "upgrade") : NULL;
	int r;

	if (!upgrade)
		return buffer_add_text(out, otherwise);
	r = buffer_add_text(out, "Connection: upgrade\r\n");
	return r ? r : add_field(out, upgrade);
}

int head_write_request(struct buffer *out, const struct http_request *request,
		       const struct endpoint *proxy)
{
	int r = add_text(out, request->method);

	if (!r)
		r = buffer_add_text(out, proxy ? " http://" : " ");
	if (!r && proxy)
		r = add_authority(out, request);
	/* OPTIONS without a path: "*" for the target itself, nothing behind the authority for a proxy (RFC 9112 3.2.4). */
	if (!r && request->path.len && *request->path.at == '?')
		r = buffer_add(out, "/", 1);
	if (!r && !(proxy && text_is(request->path, "*")))
		r = add_text(out, request->path);
	if (!r)
		r = buffer_add_text(out, " HTTP/1.1\r\nHost: ");
	if (!r)
		r = add_authority(out, request);
	if (!r)
		r = buffer_add(out, "\r\n", 2);
	if (!r && proxy)
		r = credentials_add_basic(out, proxy);
	if (!r)
		r = add_fields(out, request->fields, request->field_count, request);
	if (!r && request->max_forwards > 0)
		r = buffer_printf(out, "Max-Forwards: %lld\r\n",
				  (long long)request->max_forwards - 1);
	if (!r)
		r = add_framing(out, request->framing, request->length);
	if (!r)
		r = add_connection(out, request->fields, request->field_count, request->upgrade,
				   "Connection: close\r\n");
	return r ? r : buffer_add(out, "\r\n", 2);
}

static int add_length_of_absent(struct buffer *out, const struct http_response *response)
{
	const struct http_field *length =
	    http_find(response->fields, response->field_count, "content-length");

	return length ? add_field(out, length) : 0;
}

int head_write_response(struct buffer *out, const struct http_response *response,
			enum http_framing framing, bool keep_alive, const char *extra)
{
	int r = buffer_printf(out, "HTTP/1.1 %d ", response->status);

	if (!r)
		r = add_text(out, response->reason);
	if (!r)
		r = buffer_add(out, "\r\n", 2);
	if (!r)
		r = add_fields(out, response->fields, response->field_count, NULL);
	if (!r)
		r = add_framing(out, framing, response->length);
	/* The length that a body would have, in answers to HEAD and in 304 (RFC 9110 8.6). */
	if (!r && framing == HTTP_NO_BODY && response->status >= 200 && response->status != 204)
		r = add_length_of_absent(out, response);
	if (!r)
		r = add_connection(
		    out, response->fields, response->field_count, response->status == 101,
		    keep_alive || response->status < 200 ? "" : "Connection: close\r\n");
	if (!r)
		r = buffer_add_text(out, extra);
	return r ? r : buffer_add(out, "\r\n", 2);
}

static bool is_secret(struct text name)
{
	return text_is(name, "authorization") || text_is(name, "proxy-authorization") ||
	       text_is(name, "cookie");
}

int head_write_trace(struct buffer *out, const struct http_request *request)
{
	int r = buffer_add_text(out, "TRACE ");

	if (!r)
		r = add_text(out, request->target);
	if (!r)
		r = buffer_printf(out, " HTTP/1.%d\r\n", request->minor);
	for (size_t i = 0; i < request->field_count && !r; i++)
		if (!is_secret(request->fields[i].name))
			r = add_field(out, &request->fields[i]);
	return r ? r : buffer_add(out, "\r\n", 2);
}

int head_write_date(struct buffer *out, int64_t wall_ms)
{
	const time_t now = (time_t)(wall_ms / 1000);
	char text[64];
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
	return buffer_add_text(out, text);
}
