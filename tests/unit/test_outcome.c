/* test_outcome.c - what becomes of a task: done, again, given back or dead; and that docs/worker.md says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/result.h"
#include "worker/outcome.h"

static void expect(enum outcome wanted, int reason, int status)
{
	int64_t delay;

	if (outcome_of(reason, status, 0, &delay) != wanted)
		fail_msg("%s, status %d: not %s", result_word(reason), status,
			 outcome_word(wanted));
	assert_int_equal(delay, 0);
}

static void test_an_answer_is_done_unless_its_status_passes(void **state)
{
	static const int passing[] = {408, 425, 429, 500, 502, 503, 504};

	(void)state;
	for (int status = 100; status < 1000; status++) {
		enum outcome wanted = OUTCOME_DONE;

		for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
			if (status == passing[i])
				wanted = OUTCOME_RETRY;
		expect(wanted, REASON_OK, status);
	}
}

static void test_what_can_never_work_is_dead_at_once(void **state)
{
	(void)state;
	expect(OUTCOME_DEAD, REASON_TASK_INVALID, 0);
	expect(OUTCOME_DEAD, REASON_REQUEST_SCHEME, 0);
	expect(OUTCOME_DEAD, REASON_TARGET_PROHIBITED, 0);
	expect(OUTCOME_DEAD, REASON_REQUEST_SYNTAX, 0);
	expect(OUTCOME_DEAD, REASON_RESPONSE_BODY_SIZE, 200);
	expect(OUTCOME_DEAD, REASON_RESPONSE_REDIRECT, 302);
}

static void test_what_was_not_begun_is_given_back(void **state)
{
	(void)state;
	expect(OUTCOME_RELEASE, REASON_POOL_EMPTY, 0);
	expect(OUTCOME_RELEASE, REASON_POOL_FULL, 0);
	expect(OUTCOME_RELEASE, REASON_HOST_LIMIT, 0);
	expect(OUTCOME_RELEASE, REASON_HOST_RATE, 0);
	expect(OUTCOME_RELEASE, REASON_SHUTDOWN, 0);
	expect(OUTCOME_RELEASE, REASON_NO_DESCRIPTORS, 0);
}

static void test_a_store_that_is_away_is_no_fault_of_the_task(void **state)
{
	(void)state;
	for (int reason = 0; reason < REASON_COUNT; reason++)
		if (reason_row(reason)->fault == FAULT_STORE)
			expect(OUTCOME_RELEASE, reason, 0);
}

static void test_a_proxy_that_cannot_be_reached_is_no_fault_of_the_task(void **state)
{
	static const int reasons[] = {REASON_PROXY_REFUSED,     REASON_PROXY_UNREACHABLE,
				      REASON_PROXY_NAME,        REASON_PROXY_TIMEOUT,
				      REASON_PROXY_AUTH,        REASON_PROXY_TLS,
				      REASON_PROXY_CERTIFICATE, REASON_PROXY_ALERT};

	(void)state;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		expect(OUTCOME_RELEASE, reasons[i], 0);
}

/* Or the task may be the cause of what happened: it counts as its failure. */
static void test_what_happened_to_a_request_is_tried_again(void **state)
{
	(void)state;
	expect(OUTCOME_RETRY, REASON_PROXY_SILENT, 0);
	expect(OUTCOME_RETRY, REASON_PROXY_RESET, 0);
	expect(OUTCOME_RETRY, REASON_PROXY_GARBAGE, 0);
	expect(OUTCOME_RETRY, REASON_TARGET_DENIED, 0);
	expect(OUTCOME_RETRY, REASON_TARGET_REFUSED, 0);
	expect(OUTCOME_RETRY, REASON_TARGET_CERTIFICATE, 0);
	expect(OUTCOME_RETRY, REASON_RESPONSE_TIMEOUT, 200);
	expect(OUTCOME_RETRY, REASON_RESPONSE_INCOMPLETE, 200);
	expect(OUTCOME_RETRY, REASON_INTERNAL, 0);
	expect(OUTCOME_RETRY, -12, 0);
}

static void test_the_server_decides_how_long_to_wait(void **state)
{
	int64_t delay = -1;

	(void)state;
	assert_int_equal(outcome_of(REASON_OK, 429, 5000, &delay), OUTCOME_RETRY);
	assert_int_equal(delay, 5000);
	assert_int_equal(outcome_of(REASON_HOST_RATE, 0, 700, &delay), OUTCOME_RELEASE);
	assert_int_equal(delay, 700);
	assert_int_equal(outcome_of(REASON_OK, 503, -1, &delay), OUTCOME_RETRY);
	assert_int_equal(delay, 0);
	/* Retry-After of a 301 (RFC 9110 10.2.3) speaks of the redirect. */
	assert_int_equal(outcome_of(REASON_OK, 301, 5000, &delay), OUTCOME_DONE);
	assert_int_equal(delay, 0);
}

/* --- docs/worker.md ----------------------------------------------------------------------------------------------- */

/* Is `word` in backticks in the line of the table that begins with "| `outcome`"? */
static bool is_documented(enum outcome outcome, const char *word)
{
	char line[4096], begin[32], quoted[64];
	bool is_there = false;
	FILE *file = fopen(TEST_DATA_DIR "/../../docs/worker.md", "r");

	assert_non_null(file);
	snprintf(begin, sizeof begin, "| `%s` |", outcome_word(outcome));
	snprintf(quoted, sizeof quoted, "`%s`", word);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, begin, strlen(begin)))
			is_there = is_there || strstr(line, quoted);
	fclose(file);
	return is_there;
}

static void test_the_guide_lists_what_is_dead_and_what_is_given_back(void **state)
{
	(void)state;
	for (int reason = 1; reason < REASON_COUNT; reason++) {
		const char *word = reason_row(reason)->word;
		int64_t delay;
		enum outcome outcome = outcome_of(reason, 0, 0, &delay);

		for (int other = OUTCOME_RELEASE; other <= OUTCOME_DEAD; other++)
			if (is_documented((enum outcome)other, word) != ((int)outcome == other))
				fail_msg("docs/worker.md: %s is not %s alone", word,
					 outcome_word(outcome));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_answer_is_done_unless_its_status_passes),
	    cmocka_unit_test(test_what_can_never_work_is_dead_at_once),
	    cmocka_unit_test(test_what_was_not_begun_is_given_back),
	    cmocka_unit_test(test_a_store_that_is_away_is_no_fault_of_the_task),
	    cmocka_unit_test(test_a_proxy_that_cannot_be_reached_is_no_fault_of_the_task),
	    cmocka_unit_test(test_what_happened_to_a_request_is_tried_again),
	    cmocka_unit_test(test_the_server_decides_how_long_to_wait),
	    cmocka_unit_test(test_the_guide_lists_what_is_dead_and_what_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
