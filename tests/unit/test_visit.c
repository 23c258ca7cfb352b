/* test_visit.c - requests as a member gets them, answers as a task gets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "visit_stage.h"

#define GOOD "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void test_an_answer_arrives_whole_with_what_describes_it(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_ask(
	    &f, "HTTP/1.1 200 OK\r\nB: 2\r\nContent-Length: 5\r\nb:  1 \r\nA:\r\n\r\nhello");
	visit_stage_expect(&f, REASON_OK);
	assert_int_equal(f.answer.status, 200);
	assert_int_equal(f.answer.len, 5);
	assert_string_equal(f.body, "hello");
	assert_string_equal(f.headers, "B=2\nContent-Length=5\nb=1\nA=\n");
	assert_string_equal(f.version, "1.1");
	assert_string_equal(f.final_url, "http://example.com/page");
	assert_int_equal(f.answer.redirects, 0);
	assert_int_equal(f.answer.retry_after_ms, -1);
	assert_string_equal(f.detail, "");
	visit_stage_end(&f);
}

static void test_any_status_of_the_target_is_an_answer(void **state)
{
	static const int statuses[] = {201, 204, 206, 304, 403, 404, 429, 500, 502, 503, 504};
	char response[64];

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct visit_stage f;

		visit_stage_begin(&f);
		snprintf(response, sizeof(response), "HTTP/1.1 %d X\r\nA: b\r\n\r\n", statuses[i]);
		visit_stage_ask(&f, response);
		visit_stage_expect(&f, REASON_OK);
		assert_int_equal(f.answer.status, statuses[i]);
		assert_string_equal(f.headers, "A=b\n");
		visit_stage_end(&f);
	}
}

static void test_interim_answers_and_trailers_are_no_part_of_the_fields(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_ask(&f, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nC: d\r\n\r\n");
	visit_stage_expect(&f, REASON_OK);
	assert_string_equal(f.headers, "A=b\nTransfer-Encoding=chunked\n");
	assert_string_equal(f.body, "hello");
	visit_stage_end(&f);
}

static void test_times_grow_from_step_to_step(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_ask(&f, GOOD);
	visit_stage_expect(&f, REASON_OK);
	assert_true(f.answer.connect_us > 0);
	assert_int_equal(f.answer.tls_us, 0);
	assert_true(f.answer.first_byte_us >= f.answer.connect_us);
	assert_true(f.answer.total_us >= f.answer.first_byte_us);
	visit_stage_end(&f);
}

static int64_t retry_after(const char *value)
{
	char response[128];
	struct visit_stage f;

	visit_stage_begin(&f);
	snprintf(response, sizeof(response), "HTTP/1.1 503 X\r\nRetry-After: %s\r\n\r\n", value);
	visit_stage_ask(&f, response);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
	return f.answer.retry_after_ms;
}

/* RFC 9110 10.2.3 */
static void test_retry_after_is_seconds_or_a_date(void **state)
{
	time_t then = (time_t)(clock_wall_ms() / 1000) + 100;
	char date[64];
	struct tm utc;

	(void)state;
	assert_int_equal(retry_after("0"), 0);
	assert_int_equal(retry_after("120"), 120000);
	assert_int_equal(retry_after("99999999999999999999999"), 366LL * 24 * 3600 * 1000);
	assert_int_equal(retry_after("soon"), -1);
	assert_int_equal(retry_after("-1"), -1);
	assert_int_equal(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), 0);
	gmtime_r(&then, &utc);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc);
	assert_in_range(retry_after(date), 60000, 101000);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void test_a_plain_request_goes_to_an_http_member_in_absolute_form(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_url(&f, "http://example.com:8080/a?b");
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "GET http://example.com:8080/a?b HTTP/1.1\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "\r\nHost: example.com:8080\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "Authorization"), 0);
	assert_int_equal(peer_count(&f.peer, "Cookie"), 0);
	peer_say(&f.peer, GOOD);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

static void test_method_headers_and_body_are_the_task_s(void **state)
{
	static const struct visit_header headers[] = {
	    {"X-Empty", ""}, {"Accept", "text/html"}, {"User-Agent", "mine"}};
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.method = "PUT";
	f.request.headers = headers;
	f.request.header_count = 3;
	f.request.body = "a\0b";
	f.request.body_len = 3;
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "PUT http://example.com/page HTTP/1.1\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "\r\nX-Empty:\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "\r\nAccept: text/html\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "\r\nUser-Agent: mine\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "fairlead"), 0);
	assert_int_equal(peer_count(&f.peer, "\r\nContent-Length: 3\r\n"), 1);
	assert_int_equal(peer_count(&f.peer, "Content-Type"), 0);
	assert_int_equal(peer_count(&f.peer, "Expect"), 0);
	STAGE_UNTIL(&f.stage, (peer_listen_up(&f.peer), 1) &&
				  !memcmp(f.peer.heard + f.peer.heard_len - 3, "a\0b", 3));
	peer_say(&f.peer, GOOD);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

static void test_a_post_without_a_body_has_a_length_of_zero(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.method = "POST";
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "\r\nContent-Length: 0\r\n"), 1);
	peer_say(&f.peer, GOOD);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

static void test_an_answer_to_head_has_no_body(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.method = "HEAD";
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n");
	visit_stage_expect(&f, REASON_OK);
	assert_int_equal(f.answer.len, 0);
	assert_string_equal(f.headers, "Content-Length=5000000\n");
	visit_stage_end(&f);
}

static void check_refused(const char *url, const char *method, const char *name, const char *value)
{
	const struct visit_header header = {name, value};
	struct visit_stage f;

	visit_stage_begin(&f);
	visit_stage_url(&f, "%s", url);
	f.request.method = method;
	f.request.headers = &header;
	f.request.header_count = name ? 1 : 0;
	assert_int_equal(
	    visit_start(&f.visit, f.visits, &f.request, NULL, NULL, f.error, sizeof(f.error)),
	    -EINVAL);
	assert_true(f.error[0]);
	visit_stage_end(&f);
}

static void test_what_cannot_be_sent_is_refused_with_a_line(void **state)
{
	const char *url = "http://example.com/";

	(void)state;
	check_refused("ftp://example.com/", "GET", NULL, NULL);
	check_refused("file:///etc/passwd", "GET", NULL, NULL);
	check_refused("example.com", "GET", NULL, NULL);
	check_refused("http://", "GET", NULL, NULL);
	check_refused(url, "", NULL, NULL);
	check_refused(url, "GET /x HTTP/1.1\r\nA:", NULL, NULL);
	check_refused(url, "CONNECT", NULL, NULL);
	check_refused(url, "GET", "A b", "c");
	check_refused(url, "GET", "", "c");
	check_refused(url, "GET", "A", "b\r\nC: d");
	check_refused(url, "GET", "Content-Length", "5");
	check_refused(url, "GET", "transfer-encoding", "chunked");
	check_refused(url, "GET", "Proxy-Authorization", "Basic x");
	check_refused(url, "GET", "Connection", "keep-alive");
}

/* --- redirects ---------------------------------------------------------------------------------------------------- */

static void answer_next(struct visit_stage *f, const char *first_line, const char *response)
{
	visit_stage_hear(f);
	if (strncmp(f->peer.heard, first_line, strlen(first_line)))
		fail_msg("'%.60s', not '%s'", f->peer.heard, first_line);
	peer_say(&f->peer, response);
}

static void test_a_redirect_is_another_connection_to_the_member(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_url(&f, "http://u:secret@example.com/page");
	visit_stage_start(&f);
	answer_next(&f, "GET http://example.com/page ",
		    "HTTP/1.1 302 X\r\nLocation: /next\r\nContent-Length: 4\r\nA: b\r\n\r\nmore");
	answer_next(&f, "GET http://example.com/next ", GOOD);
	assert_int_equal(peer_count(&f.peer, "\r\nAuthorization: "), 1);
	visit_stage_expect(&f, REASON_OK);
	assert_int_equal(f.answer.redirects, 1);
	assert_string_equal(f.final_url, "http://example.com/next");
	assert_string_equal(f.headers, "Content-Length=5\n");
	assert_string_equal(f.body, "hello");
	visit_stage_end(&f);
}

/* RFC 9110 11.6.2, and what browsers do with cookies. */
static void test_what_is_meant_for_one_host_is_not_sent_to_another(void **state)
{
	static const struct visit_header headers[] = {{"Authorization", "Bearer x"},
						      {"Cookie", "a=b"}};
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.headers = headers;
	f.request.header_count = 2;
	visit_stage_start(&f);
	answer_next(&f, "GET http://example.com/page ",
		    "HTTP/1.1 302 X\r\nLocation: http://other.test/\r\nSet-Cookie: c=d\r\n"
		    "Content-Length: 0\r\n\r\n");
	answer_next(&f, "GET http://other.test/ ", GOOD);
	assert_int_equal(peer_count(&f.peer, "Authorization"), 0);
	assert_int_equal(peer_count(&f.peer, "Cookie"), 0);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

static void check_method(const char *method, int status, const char *then)
{
	char response[80], line[80];
	struct visit_stage f;

	visit_stage_begin(&f);
	f.request.method = method;
	f.request.body = strcmp(method, "DELETE") ? "body" : NULL;
	f.request.body_len = 4;
	visit_stage_start(&f);
	snprintf(response, sizeof(response),
		 "HTTP/1.1 %d X\r\nLocation: /n\r\nContent-Length: 0\r\n\r\n", status);
	snprintf(line, sizeof(line), "%s ", method);
	answer_next(&f, line, response);
	snprintf(line, sizeof(line), "%s http://example.com/n ", then);
	visit_stage_hear(&f);
	if (strncmp(f.peer.heard, line, strlen(line)))
		fail_msg("%s %d: '%.60s'", method, status, f.peer.heard);
	if (f.request.body && !strcmp(then, method))
		peer_expect(&f.peer, "\r\n\r\nbody");
	else
		assert_int_equal(peer_count(&f.peer, "Content-Length"), 0);
	peer_say(&f.peer, GOOD);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

/* RFC 9110 15.4 */
static void test_a_redirect_keeps_the_method_where_it_must(void **state)
{
	(void)state;
	check_method("POST", 301, "GET");
	check_method("POST", 302, "GET");
	check_method("POST", 303, "GET");
	check_method("POST", 307, "POST");
	check_method("PUT", 301, "PUT");
	check_method("PUT", 302, "PUT");
	check_method("PUT", 303, "GET");
	check_method("PUT", 308, "PUT");
	check_method("DELETE", 302, "DELETE");
	check_method("DELETE", 303, "GET");
}

static void test_without_redirects_the_answer_is_the_redirect(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.redirects_max = 0;
	visit_stage_ask(&f, "HTTP/1.1 302 X\r\nLocation: /next\r\nContent-Length: 4\r\n\r\nmore");
	visit_stage_expect(&f, REASON_OK);
	assert_int_equal(f.answer.status, 302);
	assert_string_equal(f.body, "more");
	visit_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_answer_arrives_whole_with_what_describes_it),
	    cmocka_unit_test(test_any_status_of_the_target_is_an_answer),
	    cmocka_unit_test(test_interim_answers_and_trailers_are_no_part_of_the_fields),
	    cmocka_unit_test(test_times_grow_from_step_to_step),
	    cmocka_unit_test(test_retry_after_is_seconds_or_a_date),
	    cmocka_unit_test(test_a_plain_request_goes_to_an_http_member_in_absolute_form),
	    cmocka_unit_test(test_method_headers_and_body_are_the_task_s),
	    cmocka_unit_test(test_a_post_without_a_body_has_a_length_of_zero),
	    cmocka_unit_test(test_an_answer_to_head_has_no_body),
	    cmocka_unit_test(test_what_cannot_be_sent_is_refused_with_a_line),
	    cmocka_unit_test(test_a_redirect_is_another_connection_to_the_member),
	    cmocka_unit_test(test_what_is_meant_for_one_host_is_not_sent_to_another),
	    cmocka_unit_test(test_a_redirect_keeps_the_method_where_it_must),
	    cmocka_unit_test(test_without_redirects_the_answer_is_the_redirect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
