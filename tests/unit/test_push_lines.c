/* test_push_lines.c - lines of standard input: where they end, how long they may be, however they arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/push_lines.h"
#include "cli/time_text.h"

#define MAX 8

static char told[512];

/* What it gives, as "1:text|2:!|": the number, and "!" for one that is too long. */
static void take_all(struct push_lines *lines)
{
	const char *text;
	enum push_line line;
	size_t len;

	while ((line = push_lines_next(lines, &text, &len)) != PUSH_LINE_NONE) {
		size_t used = strlen(told);

		if (line == PUSH_LINE)
			snprintf(told + used, sizeof told - used, "%d:%.*s|", (int)lines->number,
				 (int)len, text);
		else
			snprintf(told + used, sizeof told - used, "%d:!|", (int)lines->number);
	}
}

static void feed(struct push_lines *lines, const char *bytes, size_t len)
{
	size_t size;
	char *to = push_lines_reserve(lines, &size);

	assert_non_null(to);
	assert_true(len <= size);
	memcpy(to, bytes, len);
	push_lines_commit(lines, len);
	take_all(lines);
}

/* In pieces of `piece` bytes. */
static void read_in_pieces(const char *text, size_t piece)
{
	struct push_lines lines;
	size_t len = strlen(text);

	told[0] = '\0';
	push_lines_init(&lines, '\n', MAX);
	for (size_t at = 0; at < len; at += piece)
		feed(&lines, text + at, len - at < piece ? len - at : piece);
	lines.is_ended = true;
	take_all(&lines);
	push_lines_fini(&lines);
}

static void expect(const char *text, const char *wanted)
{
	for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
		read_in_pieces(text, piece);
		assert_string_equal(told, wanted);
	}
}

static void test_only_the_line_feed_is_cut(void **state)
{
	(void)state;
	expect("a\nb\r\nc\rd\n", "1:a|2:b\r|3:c\rd|");
}

static void test_the_last_line_needs_no_end(void **state)
{
	(void)state;
	expect("a\nb", "1:a|2:b|");
	expect("a\nb\n", "1:a|2:b|");
	expect("", "");
}

static void test_an_empty_line_is_a_line(void **state)
{
	(void)state;
	expect("\n\na\n\n", "1:|2:|3:a|4:|");
}

static void test_a_line_of_the_cap_is_taken_and_a_longer_one_left_out(void **state)
{
	(void)state;
	expect("12345678\n123456789\nz\n", "1:12345678|2:!|3:z|");
	expect("12345678", "1:12345678|");
	expect("123456789", "1:!|");
}

static void test_a_line_of_many_reads_is_left_out_once(void **state)
{
	(void)state;
	expect("a\n1234567890123456789012345678901234567890\nb", "1:a|2:!|3:b|");
	expect("1234567890123456789012345678901234567890", "1:!|");
}

static void test_a_time_is_read_to_the_millisecond(void **state)
{
	int64_t ms;

	(void)state;
	/* RFC 3339 5.8: 1985-04-12T23:20:50.52Z */
	assert_int_equal(time_text_parse("1985-04-12T23:20:50.52Z", &ms), 0);
	assert_int_equal(ms, INT64_C(482196050520));
	assert_int_equal(time_text_parse("1985-04-12T23:20:50.5209Z", &ms), 0);
	assert_int_equal(ms, INT64_C(482196050520));
	assert_int_equal(time_text_parse("1970-01-02", &ms), 0);
	assert_int_equal(ms, 86400000);
}

static void test_what_is_no_time_of_utc_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "tomorrow",
					    "2026-12-31T18:00:00",
					    "2026-12-31T18:00:00+01:00",
					    "2026-13-1",
					    "2026-12-31T18:00:00.Z",
					    "2026-12-31 ",
					    "1969-12-31",
					    "9999-12-31"};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!time_text_parse(texts[i], &ms))
			fail_msg("'%s' was taken", texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_only_the_line_feed_is_cut),
	    cmocka_unit_test(test_the_last_line_needs_no_end),
	    cmocka_unit_test(test_an_empty_line_is_a_line),
	    cmocka_unit_test(test_a_line_of_the_cap_is_taken_and_a_longer_one_left_out),
	    cmocka_unit_test(test_a_line_of_many_reads_is_left_out_once),
	    cmocka_unit_test(test_a_time_is_read_to_the_millisecond),
	    cmocka_unit_test(test_what_is_no_time_of_utc_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
