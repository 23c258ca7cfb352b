/* test_fetch.c - answers that are good, validators, redirects, proxies, cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fetch_stage.h"

#define GOOD "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* --- good answers ------------------------------------------------------------------------------------------------- */

static void test_a_body_arrives_whole_with_what_describes_it(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: W/\"a b\"\r\n"
			    "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
			    "Content-Type: Text/CSV ; Charset=UTF-8\r\n\r\nhello");
	fetch_stage_expect(&f, 0);
	assert_int_equal(f.answer.status, 200);
	assert_false(f.answer.is_unchanged);
	assert_int_equal(f.answer.bytes, 5);
	assert_string_equal(f.body, "hello");
	assert_string_equal(f.answer.etag, "W/\"a b\"");
	assert_string_equal(f.answer.modified, "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_string_equal(f.answer.type, "text/csv");
	fetch_stage_end(&f);
}

static void test_an_answer_may_describe_nothing(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, GOOD);
	fetch_stage_expect(&f, 0);
	assert_string_equal(f.answer.etag, "");
	assert_string_equal(f.answer.modified, "");
	assert_string_equal(f.answer.type, "");
	fetch_stage_end(&f);
}

static void test_an_empty_body_is_a_body(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	fetch_stage_expect(&f, 0);
	assert_true(f.answer.fd >= 0);
	assert_int_equal(f.answer.bytes, 0);
	assert_int_equal(f.body_len, 0);
	fetch_stage_end(&f);
}

static void test_a_chunked_body_is_put_together(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			    "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
	fetch_stage_expect(&f, 0);
	assert_string_equal(f.body, "hello");
	fetch_stage_end(&f);
}

static void test_a_body_without_length_ends_with_the_connection(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, "HTTP/1.0 200 OK\r\n\r\nhello");
	fetch_stage_expect(&f, 0);
	assert_string_equal(f.body, "hello");
	fetch_stage_end(&f);
}

static void test_a_body_of_just_the_cap_is_not_too_large(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	f.request.max_bytes = 5;
	fetch_stage_ask(&f, GOOD);
	fetch_stage_expect(&f, 0);
	assert_int_equal(f.answer.bytes, 5);
	fetch_stage_end(&f);
}

/* `printf hello | gzip -n`. */
static void test_a_body_is_decoded(void **state)
{
	static const char gzip[] =
	    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07"
	    "\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	fetch_stage_serve(
	    &f, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 25\r\n\r\n");
	assert_non_null(strstr(f.peer.heard, "Accept-Encoding: "));
	peer_say_bytes(&f.peer, gzip, sizeof(gzip) - 1);
	fetch_stage_expect(&f, 0);
	assert_string_equal(f.body, "hello");
	fetch_stage_end(&f);
}

/* --- the request -------------------------------------------------------------------------------------------------- */

static void test_validators_are_sent_and_304_is_an_answer(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	f.request.etag = "\"v1\"";
	f.request.modified = "Sun, 06 Nov 1994 08:49:37 GMT";
	/* RFC 9110 8.6: a 304 may tell the length that a 200 would have. */
	fetch_stage_ask(
	    &f, "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nContent-Length: 99999999\r\n\r\n");
	fetch_stage_expect(&f, 0);
	assert_non_null(strstr(f.peer.heard, "\r\nIf-None-Match: \"v1\"\r\n"));
	assert_non_null(
	    strstr(f.peer.heard, "\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
	assert_int_equal(f.answer.status, 304);
	assert_true(f.answer.is_unchanged);
	assert_int_equal(f.answer.fd, -1);
	assert_string_equal(f.answer.etag, "\"v1\"");
	fetch_stage_end(&f);
}

static void test_without_validators_304_is_no_answer(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	f.request.etag = "";
	f.request.modified = "x\r\nX-Smuggled: 1"; /* counts as none */
	fetch_stage_ask(&f, "HTTP/1.1 304 Not Modified\r\n\r\n");
	fetch_stage_expect(&f, -EREMOTEIO);
	assert_null(strstr(f.peer.heard, "If-"));
	assert_null(strstr(f.peer.heard, "Smuggled"));
	assert_int_equal(f.answer.status, 304);
	fetch_stage_end(&f);
}

static void test_the_request_says_who_asks(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_address(&f, "user:pa%3Ass@", "/list?a=b");
	fetch_stage_ask(&f, GOOD);
	fetch_stage_expect(&f, 0);
	assert_non_null(strstr(f.peer.heard, "GET /list?a=b HTTP/1.1\r\n"));
	assert_non_null(strstr(f.peer.heard, "\r\nUser-Agent: fairlead/" FAIRLEAD_VERSION "\r\n"));
	/* RFC 7617: base64 of "user:pa:ss" */
	assert_non_null(strstr(f.peer.heard, "\r\nAuthorization: Basic dXNlcjpwYTpzcw==\r\n"));
	fetch_stage_end(&f);
}

static void test_only_http_urls_are_begun(void **state)
{
	static const char *const urls[] = {
	    "",        "file:///etc/passwd", "ftp://127.0.0.1/x", "127.0.0.1/x",
	    "http://", "http:/ /x",          "gopher://h/",       "http://a b/"};
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		f.request.url = urls[i];
		assert_int_equal(fetch_start(&f.fetch, f.stage.loop, &f.request, NULL, NULL),
				 -EINVAL);
	}
	assert_null(f.fetch);
	fetch_stage_end(&f);
}

static void test_a_proxy_of_the_environment_is_used(void **state)
{
	struct fetch_stage f;
	char proxy[64];

	(void)state;
	fetch_stage_begin(&f);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", f.peer.port);
	setenv("http_proxy", proxy, 1);
	f.request.url = "http://lists.invalid/a";
	fetch_stage_ask(&f, GOOD);
	fetch_stage_expect(&f, 0);
	assert_non_null(strstr(f.peer.heard, "GET http://lists.invalid/a HTTP/1.1\r\n"));
	unsetenv("http_proxy");
	fetch_stage_end(&f);
}

/* --- redirects ---------------------------------------------------------------------------------------------------- */

static void redirect(struct fetch_stage *f, const char *location)
{
	char response[512];

	snprintf(response, sizeof(response),
		 "HTTP/1.1 302 Found\r\nETag: \"of the redirect\"\r\nLocation: %s\r\n"
		 "Content-Length: 3\r\n\r\nbye",
		 location);
	fetch_stage_serve(f, response);
	peer_close(&f->peer);
}

static void test_redirects_within_http_are_followed(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	for (int i = 0; i < 5; i++)
		redirect(&f, "/next");
	fetch_stage_serve(&f, GOOD);
	fetch_stage_expect(&f, 0);
	assert_non_null(strstr(f.peer.heard, "GET /next HTTP/1.1"));
	assert_string_equal(f.body, "hello");
	assert_string_equal(f.answer.etag, "");
	fetch_stage_end(&f);
}

static void test_a_loop_of_redirects_ends(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	for (int i = 0; i < 6; i++)
		redirect(&f, f.url);
	fetch_stage_expect(&f, -EPERM);
	assert_false(peer_is_called(&f.peer));
	fetch_stage_end(&f);
}

static void test_redirects_to_other_schemes_are_refused(void **state)
{
	static const char *const places[] = {"file:///etc/passwd", "ftp://127.0.0.1/x",
					     "gopher://127.0.0.1/x", "dict://127.0.0.1/x", "x:y"};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct fetch_stage f;

		fetch_stage_begin(&f);
		fetch_stage_start(&f);
		redirect(&f, places[i]);
		if (!strcmp(places[i],
			    "x:y")) { /* RFC 3986 5: a scheme libcurl has never heard of */
			STAGE_UNTIL(&f.stage, f.ends);
			assert_int_not_equal(f.result, 0);
		} else {
			fetch_stage_expect(&f, -EPERM);
			assert_int_equal(f.answer.status, 302);
		}
		fetch_stage_end(&f);
	}
}

/* --- cancelling --------------------------------------------------------------------------------------------------- */

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The far side sees the end, nothing is called, no descriptor stays. */
static void cancel_and_check(struct fetch_stage *f, int descriptors)
{
	fetch_cancel(f->fetch);
	f->fetch = NULL;
	peer_close(&f->peer);
	for (int i = 0; i < 20; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 0);
	assert_int_equal(count_descriptors(), descriptors);
	fetch_stage_end(f);
}

static void test_cancelled_before_its_first_turn(void **state)
{
	struct fetch_stage f;
	int descriptors;

	(void)state;
	fetch_stage_begin(&f);
	descriptors = count_descriptors();
	fetch_stage_start(&f);
	cancel_and_check(&f, descriptors);
}

static void test_cancelled_while_a_name_is_looked_up(void **state)
{
	struct fetch_stage f;
	int descriptors;

	(void)state;
	fetch_stage_begin(&f);
	f.request.url = "http://lists.invalid/";
	descriptors = count_descriptors();
	fetch_stage_start(&f);
	event_base_loop(loop_base(f.stage.loop), EVLOOP_ONCE);
	fetch_cancel(f.fetch);
	f.fetch = NULL;
	/* The resolver's thread closes what it has opened when it is through. */
	STAGE_UNTIL(&f.stage, count_descriptors() == descriptors);
	assert_int_equal(f.ends, 0);
	fetch_stage_end(&f);
}

static void test_cancelled_while_nothing_answers(void **state)
{
	struct fetch_stage f;
	int descriptors;

	(void)state;
	fetch_stage_begin(&f);
	descriptors = count_descriptors();
	fetch_stage_start(&f);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "\r\n\r\n");
	cancel_and_check(&f, descriptors);
}

static void test_cancelled_within_the_body(void **state)
{
	struct fetch_stage f;
	int descriptors;

	(void)state;
	fetch_stage_begin(&f);
	descriptors = count_descriptors();
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
	/* The temporary file, beside both ends of the connection and libcurl's own pipe. */
	STAGE_UNTIL(&f.stage, count_descriptors() >= descriptors + 3);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	cancel_and_check(&f, descriptors);
}

static void on_end_cancel(int result, const char *error, const struct fetch_answer *answer,
			  void *arg)
{
	struct fetch_stage *f = arg;

	(void)error;
	f->ends++;
	f->result = result;
	close(answer->fd);
	fetch_cancel(f->fetch);
}

static void test_cancelled_by_its_own_callback(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	assert_int_equal(fetch_start(&f.fetch, f.stage.loop, &f.request, on_end_cancel, &f), 0);
	fetch_stage_serve(&f, GOOD);
	fetch_stage_expect(&f, 0);
	fetch_cancel(NULL);
	fetch_stage_end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_body_arrives_whole_with_what_describes_it),
	    cmocka_unit_test(test_an_answer_may_describe_nothing),
	    cmocka_unit_test(test_an_empty_body_is_a_body),
	    cmocka_unit_test(test_a_chunked_body_is_put_together),
	    cmocka_unit_test(test_a_body_without_length_ends_with_the_connection),
	    cmocka_unit_test(test_a_body_of_just_the_cap_is_not_too_large),
	    cmocka_unit_test(test_a_body_is_decoded),
	    cmocka_unit_test(test_validators_are_sent_and_304_is_an_answer),
	    cmocka_unit_test(test_without_validators_304_is_no_answer),
	    cmocka_unit_test(test_the_request_says_who_asks),
	    cmocka_unit_test(test_only_http_urls_are_begun),
	    cmocka_unit_test(test_a_proxy_of_the_environment_is_used),
	    cmocka_unit_test(test_redirects_within_http_are_followed),
	    cmocka_unit_test(test_a_loop_of_redirects_ends),
	    cmocka_unit_test(test_redirects_to_other_schemes_are_refused),
	    cmocka_unit_test(test_cancelled_before_its_first_turn),
	    cmocka_unit_test(test_cancelled_while_a_name_is_looked_up),
	    cmocka_unit_test(test_cancelled_while_nothing_answers),
	    cmocka_unit_test(test_cancelled_within_the_body),
	    cmocka_unit_test(test_cancelled_by_its_own_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
