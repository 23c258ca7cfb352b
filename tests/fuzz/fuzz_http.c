/* fuzz_http.c - the HTTP parser on arbitrary bytes (libFuzzer).
 *
 * The first byte chooses what the rest is, the second where it is cut. What must hold for every input: each structure
 * points into the input, a cut changes no verdict, no accepted head breaks the rules that the gateway relies on. */
#include <stdlib.h>
#include <string.h>

#include "base/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static long scan_in_steps(struct text t, size_t first, size_t step)
{
	struct http_scan scan = {0};
	size_t len = first < t.len ? first : t.len;
	long result = http_scan_head(&scan, t.at, len);

	while (result == 0 && len < t.len) {
		len = t.len - len > step ? len + step : t.len;
		result = http_scan_head(&scan, t.at, len);
	}
	return result;
}

static bool has_empty_line(const char *bytes, size_t len)
{
	size_t i;

	for (i = 4; i <= len; i++) {
		if (!memcmp(bytes + i - 4, "\r\n\r\n", 4))
			return true;
	}
	return false;
}

/* Returns the length of the head in `t`, or 0. */
static size_t check_scan(struct text t, size_t cut)
{
	long whole = scan_in_steps(t, t.len, t.len);

	CHECK(scan_in_steps(t, cut, t.len) == whole);
	CHECK(scan_in_steps(t, 0, 1) == whole);
	CHECK(whole == 0 || whole == -REASON_REQUEST_SYNTAX || whole == -REASON_REQUEST_URI_SIZE ||
	      whole == -REASON_REQUEST_HEAD_SIZE || (whole > 0 && (size_t)whole <= t.len));
	if (whole <= 0)
		return 0;
	CHECK((size_t)whole <= HTTP_HEAD_MAX && has_empty_line(t.at, (size_t)whole));
	CHECK(!has_empty_line(t.at, (size_t)whole - 1) && !memchr(t.at, '\0', (size_t)whole));
	return (size_t)whole;
}

static void check_inside(struct text part, struct text whole)
{
	CHECK(part.at >= whole.at && part.len <= whole.len);
	CHECK(part.at + part.len <= whole.at + whole.len);
}

static void check_fields(const struct http_field *fields, size_t count, struct text head)
{
	size_t i;

	CHECK(count <= HTTP_FIELDS_MAX);
	for (i = 0; i < count; i++) {
		check_inside(fields[i].name, head);
		check_inside(fields[i].value, head);
		CHECK(fields[i].name.len > 0 && fields[i].value.at > fields[i].name.at);
		CHECK(!memchr(fields[i].name.at, ' ', fields[i].name.len));
		CHECK(!memchr(fields[i].value.at, '\r', fields[i].value.len));
		CHECK(!memchr(fields[i].value.at, '\n', fields[i].value.len));
		(void)http_is_hop_by_hop(fields, count, &fields[i]);
	}
}

static void check_framing(enum http_framing framing, uint64_t length,
			  const struct http_field *fields, size_t count)
{
	size_t lengths = http_field_count(fields, count, "Content-Length");
	size_t codings = http_field_count(fields, count, "Transfer-Encoding");

	CHECK(length == 0 || framing == HTTP_LENGTH);
	CHECK(length <= INT64_MAX);
	if (framing == HTTP_LENGTH)
		CHECK(lengths == 1 && codings == 0);
	if (framing == HTTP_CHUNKED)
		CHECK(lengths == 0 && codings == 1 &&
		      text_is(http_find(fields, count, "transfer-encoding")->value, "chunked"));
	if (framing == HTTP_UNTIL_CLOSE)
		CHECK(lengths == 0 && codings == 0);
}

/* A canonical name stays as it is when it is read again. */
static void check_host(struct text host)
{
	char once[254], twice[254];

	if (http_canonical_host(host, once, sizeof(once)) != 0)
		return;
	CHECK(strlen(once) > 0 && strlen(once) <= 253);
	CHECK(http_canonical_host((struct text){once, strlen(once)}, twice, sizeof(twice)) == 0);
	CHECK(!strcmp(once, twice));
}

static void check_target(const struct http_request *r, struct text head)
{
	char canonical[254];

	CHECK(r->method.len > 0 && r->target.len > 0);
	check_inside(r->method, head);
	check_inside(r->target, head);
	if (r->form == HTTP_ABSOLUTE_FORM || r->form == HTTP_AUTHORITY_FORM) {
		check_inside(r->host, r->target);
		CHECK(r->port > 0);
		CHECK(http_canonical_host(r->host, canonical, sizeof(canonical)) == 0);
	} else {
		CHECK(r->host.len == 0 && r->port == 0);
	}
	if (r->form == HTTP_AUTHORITY_FORM)
		CHECK(r->path.len == 0 && r->framing == HTTP_NO_BODY);
	else
		CHECK(r->path.len > 0 && strchr("/*?", r->path.at[0]));
}

static void check_request(struct text head)
{
	struct http_request r;
	int result = http_parse_request(&r, head.at, head.len);

	CHECK(result == 0 || result == REASON_REQUEST_SYNTAX || result == REASON_REQUEST_VERSION ||
	      result == REASON_REQUEST_CODING || result == REASON_REQUEST_SCHEME ||
	      result == REASON_REQUEST_HEAD_SIZE);
	if (result != 0)
		return;
	CHECK(r.framing != HTTP_UNTIL_CLOSE && (r.minor == 0 || r.minor == 1));
	CHECK(r.minor == 1 || (!r.keep_alive && !r.upgrade && !r.expect_continue));
	CHECK(http_field_count(r.fields, r.field_count, "host") <= 1);
	check_target(&r, head);
	check_fields(r.fields, r.field_count, head);
	check_framing(r.framing, r.length, r.fields, r.field_count);
}

static void check_response(struct text head, const char *method)
{
	struct http_response r;
	struct text asked = {method, strlen(method)};
	int result = http_parse_response(&r, head.at, head.len, asked);

	CHECK(result == 0 || result == REASON_RESPONSE_SYNTAX ||
	      result == REASON_RESPONSE_HEAD_SIZE);
	if (result != 0)
		return;
	CHECK(r.status >= 100 && r.status <= 599);
	CHECK(r.framing != HTTP_UNTIL_CLOSE || !r.keep_alive);
	check_inside(r.reason, head);
	check_fields(r.fields, r.field_count, head);
	check_framing(r.framing, r.length, r.fields, r.field_count);
	if (r.status / 100 == 1 || r.status == 204 || r.status == 304 || !strcmp(method, "HEAD"))
		CHECK(r.framing == HTTP_NO_BODY);
}

/* What is read from a chunked body fed in pieces. `content` has room for all of the input. */
struct body {
	int result;
	size_t used, len;
	char *content;
};

static void read_piece(struct http_chunks *c, struct body *b, struct text piece)
{
	const char *data;
	size_t used = 1, data_len;

	while (used > 0 && b->result == 0) {
		b->result = http_chunks_read(c, piece.at, piece.len, &used, &data, &data_len);
		if (b->result < 0)
			return;
		CHECK(used <= piece.len && data_len <= used);
		check_inside((struct text){data, data_len}, (struct text){piece.at, used});
		memcpy(b->content + b->len, data, data_len);
		b->len += data_len;
		b->used += used;
		piece = (struct text){piece.at + used, piece.len - used};
	}
	CHECK(b->result != 0 || piece.len == 0);
}

static struct body read_body(struct text t, size_t first, size_t step)
{
	struct http_chunks c = {0};
	struct body b = {.content = malloc(t.len + 1)};
	size_t at = 0, len = first;

	CHECK(b.content != NULL);
	do {
		len = t.len - at < len ? t.len - at : len;
		read_piece(&c, &b, (struct text){t.at + at, len});
		at += len;
		len = step;
	} while (at < t.len && b.result == 0);
	return b;
}

static void check_chunks(struct text t, size_t cut)
{
	struct body whole = read_body(t, t.len, t.len), pieces[2];
	size_t i;

	pieces[0] = read_body(t, cut, t.len + 1);
	pieces[1] = read_body(t, 0, 1);
	for (i = 0; i < 2; i++) {
		CHECK(pieces[i].result == whole.result && pieces[i].len == whole.len);
		CHECK(whole.result < 0 || pieces[i].used == whole.used);
		CHECK(!memcmp(pieces[i].content, whole.content, whole.len));
		free(pieces[i].content);
	}
	free(whole.content);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char *const methods[] = {"GET", "HEAD", "CONNECT"};
	struct text t, head;
	size_t cut;

	if (size < 2)
		return 0;
	t = (struct text){(const char *)input + 2, size - 2};
	cut = t.len * input[1] / 256;
	if (input[0] % 4 == 0) {
		check_chunks(t, cut);
		return 0;
	}
	head = (struct text){t.at, check_scan(t, cut)};
	if (head.len == 0)
		head = t; /* heads that no scan has passed must do no harm either */
	check_host(t);
	if (input[0] % 4 == 1)
		check_request(head);
	else
		check_response(head, methods[input[0] / 4 % 3]);
	return 0;
}
