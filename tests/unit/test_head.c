/* test_head.c - heads written anew, judged by reading them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dial/head.h"

/* The texts of a head that was written, for as long as it is looked at. */
static struct buffer out;

static int begin(void **state)
{
	(void)state;
	buffer_init(&out, 200000);
	return 0;
}

static int end(void **state)
{
	(void)state;
	buffer_fini(&out);
	return 0;
}

/* Writes the request `head` anew and reads the result; `proxy` as in head_write_request(). */
static struct http_request rewrite(const char *head, const struct endpoint *proxy)
{
	struct http_request before, after;
	struct http_scan scan = {0};

	assert_int_equal(http_parse_request(&before, head, strlen(head)), 0);
	assert_int_equal(head_write_request(&out, &before, proxy), 0);
	assert_int_equal(http_scan_head(&scan, buffer_at(&out), buffer_len(&out)),
			 (long)buffer_len(&out));
	assert_int_equal(http_parse_request(&after, buffer_at(&out), buffer_len(&out)), 0);
	return after;
}

static void assert_text(struct text text, const char *expected)
{
	if (text.len != strlen(expected) || memcmp(text.at, expected, text.len))
		fail_msg("'%.*s' is not '%s'", (int)text.len, text.at, expected);
}

static void assert_request_field(const struct http_request *r, const char *name,
				 const char *expected)
{
	const struct http_field *field = http_find(r->fields, r->field_count, name);

	assert_int_equal(http_field_count(r->fields, r->field_count, name), expected ? 1 : 0);
	if (expected)
		assert_text(field->value, expected);
}

static void test_an_origin_gets_the_path_and_the_host_of_the_target(void **state)
{
	static const struct {
		const char *target, *path, *host;
	} rows[] = {
	    {"http://example.com", "/", "example.com"},
	    {"http://example.com/", "/", "example.com"},
	    {"http://example.com:80/a?b", "/a?b", "example.com"},
	    {"http://EXAMPLE.com:8080/a", "/a", "example.com:8080"},
	    {"http://example.com?q", "/?q", "example.com"},
	    {"http://[2001:DB8::1]:81/", "/", "[2001:db8::1]:81"},
	    {"http://[::1]", "/", "[::1]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char head[200];
		struct http_request r;

		snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: other.example\r\n\r\n",
			 rows[i].target);
		buffer_fini(&out);
		r = rewrite(head, NULL);
		assert_text(r.target, rows[i].path);
		assert_request_field(&r, "host", rows[i].host);
	}
}

static void test_a_proxy_gets_the_absolute_form_and_its_credentials(void **state)
{
	char secret[] = "user:p%40ss";
	struct endpoint proxy = {.scheme = SCHEME_HTTP, .host = "192.0.2.1", .port = 80};
	struct http_request r;

	(void)state;
	proxy.secret = secret;
	r = rewrite("GET http://[::1]:81?q HTTP/1.0\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
		    &proxy);
	assert_text(r.target, "http://[::1]:81/?q");
	assert_int_equal(r.minor, 1);
	assert_request_field(&r, "host", "[::1]:81");
	assert_request_field(&r, "proxy-authorization", "Basic dXNlcjpwQHNz"); /* user:p@ss */
	proxy.secret = NULL;
	buffer_fini(&out);
	r = rewrite("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Proxy-Authorization: Basic eDp5\r\n\r\n",
		    &proxy);
	assert_request_field(&r, "proxy-authorization", NULL);
}

static void test_fields_of_this_hop_end_here(void **state)
{
	struct http_request r = rewrite("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
					"Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
					"Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"
					"TE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\n"
					"Accept: a\r\nAccept: b\r\nVia: 1.1 x\r\n\r\n",
					NULL);
	static const char *const gone[] = {
	    "x-mine",  "keep-alive", "proxy-connection",  "te",
	    "trailer", "upgrade",    "transfer-encoding", "content-length"};

	(void)state;
	for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		assert_request_field(&r, gone[i], NULL);
	assert_request_field(&r, "connection", "close");
	assert_request_field(&r, "via", "1.1 x");
	assert_int_equal(http_field_count(r.fields, r.field_count, "accept"), 2);
}

static void test_the_framing_is_made_by_us(void **state)
{
	struct http_request r;

	(void)state;
	r = rewrite("POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n",
		    NULL);
	assert_int_equal(r.framing, HTTP_CHUNKED);
	buffer_fini(&out);
	r = rewrite("POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Content-Length: 0005\r\n\r\n",
		    NULL);
	assert_int_equal(r.framing, HTTP_LENGTH);
	assert_request_field(&r, "content-length", "5");
	buffer_fini(&out);
	r = rewrite("POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Content-Length: 0\r\n\r\n",
		    NULL);
	assert_request_field(&r, "content-length", "0");
}

/* A body whose length is a hop-by-hop field that Connection names is still framed. */
static void test_connection_cannot_take_the_framing_away(void **state)
{
	struct http_request r;

	(void)state;
	r = rewrite("POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\nContent-Length: 5\r\n"
		    "Connection: close, Content-Length, Host\r\n\r\n",
		    NULL);
	assert_request_field(&r, "content-length", "5");
	assert_request_field(&r, "host", "h.example");
}

static void test_an_upgrade_is_asked_for_and_nothing_else(void **state)
{
	struct http_request r;

	(void)state;
	r = rewrite("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
		    "Sec-WebSocket-Key: x\r\n\r\n",
		    NULL);
	assert_true(r.upgrade);
	assert_request_field(&r, "connection", "upgrade");
	assert_request_field(&r, "upgrade", "websocket");
	assert_request_field(&r, "sec-websocket-key", "x");
}

/* RFC 9110 7.6.2: counted down where it counts, left alone elsewhere. */
static void test_max_forwards_counts_down(void **state)
{
	struct http_request r;

	(void)state;
	r = rewrite("OPTIONS http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Max-Forwards: 010\r\n\r\n",
		    NULL);
	assert_request_field(&r, "max-forwards", "9");
	buffer_fini(&out);
	r = rewrite("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\nMax-Forwards: 0\r\n\r\n",
		    NULL);
	assert_request_field(&r, "max-forwards", "0");
}

/* RFC 9110 10.1.1: in HTTP/1.0 it means nothing; as HTTP/1.1 it would ask for a 100 that nobody waits for. */
static void test_http_1_0_expects_nothing(void **state)
{
	struct http_request r;

	(void)state;
	r = rewrite("POST http://h.example/ HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", NULL);
	assert_request_field(&r, "expect", NULL);
	buffer_fini(&out);
	r = rewrite("POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\n"
		    "Expect: 100-continue\r\n\r\n",
		    NULL);
	assert_request_field(&r, "expect", "100-continue");
}

static void test_our_own_fields_do_not_leave(void **state)
{
	struct http_request r =
	    rewrite("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\nFairlead-Session: a\r\n"
		    "FAIRLEAD-X: b\r\nFairlead: c\r\nX-Fairlead-Member: d\r\n\r\n",
		    NULL);

	(void)state;
	assert_request_field(&r, "fairlead-session", NULL);
	assert_request_field(&r, "fairlead-x", NULL);
	assert_request_field(&r, "fairlead", "c");
	assert_request_field(&r, "x-fairlead-member", "d");
}

/* RFC 9110 9.3.8. */
static void test_trace_shows_the_request_without_secrets(void **state)
{
	static const char head[] = "TRACE http://h.example/a HTTP/1.1\r\nHost: h.example\r\n"
				   "Cookie: secret\r\nX: y\r\nAuthorization: Basic eDp5\r\n"
				   "proxy-authorization: Basic eDp5\r\nMax-Forwards: 0\r\n\r\n";
	static const char want[] = "TRACE http://h.example/a HTTP/1.1\r\nHost: h.example\r\n"
				   "X: y\r\nMax-Forwards: 0\r\n\r\n";
	struct http_request request;

	(void)state;
	assert_int_equal(http_parse_request(&request, head, strlen(head)), 0);
	assert_int_equal(head_write_trace(&out, &request), 0);
	assert_text((struct text){buffer_at(&out), buffer_len(&out)}, want);
}

/* RFC 9112 3.2.4: OPTIONS without path and query becomes "*" at the last proxy, and stays absolute before it. */
static void test_options_without_a_path_means_the_whole_server(void **state)
{
	struct endpoint proxy = {.scheme = SCHEME_HTTP, .host = "192.0.2.1", .port = 80};
	struct http_request r;

	(void)state;
	r = rewrite("OPTIONS http://h.example:8001 HTTP/1.1\r\nHost: h.example:8001\r\n\r\n", NULL);
	assert_text(r.target, "*");
	assert_request_field(&r, "host", "h.example:8001");
	buffer_fini(&out);
	r = rewrite("OPTIONS http://h.example:8001 HTTP/1.1\r\nHost: h.example:8001\r\n\r\n",
		    &proxy);
	assert_text(r.target, "http://h.example:8001");
}

/* Writes the response `head` anew, as `framing`, and reads the result as a client that sent `method`. */
static struct http_response answer(const char *head, const char *method, enum http_framing framing,
				   bool keep_alive)
{
	const struct text text = {method, strlen(method)};
	struct http_response before, after;

	buffer_fini(&out);
	assert_int_equal(http_parse_response(&before, head, strlen(head), text), 0);
	assert_int_equal(head_write_response(&out, &before, framing, keep_alive, ""), 0);
	assert_int_equal(http_parse_response(&after, buffer_at(&out), buffer_len(&out), text), 0);
	assert_int_equal(after.status, before.status);
	assert_int_equal(after.minor, 1);
	return after;
}

static const char *field_of(const struct http_response *r, const char *name)
{
	static char text[100];
	const struct http_field *field = http_find(r->fields, r->field_count, name);

	if (!field)
		return "";
	snprintf(text, sizeof(text), "%.*s", (int)field->value.len, field->value.at);
	return text;
}

static void test_a_response_is_framed_as_the_caller_says(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.0 200 Fine\r\nContent-Length: 7\r\n\r\n", "GET", HTTP_LENGTH, true);
	assert_text(r.reason, "Fine");
	assert_int_equal(r.framing, HTTP_LENGTH);
	assert_int_equal(r.length, 7);
	assert_true(r.keep_alive);
	r = answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", HTTP_CHUNKED,
		   true);
	assert_int_equal(r.framing, HTTP_CHUNKED);
	r = answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", HTTP_UNTIL_CLOSE,
		   false);
	assert_int_equal(r.framing, HTTP_UNTIL_CLOSE);
	assert_false(r.keep_alive);
	assert_string_equal(field_of(&r, "connection"), "close");
}

/* RFC 9110 8.6: in answers to HEAD and in 304 the length tells of a body that is not there. */
static void test_the_length_of_an_absent_body_is_kept(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "HEAD", HTTP_NO_BODY, true);
	assert_string_equal(field_of(&r, "content-length"), "7");
	assert_int_equal(r.framing, HTTP_NO_BODY);
	r = answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: x\r\n\r\n", "GET",
		   HTTP_NO_BODY, true);
	assert_string_equal(field_of(&r, "content-length"), "9");
	assert_string_equal(field_of(&r, "etag"), "x");
}

/* RFC 9110 8.6: no Content-Length in 1xx and 204. */
static void test_a_204_has_no_length(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", "GET", HTTP_NO_BODY,
		   true);
	assert_string_equal(field_of(&r, "content-length"), "");
}

static void test_fields_of_the_upstream_s_hop_do_not_reach_the_client(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.1 200 OK\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n"
		   "Proxy-Authenticate: Basic\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\n"
		   "Set-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 1\r\n\r\n",
		   "GET", HTTP_LENGTH, true);
	assert_int_equal(r.field_count, 3);
	assert_int_equal(http_field_count(r.fields, r.field_count, "set-cookie"), 2);
	assert_true(r.keep_alive);
}

static void test_an_interim_response_does_not_close(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "GET", HTTP_NO_BODY, false);
	assert_string_equal(field_of(&r, "connection"), "");
	assert_string_equal(field_of(&r, "link"), "</a>");
	r = answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
		   "Upgrade: websocket\r\n\r\n",
		   "GET", HTTP_NO_BODY, false);
	assert_string_equal(field_of(&r, "upgrade"), "websocket");
	assert_string_equal(field_of(&r, "connection"), "upgrade");
}

static void test_further_lines_stand_in_the_head(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct http_response before, after;

	(void)state;
	assert_int_equal(http_parse_response(&before, head, strlen(head), (struct text){"GET", 3}),
			 0);
	assert_int_equal(
	    head_write_response(&out, &before, HTTP_LENGTH, true, "Fairlead-Member: a\r\nX: b\r\n"),
	    0);
	assert_int_equal(
	    http_parse_response(&after, buffer_at(&out), buffer_len(&out), (struct text){"GET", 3}),
	    0);
	assert_string_equal(field_of(&after, "fairlead-member"), "a");
	assert_string_equal(field_of(&after, "x"), "b");
	assert_int_equal(after.framing, HTTP_LENGTH);
}

static void test_nobody_else_speaks_in_our_name(void **state)
{
	struct http_response r;

	(void)state;
	r = answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nFairlead-Member: evil\r\n\r\n", "GET",
		   HTTP_LENGTH, true);
	assert_string_equal(field_of(&r, "fairlead-member"), "");
}

/* The example of RFC 9110 5.6.7: 784111777 seconds after 1970. */
static void test_a_date_is_written_as_http_wants_it(void **state)
{
	(void)state;
	assert_int_equal(head_write_date(&out, INT64_C(784111777999)), 0);
	assert_text((struct text){buffer_at(&out), buffer_len(&out)},
		    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_an_origin_gets_the_path_and_the_host_of_the_target), /* H1 H5 */
	    TEST(test_a_proxy_gets_the_absolute_form_and_its_credentials), /* H1 H24 */
	    TEST(test_fields_of_this_hop_end_here),                        /* H23 H24 */
	    TEST(test_the_framing_is_made_by_us),                          /* H14 */
	    TEST(test_connection_cannot_take_the_framing_away),            /* H23 */
	    TEST(test_an_upgrade_is_asked_for_and_nothing_else),           /* H24 */
	    TEST(test_max_forwards_counts_down),                           /* H27 */
	    TEST(test_http_1_0_expects_nothing),                           /* H25 */
	    TEST(test_our_own_fields_do_not_leave),                        /* H24 */
	    TEST(test_trace_shows_the_request_without_secrets),            /* H27 */
	    TEST(test_options_without_a_path_means_the_whole_server),      /* H5 */
	    TEST(test_a_response_is_framed_as_the_caller_says),
	    TEST(test_the_length_of_an_absent_body_is_kept),                 /* H19 */
	    TEST(test_a_204_has_no_length),                                  /* H19 */
	    TEST(test_fields_of_the_upstream_s_hop_do_not_reach_the_client), /* H23 H24 */
	    TEST(test_an_interim_response_does_not_close),                   /* H25 */
	    TEST(test_further_lines_stand_in_the_head),
	    TEST(test_nobody_else_speaks_in_our_name),     /* H24 */
	    TEST(test_a_date_is_written_as_http_wants_it), /* H19 */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
