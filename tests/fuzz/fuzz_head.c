/* fuzz_head.c - heads written anew on their way through (libFuzzer): what was accepted reads again as the same message.
 *
 * The first byte chooses request or response and what it becomes, the rest is a head. What must hold: our own parser takes
 * what we wrote; method, target and framing stay; nothing that ends at this hop passes; all else does, in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dial/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#define OUT_MAX (4 * HTTP_HEAD_MAX)
#define FIELDS_MAX (HTTP_FIELDS_MAX - 8) /* what we add has room */

static bool is_same(struct text a, struct text b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* Fields that we make ourselves, whatever the message said. */
static bool is_ours(const struct http_field *f)
{
	return text_is(f->name, "host") || text_is(f->name, "connection") ||
	       text_is(f->name, "upgrade") || text_is(f->name, "content-length") ||
	       text_is(f->name, "transfer-encoding") || text_is(f->name, "max-forwards") ||
	       text_is(f->name, "proxy-authorization") || text_is(f->name, "expect") ||
	       (f->name.len >= 9 && text_is((struct text){f->name.at, 9}, "fairlead-"));
}

/* Each field of `out` that is not ours is the next of `in` that does not end here, and all of those are there. */
static void check_fields(const struct http_field *in, size_t in_count, const struct http_field *out,
			 size_t out_count)
{
	size_t i = 0;

	for (size_t o = 0; o < out_count; o++) {
		if (is_ours(&out[o]))
			continue;
		while (i < in_count &&
		       (is_ours(&in[i]) || http_is_hop_by_hop(in, in_count, &in[i])))
			i++;
		CHECK(i < in_count && is_same(in[i].name, out[o].name) &&
		      is_same(in[i].value, out[o].value));
		i++;
	}
	for (; i < in_count; i++)
		CHECK(is_ours(&in[i]) || http_is_hop_by_hop(in, in_count, &in[i]));
}

static size_t framings(const struct http_field *fields, size_t count)
{
	return http_field_count(fields, count, "content-length") +
	       http_field_count(fields, count, "transfer-encoding");
}

static long head_of(const char *bytes, size_t len)
{
	struct http_scan scan = {0};

	return http_scan_head(&scan, bytes, len);
}

static void check_target(const struct http_request *r, const struct http_request *again)
{
	char host[ENDPOINT_HOST_MAX + 1], host_again[ENDPOINT_HOST_MAX + 1];

	CHECK(!http_canonical_host(r->host, host, sizeof host));
	CHECK(!http_canonical_host(again->host, host_again, sizeof host_again));
	CHECK(!strcmp(host, host_again) && r->port == again->port);
}

static void check_again(const struct http_request *r, const struct http_request *again,
			const struct endpoint *proxy)
{
	size_t secrets = http_field_count(again->fields, again->field_count, "proxy-authorization");

	CHECK(is_same(r->method, again->method) && again->minor == 1);
	CHECK(r->framing == again->framing && r->length == again->length);
	CHECK(framings(again->fields, again->field_count) <= 1);
	CHECK(r->upgrade == again->upgrade && (again->upgrade || !again->keep_alive));
	CHECK(again->form == (proxy ? HTTP_ABSOLUTE_FORM : HTTP_ORIGIN_FORM) ||
	      again->form == HTTP_ASTERISK_FORM);
	CHECK(secrets == (proxy && proxy->secret));
	check_fields(r->fields, r->field_count, again->fields, again->field_count);
	if (proxy)
		check_target(r, again);
}

static void check_request(struct text head, const struct endpoint *proxy)
{
	struct http_request r, again;
	struct buffer out;

	if (http_parse_request(&r, head.at, head.len) || r.form != HTTP_ABSOLUTE_FORM ||
	    r.field_count > FIELDS_MAX)
		return;
	buffer_init(&out, OUT_MAX);
	CHECK(!head_write_request(&out, &r, proxy));
	if (buffer_len(&out) <= HTTP_HEAD_MAX) {
		CHECK(head_of(buffer_at(&out), buffer_len(&out)) == (long)buffer_len(&out));
		CHECK(!http_parse_request(&again, buffer_at(&out), buffer_len(&out)));
		check_again(&r, &again, proxy);
	}
	buffer_fini(&out);
}

static void check_response(struct text head, const char *word, bool is_v10)
{
	const struct text method = {word, strlen(word)};
	struct http_response r, again;
	enum http_framing framing;
	struct buffer out;

	if (http_parse_response(&r, head.at, head.len, method) || r.field_count > FIELDS_MAX)
		return;
	framing = r.framing == HTTP_CHUNKED && is_v10 ? HTTP_UNTIL_CLOSE : r.framing;
	buffer_init(&out, OUT_MAX);
	CHECK(!head_write_response(&out, &r, framing, !is_v10, ""));
	if (buffer_len(&out) <= HTTP_HEAD_MAX) {
		CHECK(head_of(buffer_at(&out), buffer_len(&out)) == (long)buffer_len(&out));
		CHECK(!http_parse_response(&again, buffer_at(&out), buffer_len(&out), method));
		CHECK(again.status == r.status && again.framing == framing);
		CHECK(again.length == r.length && is_same(r.reason, again.reason));
		CHECK(framings(again.fields, again.field_count) <= 1);
		check_fields(r.fields, r.field_count, again.fields, again.field_count);
	}
	buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static char secret[] = "user:p%20w";
	static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS"};
	struct endpoint proxy = {.scheme = SCHEME_HTTP, .host = "192.0.2.1", .port = 3128};
	long len;

	if (size < 2)
		return 0;
	len = head_of((const char *)input + 1, size - 1);
	if (len <= 0)
		return 0;
	proxy.secret = input[0] & 4 ? secret : NULL;
	if (input[0] & 1)
		check_request((struct text){(const char *)input + 1, (size_t)len},
			      input[0] & 2 ? &proxy : NULL);
	else
		check_response((struct text){(const char *)input + 1, (size_t)len},
			       methods[input[0] / 4 % 4], input[0] & 2);
	return 0;
}
