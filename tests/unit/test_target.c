/* test_target.c - where probes go and what they expect there, as the rules say it in text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "check/target.h"

static struct target targets[TARGETS_MAX];
static char error[256];

static size_t parse(const char *text)
{
	size_t count = SIZE_MAX;

	error[0] = '\0';
	if (targets_parse(targets, &count, text, error, sizeof error))
		fail_msg("%s: %s", text, error);
	return count;
}

static void test_a_target_has_kind_host_port_and_path(void **state)
{
	static const struct {
		const char *text;
		struct target target;
	} rows[] = {
	    {"http://example.com", {TARGET_HTTP, "example.com", 80, "/"}},
	    {"http://example.com/", {TARGET_HTTP, "example.com", 80, "/"}},
	    {"HTTP://Example.COM:8080/a/b?c=d&e", {TARGET_HTTP, "example.com", 8080, "/a/b?c=d&e"}},
	    {"http://example.com?q", {TARGET_HTTP, "example.com", 80, "/?q"}},
	    {"https://example.com", {TARGET_HTTPS, "example.com", 443, "/"}},
	    {"https://[2001:DB8::1]:8443/x", {TARGET_HTTPS, "2001:db8::1", 8443, "/x"}},
	    {"http://192.0.2.1/", {TARGET_HTTP, "192.0.2.1", 80, "/"}},
	    {"example.com:443", {TARGET_TUNNEL, "example.com", 443, "/"}},
	    {"[2001:db8::1]:65535", {TARGET_TUNNEL, "2001:db8::1", 65535, "/"}},
	    {"http://example.com/http://other/",
	     {TARGET_HTTP, "example.com", 80, "/http://other/"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct target *wanted = &rows[i].target;

		assert_int_equal(parse(rows[i].text), 1);
		assert_int_equal(targets[0].kind, wanted->kind);
		assert_string_equal(targets[0].host, wanted->host);
		assert_int_equal(targets[0].port, wanted->port);
		assert_string_equal(targets[0].path, wanted->path);
	}
}

static void test_targets_are_separated_by_blanks(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("  \t "), 0);
	assert_int_equal(parse(" http://a.example/ \t b.example:443  https://c.example/x "), 3);
	assert_string_equal(targets[0].host, "a.example");
	assert_string_equal(targets[1].host, "b.example");
	assert_int_equal(targets[1].kind, TARGET_TUNNEL);
	assert_string_equal(targets[2].path, "/x");
	assert_int_equal(
	    parse("a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9 a:10 a:11 a:12 a:13 a:14 a:15 a:16"),
	    TARGETS_MAX);
	assert_int_equal(targets[15].port, 16);
}

static void test_what_is_no_target_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
	    {"example.com", "no port"},
	    {"ftp://example.com/", "scheme"},
	    {"http://", "host"},
	    {"http:///path", "host"},
	    {"http://127.1/", "host"},
	    {"http://example.com:/", "port"},
	    {"http://example.com:0/", "port"},
	    {"http://example.com:65536/", "port"},
	    {"http://example.com:8o/", "port"},
	    {"[2001:db8::1:443", "bracket"},
	    {"2001:db8::1", "host"},
	    {"[example.com]:443", "host"},
	    {"http://example.com/a#b", "path"},
	    {"http://example.com/\xc3\xa4", "path"},
	    {"a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9 a:10 a:11 a:12 a:13 a:14 a:15 a:16 a:17", "16"},
	};
	size_t count = 7;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(targets_parse(targets, &count, rows[i].text, error, sizeof error),
				 -EINVAL);
		if (!strstr(error, rows[i].why))
			fail_msg("%s: %s", rows[i].text, error);
	}
	assert_int_equal(count, 7);
}

static void test_a_path_has_at_most_255_bytes(void **state)
{
	char text[400] = "http://example.com/";
	size_t count, start = strlen(text);

	(void)state;
	memset(text + start, 'a', 254);
	assert_int_equal(parse(text), 1);
	assert_int_equal(strlen(targets[0].path), 255);
	text[start + 254] = 'a';
	assert_int_equal(targets_parse(targets, &count, text, error, sizeof error), -EINVAL);
}

static void test_credentials_in_a_target_are_refused_and_not_shown(void **state)
{
	size_t count;

	(void)state;
	assert_int_equal(
	    targets_parse(targets, &count, "http://user:geheim@example.com/", error, sizeof error),
	    -EINVAL);
	assert_non_null(strstr(error, "credentials"));
	assert_null(strstr(error, "geheim"));
}

/* --- expectation -------------------------------------------------------------------------------------------------- */

static void check_statuses(const char *text, int first, int last, int other)
{
	struct expectation expectation;

	if (expectation_parse(&expectation, text, "", error, sizeof error))
		fail_msg("%s: %s", text, error);
	for (int status = 0; status < 1000; status++)
		assert_int_equal(expectation_allows(&expectation, status),
				 (status >= first && status <= last) || status == other);
}

static void test_statuses_are_numbers_and_ranges(void **state)
{
	(void)state;
	check_statuses("200", 200, 200, 200);
	check_statuses("200-399", 200, 399, 399);
	check_statuses("200-204,404", 200, 204, 404);
	check_statuses(" 404 , 200-204 ", 200, 204, 404);
	check_statuses("100-599", 100, 599, 599);
	check_statuses("", 100, 599, 599);
}

static void test_what_are_no_statuses_is_refused(void **state)
{
	static const char *const rows[] = {"20",  "2000",    "099", "600",      "200-", "-200",
					   "abc", "300-200", ",",   "200,,204", "200,", "200 204"};
	struct expectation expectation;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (expectation_parse(&expectation, rows[i], "", error, sizeof error) != -EINVAL)
			fail_msg("'%s' was accepted", rows[i]);
		assert_non_null(strstr(error, rows[i]));
	}
}

static void test_the_text_has_at_most_511_bytes(void **state)
{
	struct expectation expectation;
	char text[513];

	(void)state;
	memset(text, 'a', sizeof text);
	text[511] = '\0';
	assert_int_equal(expectation_parse(&expectation, "200", text, error, sizeof error), 0);
	assert_string_equal(expectation.text, text);
	text[511] = 'a';
	text[512] = '\0';
	assert_int_equal(expectation_parse(&expectation, "200", text, error, sizeof error),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_target_has_kind_host_port_and_path),
	    cmocka_unit_test(test_targets_are_separated_by_blanks),
	    cmocka_unit_test(test_what_is_no_target_is_refused_with_a_reason),
	    cmocka_unit_test(test_a_path_has_at_most_255_bytes),
	    cmocka_unit_test(test_credentials_in_a_target_are_refused_and_not_shown),
	    cmocka_unit_test(test_statuses_are_numbers_and_ranges),
	    cmocka_unit_test(test_what_are_no_statuses_is_refused),
	    cmocka_unit_test(test_the_text_has_at_most_511_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
