/* test_task_json.c - JSON objects as tasks: which names they have, what each may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/task.h"

static struct task task;
static char error[TASK_ERROR_MAX];

static int read_text(const char *text)
{
	task_fini(&task);
	error[0] = '\0';
	return task_read(&task, TASK_JSON, text, strlen(text), error);
}

static void expect_task(const char *text)
{
	if (read_text(text))
		fail_msg("%s: refused: %s", text, error);
}

static void expect_refusal(const char *text, const char *hint)
{
	assert_int_equal(read_text(text), REASON_TASK_INVALID);
	if (!strstr(error, hint))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, error, hint);
}

/* The lines of tests/data/tasks/t20-json-lines.txt. */
static void test_the_lines_of_t20_are_taken_or_refused(void **state)
{
	char path[4096], line[256];
	FILE *file;

	(void)state;
	snprintf(path, sizeof path, "%s/tasks/t20-json-lines.txt", TEST_DATA_DIR);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof line, file));
	expect_task(line);
	assert_string_equal(task.url, "http://www.example.com/a");
	assert_string_equal(task.method, "GET");
	assert_string_equal(task.meta, "{\"job\":\"1\"}");
	assert_non_null(fgets(line, sizeof line, file));
	expect_task(line);
	assert_string_equal(task.method, "POST");
	assert_string_equal(task.body, "x=1&y=2\nz");
	assert_non_null(fgets(line, sizeof line, file));
	expect_refusal(line, "no \"url\"");
	assert_non_null(fgets(line, sizeof line, file));
	expect_refusal(line, "bad JSON");
	fclose(file);
}

static void test_all_that_a_task_may_say(void **state)
{
	(void)state;
	expect_task(
	    "\xEF\xBB\xBF {\"url\": \"http://u:p@A.example/\xC3\xA9#f\", \"method\": \"put\", "
	    "\"headers\": "
	    "{\"Accept\": \" text/html \", \"X-A\": [\"1\", \"\"]}, \"body_base64\": \"AAEC/w==\", "
	    "\"id\": \"t-1\", \"timeout_ms\": 2500, \"meta\": [1], \"priority\": 9}\r\n");
	assert_string_equal(task.url, "http://u:p@a.example/%C3%A9");
	assert_string_equal(task.shown, "http://***@a.example/%C3%A9");
	assert_string_equal(task.method, "PUT");
	assert_int_equal(task.header_count, 3);
	assert_string_equal(task.headers[0].name, "Accept");
	assert_string_equal(task.headers[0].value, "text/html");
	assert_string_equal(task.headers[1].value, "1");
	assert_string_equal(task.headers[2].name, "X-A");
	assert_string_equal(task.headers[2].value, "");
	assert_int_equal(task.body_len, 4);
	assert_memory_equal(task.body, "\x00\x01\x02\xff", 4);
	assert_string_equal(task.id, "t-1");
	assert_int_equal(task.timeout_ms, 2500);
}

static void test_null_is_as_good_as_nothing(void **state)
{
	(void)state;
	expect_task("{\"url\":\"http://a.example/\",\"method\":null,\"body\":null,\"id\":null,"
		    "\"headers\":null,\"meta\":null,\"timeout_ms\":null}");
	assert_string_equal(task.method, "GET");
	assert_null(task.body);
	assert_null(task.id);
	assert_null(task.meta);
	assert_int_equal(task.header_count, 0);
	expect_refusal("{\"url\":null}", "no \"url\"");
}

static void test_an_id_may_be_a_number(void **state)
{
	(void)state;
	expect_task("{\"url\":\"http://a.example/\",\"id\":42}");
	assert_string_equal(task.id, "42");
	expect_refusal("{\"url\":\"http://a.example/\",\"id\":\"\"}", "\"id\"");
	expect_refusal("{\"url\":\"http://a.example/\",\"id\":1.5}", "\"id\"");
	expect_refusal("{\"url\":\"http://a.example/\",\"id\":\"a\\u0000b\"}", "\"id\"");
}

static void test_other_names_are_refused_by_name(void **state)
{
	(void)state;
	expect_refusal("{\"url\":\"http://a.example/\",\"header\":{}}", "\"header\"");
	expect_refusal("{\"url\":\"http://a.example/\",\"proxy\":\"http://b\"}", "\"proxy\"");
}

static void test_what_is_no_object_is_refused(void **state)
{
	(void)state;
	expect_refusal("http://a.example/", "--tasks-are json");
	expect_refusal("[]", "object");
	expect_refusal("\"x\"", "object");
	expect_refusal("", "empty");
	expect_refusal("{\"url\":\"http://a.example/\"} x", "bad JSON");
	expect_refusal("{\"url\":\"http://a/\",\"url\":\"http://b/\"}", "bad JSON");
}

static void test_bad_json_is_not_quoted(void **state)
{
	(void)state;
	expect_refusal("{\"url\":\"http://u:hunter2@a.example/\" hunter2", "bad JSON");
	assert_null(strstr(error, "hunter2"));
}

static void test_a_url_is_read_as_in_the_other_mode(void **state)
{
	(void)state;
	expect_refusal("{\"url\":\"www.example.com\"}", "no scheme");
	expect_refusal("{\"url\":\"http://b\xC3\xBC"
		       "cher.example/\"}",
		       "punycode");
	expect_refusal("{\"url\":\"http://a.example/\\r\\nX\"}", "control byte");
	expect_refusal("{\"url\":\"http://a.example/\\u0000\"}", "control byte");
	expect_refusal("{\"url\":1}", "\"url\" must be a text");
}

static void test_a_method_is_a_word_that_makes_a_request(void **state)
{
	static const char *const methods[] = {
	    "\"\"",        "\"G T\"",   "\"GET\\r\\n\"", "\"CONNECT\"",
	    "\"connect\"", "\"TRACE\"", "\"G\\u0000\"",  "7"};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		snprintf(text, sizeof text, "{\"url\":\"http://a.example/\",\"method\":%s}",
			 methods[i]);
		expect_refusal(text, "\"method\" must");
	}
	/* Only the words that the Fetch standard names are written in capitals. */
	expect_task("{\"url\":\"http://a.example/\",\"method\":\"patch\"}");
	assert_string_equal(task.method, "patch");
}

static void expect_header_refused(const char *headers, const char *hint)
{
	char text[256];

	snprintf(text, sizeof text, "{\"url\":\"http://a.example/\",\"headers\":%s}", headers);
	expect_refusal(text, hint);
}

static void test_headers_of_the_connection_are_refused_by_name(void **state)
{
	static const char *const names[] = {"Host",
					    "host",
					    "Content-Length",
					    "content_length",
					    "Transfer-Encoding",
					    "transfer_encoding",
					    "Connection",
					    "Keep-Alive",
					    "Proxy-Authorization",
					    "proxy-x",
					    "Proxy_Connection",
					    "Proxy-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
					    "TE",
					    "Trailer",
					    "Upgrade",
					    "Expect",
					    "HTTP2-Settings"};
	char headers[128];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(headers, sizeof headers, "{\"%s\":\"x\"}", names[i]);
		expect_header_refused(headers, names[i]);
	}
	expect_task(
	    "{\"url\":\"http://a.example/\",\"headers\":{\"Proxima\":\"1\",\"Hosts\":\"2\"}}");
}

static void test_headers_cannot_break_a_line(void **state)
{
	(void)state;
	expect_header_refused("{\"X\":\"a\\r\\nHost: b\"}", "control byte");
	expect_header_refused("{\"X\":\"a\\u0000\"}", "control byte");
	expect_header_refused("{\"X\\n\":\"a\"}", "token");
	expect_header_refused("{\"X: y\":\"a\"}", "token");
	expect_header_refused("{\"\":\"a\"}", "token");
	expect_header_refused("{\"X\":1}", "must be a text");
	expect_header_refused("{\"X\":[1]}", "must be a text");
	expect_header_refused("[\"X\"]", "must be an object");
}

static void test_there_are_at_most_64_headers(void **state)
{
	char text[4096];
	size_t used;

	(void)state;
	for (int count = 64; count <= 65; count++) {
		used = (size_t)sprintf(text,
				       "{\"url\":\"http://a.example/\",\"headers\":{\"X\":[\"0\"");
		for (int i = 1; i < count; i++)
			used += (size_t)sprintf(text + used, ",\"0\"");
		sprintf(text + used, "]}}");
		if (count == 64)
			expect_task(text);
		else
			expect_refusal(text, "more than 64");
	}
}

static void test_a_body_needs_a_method_and_one_name(void **state)
{
	(void)state;
	expect_refusal("{\"url\":\"http://a.example/\",\"body\":\"x\"}", "needs a \"method\"");
	expect_refusal("{\"url\":\"http://a.example/"
		       "\",\"method\":\"POST\",\"body\":\"x\",\"body_base64\":\"eA==\"}",
		       "stands beside");
	expect_refusal(
	    "{\"url\":\"http://a.example/\",\"method\":\"POST\",\"body_base64\":\"eA=\"}",
	    "RFC 4648");
	expect_task("{\"url\":\"http://a.example/\",\"method\":\"POST\",\"body\":\"a\\u0000b\"}");
	assert_int_equal(task.body_len, 3);
	assert_memory_equal(task.body, "a\0b", 3);
	expect_task("{\"url\":\"http://a.example/\",\"method\":\"POST\",\"body\":\"\"}");
	assert_non_null(task.body);
	assert_int_equal(task.body_len, 0);
}

/* "AAAA" is three zero bytes; a group that is padded ends the text. */
static void test_long_bodies_of_base_64_are_read(void **state)
{
	static const char head[] =
	    "{\"url\":\"http://a.example/\",\"method\":\"POST\",\"body_base64\":\"";
	size_t len = 200000;
	char *text = malloc(sizeof head + len + 8);

	(void)state;
	memcpy(text, head, sizeof head);
	memset(text + sizeof head - 1, 'A', len);
	strcpy(text + sizeof head - 1 + len, "\"}");
	expect_task(text);
	assert_int_equal(task.body_len, len / 4 * 3);
	text[sizeof head - 1 + 65535] = '=';
	expect_refusal(text, "RFC 4648");
	free(text);
}

static void test_a_timeout_is_between_10_ms_and_an_hour(void **state)
{
	static const char *const values[] = {"9", "3600001", "-1", "1.5", "\"5\"", "true"};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		snprintf(text, sizeof text, "{\"url\":\"http://a.example/\",\"timeout_ms\":%s}",
			 values[i]);
		expect_refusal(text, "10 to 3600000");
	}
}

static int forget(void **state)
{
	(void)state;
	task_fini(&task);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_lines_of_t20_are_taken_or_refused),
	    cmocka_unit_test(test_all_that_a_task_may_say),
	    cmocka_unit_test(test_null_is_as_good_as_nothing),
	    cmocka_unit_test(test_an_id_may_be_a_number),
	    cmocka_unit_test(test_other_names_are_refused_by_name),
	    cmocka_unit_test(test_what_is_no_object_is_refused),
	    cmocka_unit_test(test_bad_json_is_not_quoted),
	    cmocka_unit_test(test_a_url_is_read_as_in_the_other_mode),
	    cmocka_unit_test(test_a_method_is_a_word_that_makes_a_request),
	    cmocka_unit_test(test_headers_of_the_connection_are_refused_by_name),
	    cmocka_unit_test(test_headers_cannot_break_a_line),
	    cmocka_unit_test(test_there_are_at_most_64_headers),
	    cmocka_unit_test(test_a_body_needs_a_method_and_one_name),
	    cmocka_unit_test(test_long_bodies_of_base_64_are_read),
	    cmocka_unit_test(test_a_timeout_is_between_10_ms_and_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
