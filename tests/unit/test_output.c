/* test_output.c - results as rows: alignment, JSON, bytes that no terminal should get. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output.h"

static const struct column columns[] = {{"member"}, {"count"}};

/* Prints `count` rows of two cells and compares. */
static void expect(enum output_shape shape, const struct cell (*rows)[2], size_t count,
		   const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct output output;

	output_begin(&output, stream, shape, columns, 2);
	for (size_t i = 0; i < count; i++)
		output_row(&output, rows[i]);
	assert_int_equal(output_end(&output), 0);
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}

static void test_a_table_is_aligned_and_numbers_stand_right(void **state)
{
	const struct cell rows[][2] = {
	    {CELL_TEXT("http://a:1"), CELL_NUMBER(7)},
	    {CELL_TEXT("b"), CELL_NUMBER(1234567)},
	    {CELL_TEXT("c"), CELL_NONE},
	};

	(void)state;
	expect(OUTPUT_TABLE, rows, 3,
	       "member        count\n"
	       "http://a:1        7\n"
	       "b           1234567\n"
	       "c                 -\n");
}

static void test_an_empty_table_has_its_head(void **state)
{
	(void)state;
	expect(OUTPUT_TABLE, NULL, 0, "member  count\n");
}

static void test_a_record_has_a_line_for_each_column(void **state)
{
	const struct cell rows[][2] = {{CELL_TEXT("a"), CELL_REAL(1.5)},
				       {CELL_TEXT("b"), CELL_BOOL(true)}};

	(void)state;
	expect(OUTPUT_RECORD, rows, 2, "member  a\ncount   1.5\n\nmember  b\ncount   yes\n");
}

static void test_plain_rows_have_tabs_only(void **state)
{
	const struct cell rows[][2] = {{CELL_TEXT("a"), CELL_NUMBER(1)}};

	(void)state;
	expect(OUTPUT_PLAIN, rows, 1, "a\t1\n");
}

static void test_json_is_one_object_a_line(void **state)
{
	const struct cell rows[][2] = {
	    {CELL_TEXT("a\"\n"), CELL_NUMBER(1)},
	    {CELL_NONE, CELL_BOOL(false)},
	};

	(void)state;
	expect(OUTPUT_JSON, rows, 2,
	       "{\"member\":\"a\\\"\\n\",\"count\":1}\n{\"member\":null,\"count\":false}\n");
}

/* RFC 4180 2: a comma, a quote or a line break puts the field in quotes, and a quote stands twice. */
static void test_csv_quotes_what_would_break_a_line(void **state)
{
	const struct cell rows[][2] = {{CELL_TEXT("plain"), CELL_NUMBER(7)},
				       {CELL_TEXT("a,b"), CELL_NONE},
				       {CELL_TEXT("say \"x\""), CELL_BOOL(true)}};

	(void)state;
	expect(OUTPUT_CSV, rows, 3,
	       "member,count\n"
	       "plain,7\n"
	       "\"a,b\",\n"
	       "\"say \"\"x\"\"\",yes\n");
	expect(OUTPUT_CSV, NULL, 0, "member,count\n");
}

static void test_a_score_reads_back_as_the_same_double(void **state)
{
	const struct cell rows[][2] = {{CELL_NONE, CELL_REAL(0.1)},
				       {CELL_NONE, CELL_REAL(9007199254740993.0)},
				       {CELL_NONE, CELL_REAL(-__builtin_inf())}};

	(void)state;
	expect(OUTPUT_JSON, rows, 3,
	       "{\"member\":null,\"count\":0.10000000000000001}\n"
	       "{\"member\":null,\"count\":9007199254740992.0}\n"
	       "{\"member\":null,\"count\":\"-inf\"}\n");
}

static void test_bytes_that_are_not_utf8_are_escaped(void **state)
{
	/* A lone continuation, an overlong slash, a surrogate, a cut sequence (RFC 3629); then a good one. */
	const struct cell rows[][2] = {
	    {CELL_TEXT("\x80 \xc0\xaf \xed\xa0\x80 \xe2\x82"), CELL_NONE},
	    {CELL_TEXT("\xe2\x82\xac \xf0\x9f\x98\x80"), CELL_NONE},
	};

	(void)state;
	expect(OUTPUT_PLAIN, rows, 2,
	       "\\x80 \\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x82\t-\n"
	       "\xe2\x82\xac \xf0\x9f\x98\x80\t-\n");
	expect(OUTPUT_JSON, rows, 1,
	       "{\"member\":\"\\\\x80 \\\\xc0\\\\xaf \\\\xed\\\\xa0\\\\x80 "
	       "\\\\xe2\\\\x82\",\"count\":null}\n");
}

static void test_control_bytes_do_not_reach_a_terminal(void **state)
{
	const struct cell rows[][2] = {
	    {CELL_TEXT("\x1b[2J\n\x7f\xc2\x9b"), CELL_NONE},
	    {CELL_BYTES("a\0b", 3), CELL_NONE},
	};

	(void)state;
	expect(OUTPUT_PLAIN, rows, 2, "\\x1b[2J\\x0a\\x7f\\xc2\\x9b\t-\na\\x00b\t-\n");
}

static void test_rows_behind_the_aligned_ones_keep_their_columns(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct output output;

	(void)state;
	output_begin(&output, stream, OUTPUT_TABLE, columns, 2);
	for (int i = 0; i < OUTPUT_ALIGNED + 2; i++)
		output_row(&output, (struct cell[]){CELL_TEXT("abcdefgh"), CELL_NUMBER(i)});
	assert_int_equal(output_end(&output), 0);
	fclose(stream);
	assert_int_equal(size, (OUTPUT_ALIGNED + 3) * strlen("abcdefgh    513\n"));
	assert_string_equal(text + size - 16, "abcdefgh    513\n");
	free(text);
}

static void test_a_full_disk_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct output output;

	(void)state;
	if (!full)
		skip();
	output_begin(&output, full, OUTPUT_JSON, columns, 2);
	for (int i = 0; i < 10000 && !output_failed(&output); i++)
		output_row(&output, (struct cell[]){CELL_TEXT("abcdefgh"), CELL_NUMBER(i)});
	assert_true(output_failed(&output));
	assert_int_equal(output_end(&output), -ENOSPC);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_table_is_aligned_and_numbers_stand_right),
	    cmocka_unit_test(test_an_empty_table_has_its_head),
	    cmocka_unit_test(test_a_record_has_a_line_for_each_column),
	    cmocka_unit_test(test_plain_rows_have_tabs_only),
	    cmocka_unit_test(test_json_is_one_object_a_line),
	    cmocka_unit_test(test_csv_quotes_what_would_break_a_line),
	    cmocka_unit_test(test_a_score_reads_back_as_the_same_double),
	    cmocka_unit_test(test_bytes_that_are_not_utf8_are_escaped),
	    cmocka_unit_test(test_control_bytes_do_not_reach_a_terminal),
	    cmocka_unit_test(test_rows_behind_the_aligned_ones_keep_their_columns),
	    cmocka_unit_test(test_a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
