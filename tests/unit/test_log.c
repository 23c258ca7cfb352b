/* test_log.c - lines for people and machines: escaping, levels, holding back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

static int file = -1;
static char written[1 << 18];

/* What has gone to standard error since the last call. */
static const char *catch (void)
{
	ssize_t n = pread(file, written, sizeof(written) - 1, 0);

	assert_true(n >= 0);
	written[n] = '\0';
	assert_int_equal(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	return written;
}

/* Standard error is the way of TAP's reader to us: it is only lent. */
static int saved = -1;

static int borrow(void **state)
{
	(void)state;
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	file = memfd_create("log", 0);
	dup2(file, STDERR_FILENO);
	log_setup(LOG_INFO, LOG_KEY_VALUE);
	log_context("");
	return file < 0;
}

static int give_back(void **state)
{
	(void)state;
	log_hold(false);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(file);
	return 0;
}

static void test_a_line_has_time_level_context_message_and_fields(void **state)
{
	const char *line;

	(void)state;
	log_context("gateway.1");
	log_warn("store away", LOG_TEXT("store", "redis://h:1/0"), LOG_NUMBER("n", -5));
	line = catch ();
	assert_int_equal(line[4], '-');
	assert_int_equal(line[10], 'T');
	assert_int_equal(line[23], 'Z');
	assert_string_equal(line + 24, " warn  gateway.1: store away store=redis://h:1/0 n=-5\n");
}

static void test_texts_that_could_be_misread_are_quoted(void **state)
{
	static const struct {
		const char *text, *written;
	} rows[] = {
	    {"plain", " k=plain\n"},
	    {"", " k=\"\"\n"},
	    {"two words", " k=\"two words\"\n"},
	    {"a=b", " k=\"a=b\"\n"},
	    {"a\"b\\c", " k=\"a\\\"b\\\\c\"\n"},
	    {"a\nb\r\t\x1b\x7f", " k=\"a\\u000ab\\u000d\\u0009\\u001b\\u007f\"\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *line;

		log_info("m", LOG_TEXT("k", rows[i].text));
		line = strstr(catch (), "m k=");
		assert_non_null(line);
		assert_string_equal(line + 1, rows[i].written);
	}
}

static void test_a_json_line_is_one_object_whatever_the_text(void **state)
{
	const char *text = "quote \" backslash \\ line\n tab\t bell\a del\x7f umlaut \xc3\xa4";
	json_t *line;

	(void)state;
	log_setup(LOG_INFO, LOG_JSON);
	log_context("keeper");
	log_info(text, LOG_TEXT("text", text), LOG_NUMBER("number", INT64_MIN));
	catch ();
	assert_ptr_equal(strchr(written, '\n') + 1, written + strlen(written));
	line = json_loads(written, 0, NULL);
	assert_non_null(line);
	assert_string_equal(json_string_value(json_object_get(line, "message")), text);
	assert_string_equal(json_string_value(json_object_get(line, "text")), text);
	assert_string_equal(json_string_value(json_object_get(line, "context")), "keeper");
	assert_string_equal(json_string_value(json_object_get(line, "level")), "info");
	assert_true(json_integer_value(json_object_get(line, "number")) == INT64_MIN);
	json_decref(line);
}

/* RFC 8259 8.1: JSON that others read is UTF-8. A foreign member may hold any byte. */
static void test_a_json_line_is_utf_8_whatever_the_bytes(void **state)
{
	static const char *const texts[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf", "\x80z"};

	(void)state;
	log_setup(LOG_INFO, LOG_JSON);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		json_t *line;

		log_info("m", LOG_TEXT("member", texts[i]));
		line = json_loads(catch (), 0, NULL);
		assert_non_null(line);
		json_decref(line);
	}
}

static void test_lines_above_the_level_are_dropped(void **state)
{
	(void)state;
	log_setup(LOG_WARN, LOG_KEY_VALUE);
	log_info("no");
	log_debug("no");
	assert_string_equal(catch (), "");
	log_error("yes");
	assert_non_null(strstr(catch (), "yes"));
	assert_true(log_enabled(LOG_WARN));
	assert_false(log_enabled(LOG_INFO));
}

static void test_held_lines_wait_for_the_flush_and_warnings_take_them_along(void **state)
{
	(void)state;
	log_hold(true);
	log_info("first");
	assert_string_equal(catch (), "");
	log_flush();
	assert_non_null(strstr(catch (), "first"));
	log_info("second");
	log_warn("third");
	catch ();
	assert_non_null(strstr(written, "second"));
	assert_true(strstr(written, "second") < strstr(written, "third"));
}

static void test_no_held_line_is_lost_when_there_are_many(void **state)
{
	size_t lines = 0;

	(void)state;
	log_hold(true);
	for (int i = 0; i < 1500; i++)
		log_info("a line of some length, so that many of them fill it", LOG_NUMBER("i", i));
	log_flush();
	catch ();
	for (const char *at = written; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 1500);
	assert_non_null(strstr(written, " i=1499\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_a_line_has_time_level_context_message_and_fields,
					    borrow, give_back),
	    cmocka_unit_test_setup_teardown(test_texts_that_could_be_misread_are_quoted, borrow,
					    give_back),
	    cmocka_unit_test_setup_teardown(test_a_json_line_is_one_object_whatever_the_text,
					    borrow, give_back),
	    cmocka_unit_test_setup_teardown(test_a_json_line_is_utf_8_whatever_the_bytes, borrow,
					    give_back),
	    cmocka_unit_test_setup_teardown(test_lines_above_the_level_are_dropped, borrow,
					    give_back),
	    cmocka_unit_test_setup_teardown(
		test_held_lines_wait_for_the_flush_and_warnings_take_them_along, borrow, give_back),
	    cmocka_unit_test_setup_teardown(test_no_held_line_is_lost_when_there_are_many, borrow,
					    give_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
