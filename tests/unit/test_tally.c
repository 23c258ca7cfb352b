/* test_tally.c - the live line, and the summary with the share of each member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "base/clock.h"
#include "worker/tally.h"
#include "worker/tally_text.h"

/* --- the line ----------------------------------------------------------------------------------------------------- */

static void expect_line(struct tally_view view, const char *wanted)
{
	char line[TALLY_LINE_SIZE];

	tally_line(&view, line);
	assert_string_equal(line, wanted);
}

static void test_the_line_says_all_that_is_known(void **state)
{
	(void)state;
	expect_line((struct tally_view){10, 1, 2, 2.5, 3, 500, 7},
		    "10 done, 1 failed, 2 retried, 2.5/s, 500 waiting (3 min 20 s), 3 in flight, 7 "
		    "eligible");
}

static void test_what_is_not_known_is_not_said(void **state)
{
	(void)state;
	expect_line((struct tally_view){0, 0, 0, 0, -1, -1, -1},
		    "0 done, 0 failed, 0 retried, 0.0/s");
	expect_line((struct tally_view){0, 0, 0, 0, 0, 9, 0},
		    "0 done, 0 failed, 0 retried, 0.0/s, 9 waiting, 0 in flight, 0 eligible");
}

static void test_an_estimate_is_in_words_of_its_size(void **state)
{
	(void)state;
	expect_line((struct tally_view){1, 0, 0, 1, -1, 59, -1},
		    "1 done, 0 failed, 0 retried, 1.0/s, 59 waiting (59 s)");
	expect_line((struct tally_view){1, 0, 0, 1, -1, 18060, -1},
		    "1 done, 0 failed, 0 retried, 1.0/s, 18060 waiting (5 h 1 min)");
	expect_line((struct tally_view){1, 0, 0, 0.1, -1, 18000000, -1},
		    "1 done, 0 failed, 0 retried, 0.1/s, 18000000 waiting");
}

static void test_the_largest_numbers_fit(void **state)
{
	char line[TALLY_LINE_SIZE];
	struct tally_view view = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 1e6,
				  INT64_MAX,  INT64_MAX,  INT64_MAX};

	(void)state;
	tally_line(&view, line);
	assert_true(strlen(line) < TALLY_LINE_SIZE - 1);
	assert_non_null(strstr(line, "eligible"));
}

/* --- the summary -------------------------------------------------------------------------------------------------- */

static char printed[65536];

/* What `tally` prints to standard error, which is no terminal meanwhile. */
static void print(const struct tally *tally, bool is_json)
{
	int pipe_fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(pipe_fds), 0);
	assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
	close(pipe_fds[1]);
	tally_print(tally, is_json);
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	n = read(pipe_fds[0], printed, sizeof printed - 1);
	close(pipe_fds[0]);
	printed[n > 0 ? n : 0] = '\0';
}

struct stand {
	struct loop *loop;
	struct tally *tally;
};

static void stand_up(struct stand *stand)
{
	clock_set(1000);
	assert_int_equal(loop_new(&stand->loop), 0);
	assert_int_equal(tally_new(&stand->tally, stand->loop, true), 0);
}

static void stand_down(struct stand *stand)
{
	tally_free(stand->tally);
	loop_free(stand->loop);
	clock_set(-1);
}

static void test_the_summary_has_the_share_of_each_member(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	tally_add(stand.tally, OUTCOME_DONE, "http://a.example:1");
	tally_add(stand.tally, OUTCOME_DONE, "http://b.example:1");
	tally_add(stand.tally, OUTCOME_RETRY, "http://b.example:1");
	tally_add(stand.tally, OUTCOME_DEAD, "http://b.example:1");
	tally_add(stand.tally, OUTCOME_RELEASE, NULL);
	clock_set(3000);
	print(stand.tally, false);
	assert_string_equal(printed, "2 done, 1 failed, 1 retried, 1 given back; 1.5/s\n"
				     "  75.00%          3  http://b.example:1\n"
				     "  25.00%          1  http://a.example:1\n");
	stand_down(&stand);
}

static void test_the_summary_in_json(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	tally_add(stand.tally, OUTCOME_DONE, "http://a.example:1");
	clock_set(1500);
	print(stand.tally, true);
	assert_string_equal(
	    printed, "{\"done\":1,\"retried\":0,\"given_back\":0,\"failed\":0,\"took_ms\":500,"
		     "\"members\":{\"http://a.example:1\":1},\"other_members\":0}\n");
	stand_down(&stand);
}

static void test_nothing_done_is_a_summary_too(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	print(stand.tally, false);
	assert_string_equal(printed, "0 done, 0 failed, 0 retried, 0 given back; 0.0/s\n");
	stand_down(&stand);
}

static void test_many_members_are_others_in_the_end(void **state)
{
	struct stand stand;
	char name[32];

	(void)state;
	stand_up(&stand);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "http://m%04d.example:1", i);
		tally_add(stand.tally, OUTCOME_DONE, name);
	}
	clock_set(2000);
	print(stand.tally, false);
	/* Twenty by name; they have all the same count, and stand in the order of their names. */
	assert_non_null(strstr(printed, "http://m0019.example:1\n"));
	assert_null(strstr(printed, "m0020"));
	assert_non_null(strstr(printed, "  99.60%       4980  others\n"));
	stand_down(&stand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_line_says_all_that_is_known),
	    cmocka_unit_test(test_what_is_not_known_is_not_said),
	    cmocka_unit_test(test_an_estimate_is_in_words_of_its_size),
	    cmocka_unit_test(test_the_largest_numbers_fit),
	    cmocka_unit_test(test_the_summary_has_the_share_of_each_member),
	    cmocka_unit_test(test_the_summary_in_json),
	    cmocka_unit_test(test_nothing_done_is_a_summary_too),
	    cmocka_unit_test(test_many_members_are_others_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
