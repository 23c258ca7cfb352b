/* test_task.c - URLs as tasks: what is sent, what is shown, what is refused and why. */
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

static int read_bytes(const char *bytes, size_t len)
{
	task_fini(&task);
	error[0] = '\0';
	return task_read(&task, TASK_URL, bytes, len, error);
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void expect_url(const char *text, const char *url)
{
	if (read_text(text))
		fail_msg("%s: refused: %s", text, error);
	assert_string_equal(task.url, url);
}

static void expect_same(const char *text)
{
	expect_url(text, text);
}

/* `hint`: a part of the sentence. */
static void expect_refusal(const char *text, const char *hint)
{
	assert_int_equal(read_text(text), REASON_TASK_INVALID);
	if (!strstr(error, hint))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, error, hint);
}

/* --- tests/data/tasks --------------------------------------------------------------------------------------------- */

/* What is expected of each file, and which tests hold us to it: as a worker's task here, test_task_json.c and
 * system/test_work_results.py (W); in the queue system/test_cli_queue.py (Q) and system/test_cli_queue_push.py (P).
 *
 * t01  2 tasks                                          test_plain_urls_..., P trimmed
 * t02  1, as it stands; percent-encoded when sent       test_bytes_outside_ascii_..., P opaque, W
 * t03  1, as it stands; %A3 when sent                   test_bytes_outside_ascii_..., P opaque, Q identical, W
 * t04  2, not unified; a host in Unicode is refused     test_a_host_outside_ascii_..., P opaque, W
 * t05  3; the producer's id is the key, not the URL     test_fragments_are_cut, P opaque and key, W
 * t07  2, trimmed                                       test_what_stands_around_..., P trimmed
 * t08  2 without CR                                     test_what_stands_around_..., P trimmed, Q identical
 * t09  2, the first without byte order mark             test_what_stands_around_..., P trimmed
 * t10  1, its fragment kept by the queue                test_what_stands_around_..., P trimmed
 * t11  2                                                test_plain_urls_..., P trimmed
 * t12  1 of 8,128 bytes                                 test_a_url_of_8128_bytes_..., P opaque, Q identical
 * t14  3; 2 if the text is the key                      test_the_case_of_scheme_..., P opaque and key
 * t15  opaque in the queue; refused, nothing guessed    test_nothing_is_guessed_..., P opaque, W
 * t16  4 refused by their schemes                       test_other_schemes_..., W
 * t17  credentials not shown; an empty port             test_credentials_are_sent_...
 * t18  1, never split                                   test_plain_urls_..., P opaque, W
 * t20  2 taken; no url, bad JSON                        test_the_lines_of_t20_... (test_task_json.c)
 * t21  1 to the byte                                    Q identical; test_what_is_no_url_...
 * t22  1 of 6 NUL                                       Q identical; test_what_is_no_url_...
 * t24  a task of no bytes                               Q (BINARY); test_what_is_no_url_...
 * t26  1 to the byte                                    Q identical; test_what_is_no_url_... */

#define LINE_MAX_BYTES 9000

/* The lines of a file, as `queue push` leaves them to a worker: without the line feed. */
struct lines {
	FILE *file;
	char bytes[LINE_MAX_BYTES];
	size_t len;
};

static void lines_open(struct lines *lines, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/tasks/%s", TEST_DATA_DIR, name);
	lines->file = fopen(path, "rb");
	assert_non_null(lines->file);
}

static bool lines_next(struct lines *lines)
{
	int c;

	lines->len = 0;
	while ((c = getc(lines->file)) != EOF && c != '\n') {
		assert_true(lines->len < LINE_MAX_BYTES);
		lines->bytes[lines->len++] = (char)c;
	}
	if (c == EOF && lines->len == 0) {
		fclose(lines->file);
		return false;
	}
	return true;
}

/* Each line, as `wanted` has it: a URL, or "!" and what the refusal says. */
static void expect_file(const char *name, const char *const *wanted, size_t count)
{
	struct lines lines;
	size_t i = 0;

	for (lines_open(&lines, name); lines_next(&lines); i++) {
		int r = read_bytes(lines.bytes, lines.len);

		assert_true(i < count);
		if (wanted[i][0] == '!')
			assert_non_null(strstr(error, wanted[i] + 1));
		assert_int_equal(r, wanted[i][0] == '!' ? REASON_TASK_INVALID : 0);
		if (!r)
			assert_string_equal(task.url, wanted[i]);
	}
	assert_int_equal(i, count);
}

#define EXPECT_FILE(name, ...)                                                                     \
	do {                                                                                       \
		const char *const wanted[] = {__VA_ARGS__};                                        \
		expect_file(name, wanted, sizeof wanted / sizeof *wanted);                         \
	} while (0)

static void test_plain_urls_are_sent_as_they_are(void **state)
{
	(void)state;
	EXPECT_FILE("t01-plain.txt", "http://www.example.com/a", "http://www.example.com/b");
	EXPECT_FILE("t11-no-final-newline.txt", "http://www.example.com/a",
		    "http://www.example.com/b");
	EXPECT_FILE("t18-comma-apostrophe.txt", "http://www.example.com/a,b?c='x'*y");
}

static void test_bytes_outside_ascii_are_percent_encoded(void **state)
{
	(void)state;
	/* UTF-8 of U+00E9 and U+0628; U+00A3 in ISO 8859-1 */
	EXPECT_FILE("t02-nonascii-path.txt", "http://www.example.com/caf%C3%A9/%D8%A8");
	EXPECT_FILE("t03-latin1-bytes.txt", "http://www.example.com/price/%A3");
}

static void test_a_host_outside_ascii_is_refused_with_a_word_about_punycode(void **state)
{
	(void)state;
	EXPECT_FILE("t04-idn.txt", "!punycode", "http://xn--bcher-kva.example/");
}

static void test_fragments_are_cut(void **state)
{
	(void)state;
	EXPECT_FILE("t05-fragment.txt", "http://www.example.com/p", "http://www.example.com/p",
		    "http://www.example.com/");
}

static void test_what_stands_around_a_url_is_taken_off(void **state)
{
	(void)state;
	EXPECT_FILE("t07-surrounding-space.txt", "http://www.example.com/a",
		    "http://www.example.com/b");
	EXPECT_FILE("t08-crlf-file.txt", "http://www.example.com/a", "http://www.example.com/b");
	EXPECT_FILE("t09-bom.txt", "http://www.example.com/a", "http://www.example.com/b");
	EXPECT_FILE("t10-comments-blank.txt", "!no scheme", "!empty", "!no scheme",
		    "http://www.example.com/a", "!empty");
	expect_url("http://a.example/\n", "http://a.example/");
}

static void test_a_url_of_8128_bytes_is_a_task(void **state)
{
	struct lines lines;

	(void)state;
	lines_open(&lines, "t12-long-8k.txt");
	assert_true(lines_next(&lines));
	assert_int_equal(read_bytes(lines.bytes, lines.len), 0);
	assert_memory_equal(task.url, lines.bytes, lines.len);
	assert_int_equal(strlen(task.url), lines.len);
	assert_false(lines_next(&lines));
}

static void test_the_case_of_scheme_and_host_does_not_matter(void **state)
{
	(void)state;
	EXPECT_FILE("t14-duplicates.txt", "http://www.example.com/a", "http://www.example.com/a",
		    "http://www.example.com/a");
	assert_string_equal(task.host, "www.example.com");
}

static void test_nothing_is_guessed_without_a_scheme(void **state)
{
	(void)state;
	EXPECT_FILE("t15-missing-scheme.txt", "!write http:// or https://",
		    "!write http:// or https://");
	expect_refusal("example.com:8080/a", "no scheme");
	expect_refusal("localhost:8080", "no scheme");
	expect_refusal("127.0.0.1/a", "no scheme");
	expect_refusal("http:example.com", "\"//\"");
	expect_refusal("http:/example.com", "\"//\"");
}

static void test_other_schemes_are_refused_by_name(void **state)
{
	(void)state;
	EXPECT_FILE("t16-other-schemes.txt", "!\"ftp\"", "!\"file\"", "!\"javascript\"",
		    "!\"mailto\"");
	expect_refusal("httpx://a.example/", "\"httpx\"");
}

static void test_credentials_are_sent_and_not_shown(void **state)
{
	struct lines lines;

	(void)state;
	lines_open(&lines, "t17-userinfo-url.txt");
	assert_true(lines_next(&lines));
	assert_int_equal(read_bytes(lines.bytes, lines.len), 0);
	assert_string_equal(task.url, "http://user:pw@www.example.com/");
	assert_string_equal(task.shown, "http://***@www.example.com/");
	assert_true(lines_next(&lines));
	assert_int_equal(read_bytes(lines.bytes, lines.len), 0);
	assert_string_equal(task.url, "https://www.example.com/a");
	assert_false(lines_next(&lines));
}

static void expect_bytes_refused(const char *name, const char *hint)
{
	char path[4096], bytes[LINE_MAX_BYTES];
	FILE *file;
	size_t len;

	snprintf(path, sizeof path, "%s/tasks/%s", TEST_DATA_DIR, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	len = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	assert_int_equal(read_bytes(bytes, len), REASON_TASK_INVALID);
	assert_non_null(strstr(error, hint));
}

static void test_what_is_no_url_is_refused_whatever_its_bytes(void **state)
{
	(void)state;
	expect_bytes_refused("t21-binary-payload.bin", "control byte");
	expect_bytes_refused("t22-nul-only.bin", "control byte");
	expect_bytes_refused("t24-empty-payload.bin", "empty");
	expect_bytes_refused("t26-pickle.bin", "control byte");
	expect_refusal("{\"url\":\"http://a.example/\"}", "--tasks-are json");
}

/* --- more --------------------------------------------------------------------------------------------------------- */

static void test_control_bytes_are_refused(void **state)
{
	(void)state;
	expect_refusal("http://a.example/\r\nX: y", "byte 18");
	expect_refusal("http://a.example/\tb", "0x09");
	expect_refusal("http://a.example/\x7f", "0x7f");
	assert_int_equal(read_bytes("http://a.example/\0b", 19), REASON_TASK_INVALID);
}

static void test_hosts_are_canonical(void **state)
{
	(void)state;
	expect_url("http://Example.COM./x", "http://example.com/x");
	expect_url("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/");
	assert_string_equal(task.host, "2001:db8::1");
	expect_same("http://192.0.2.1:80/");
}

static void test_hosts_that_hide_an_address_are_refused(void **state)
{
	static const char *const hosts[] = {"127.1", "0x7f000001", "2130706433", "a..b",    ".a",
					    "a%2eb", "[::1",       "[1.2.3.4]",  "[::1%1]", "a b"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		snprintf(text, sizeof text, "http://%s/", hosts[i]);
		assert_int_equal(read_text(text), REASON_TASK_INVALID);
	}
	expect_refusal("http:///a", "no host");
	expect_refusal("http://user@/a", "no host");
	expect_refusal("http://", "no host");
}

static void test_hosts_on_which_standards_differ_are_refused(void **state)
{
	(void)state;
	/* WHATWG: host a.example; RFC 3986: host b.example */
	expect_refusal("http://a.example\\@b.example/", "backslash");
	expect_refusal("http://a@b@c.example/", "%40");
	/* The authority ends before the "@". */
	expect_url("http://a.example/@b.example", "http://a.example/@b.example");
	expect_url("http://a.example?@b.example", "http://a.example/?@b.example");
	expect_url("http://a.example#@b.example", "http://a.example/");
}

static void test_ports_are_numbers_from_1_to_65535(void **state)
{
	static const char *const ports[] = {"0",  "65536", "99999999999", "080",
					    "8o", "-1",    "+1",          " 1"};
	char text[64];

	(void)state;
	expect_same("http://a.example:1/");
	expect_same("http://a.example:65535/");
	for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
		snprintf(text, sizeof text, "http://a.example:%s/", ports[i]);
		expect_refusal(text, "1 to 65535");
	}
	expect_refusal("http://[::1]x/", "1 to 65535");
}

static void test_path_and_query_keep_what_they_have(void **state)
{
	(void)state;
	expect_same("http://a.example/%zz%2F/../;a=b&c[1]=~!$()*+,:@?x=/?&y=%");
	expect_url("http://a.example/a b?c=\"<>\\^`{|}",
		   "http://a.example/a%20b?c=%22%3C%3E%5C%5E%60%7B%7C%7D");
	expect_url("http://a.example", "http://a.example/");
	expect_url("http://a.example?q", "http://a.example/?q");
}

static void test_credentials_hold_no_control_bytes(void **state)
{
	(void)state;
	expect_refusal("http://u:a%0d%0ab@a.example/", "%0D");
	expect_refusal("http://u:%00@a.example/", "%00");
	expect_refusal("http://u:100%@a.example/", "%25");
	expect_url("http://u:p%40:\xC3\xA9@a.example/", "http://u:p%40:%C3%A9@a.example/");
	assert_string_equal(task.shown, "http://***@a.example/");
	expect_url("http://@a.example/", "http://a.example/");
}

static void test_a_refusal_does_not_repeat_credentials(void **state)
{
	static const char *const texts[] = {"http://u:hunter2@/", "http://u:hunter2@a..b/",
					    "http://u:hunter2@a:x/", "http://u:hunter2%@a/",
					    "//u:hunter2@a/"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(read_text(texts[i]), REASON_TASK_INVALID);
		assert_null(strstr(error, "hunter2"));
	}
}

static void test_a_url_over_65536_bytes_is_refused(void **state)
{
	char *text = malloc(65537);

	(void)state;
	memset(text, 'a', 65537);
	memcpy(text, "http://a/", 9);
	assert_int_equal(read_bytes(text, 65536), 0);
	assert_int_equal(read_bytes(text, 65537), REASON_TASK_INVALID);
	assert_non_null(strstr(error, "65536"));
	free(text);
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
	    cmocka_unit_test(test_plain_urls_are_sent_as_they_are),
	    cmocka_unit_test(test_bytes_outside_ascii_are_percent_encoded),
	    cmocka_unit_test(test_a_host_outside_ascii_is_refused_with_a_word_about_punycode),
	    cmocka_unit_test(test_fragments_are_cut),
	    cmocka_unit_test(test_what_stands_around_a_url_is_taken_off),
	    cmocka_unit_test(test_a_url_of_8128_bytes_is_a_task),
	    cmocka_unit_test(test_the_case_of_scheme_and_host_does_not_matter),
	    cmocka_unit_test(test_nothing_is_guessed_without_a_scheme),
	    cmocka_unit_test(test_other_schemes_are_refused_by_name),
	    cmocka_unit_test(test_credentials_are_sent_and_not_shown),
	    cmocka_unit_test(test_what_is_no_url_is_refused_whatever_its_bytes),
	    cmocka_unit_test(test_control_bytes_are_refused),
	    cmocka_unit_test(test_hosts_are_canonical),
	    cmocka_unit_test(test_hosts_that_hide_an_address_are_refused),
	    cmocka_unit_test(test_hosts_on_which_standards_differ_are_refused),
	    cmocka_unit_test(test_ports_are_numbers_from_1_to_65535),
	    cmocka_unit_test(test_path_and_query_keep_what_they_have),
	    cmocka_unit_test(test_credentials_hold_no_control_bytes),
	    cmocka_unit_test(test_a_refusal_does_not_repeat_credentials),
	    cmocka_unit_test(test_a_url_over_65536_bytes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
