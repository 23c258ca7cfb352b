/* test_blame.c - whose failure a failed probe is (docs/checks.md, "Blame"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/blame.h"

#define WINDOW_MS 60000

/* What no target can have caused. */
static const int at_once[] = {REASON_PROXY_REFUSED, REASON_PROXY_TIMEOUT, REASON_PROXY_SILENT,
			      REASON_PROXY_AUTH, REASON_PROXY_GARBAGE};

/* What a bad target can look like, or a bad network of ours. */
static const int uncertain[] = {
    REASON_PROXY_RESET,        REASON_PROXY_CANNOT,        REASON_PROXY_TLS,
    REASON_PROXY_NAME,         REASON_TARGET_DENIED,       REASON_TARGET_FAILED,
    REASON_TARGET_TIMEOUT,     REASON_RESPONSE_TIMEOUT,    REASON_RESPONSE_SYNTAX,
    REASON_RESPONSE_HEAD_SIZE, REASON_RESPONSE_INCOMPLETE, REASON_CHECK_STATUS,
    REASON_CHECK_TEXT,         REASON_CHECK_TLS,           REASON_CHECK_CERTIFICATE};

static const int ours[] = {REASON_NO_DESCRIPTORS,   REASON_NO_SOURCE_PORT,
			   REASON_INTERNAL,         REASON_SHUTDOWN,
			   REASON_PROXY_PROHIBITED, REASON_TARGET_PROHIBITED};

#define EACH(reason, rows)                                                                         \
	for (size_t i = 0; i < sizeof(rows) / sizeof *(rows) && ((reason) = (rows)[i], 1); i++)

static void test_a_pass_is_a_pass(void **state)
{
	struct target_record record = {0};

	(void)state;
	assert_int_equal(blame_of(&record, REASON_OK, 1000, WINDOW_MS), BLAME_PASS);
	assert_int_equal(blame_of(NULL, REASON_OK, 1000, WINDOW_MS), BLAME_PASS);
}

static void test_what_only_a_proxy_can_do_is_its_fault_at_once(void **state)
{
	struct target_record record = {0};
	int reason;

	(void)state;
	EACH(reason, at_once)
	assert_int_equal(blame_of(&record, reason, 1000, WINDOW_MS), BLAME_PROXY);
}

static void test_what_a_target_can_do_says_nothing_until_the_target_is_known_good(void **state)
{
	struct target_record record = {0};
	int reason;

	(void)state;
	EACH(reason, uncertain)
	assert_int_equal(blame_of(&record, reason, 1000, WINDOW_MS), BLAME_NOBODY);
	blame_note_pass(&record, 1000);
	EACH(reason, uncertain)
	assert_int_equal(blame_of(&record, reason, 1000, WINDOW_MS), BLAME_PROXY);
}

static void test_a_pass_speaks_for_the_target_as_long_as_the_window(void **state)
{
	struct target_record record = {0};

	(void)state;
	blame_note_pass(&record, 1000);
	assert_int_equal(blame_of(&record, REASON_CHECK_STATUS, 1000 + WINDOW_MS, WINDOW_MS),
			 BLAME_PROXY);
	assert_int_equal(blame_of(&record, REASON_CHECK_STATUS, 1001 + WINDOW_MS, WINDOW_MS),
			 BLAME_NOBODY);
	blame_note_pass(&record, 1001 + WINDOW_MS);
	assert_int_equal(blame_of(&record, REASON_CHECK_STATUS, 1001 + WINDOW_MS, WINDOW_MS),
			 BLAME_PROXY);
}

static void test_our_own_failures_are_nobody_s(void **state)
{
	struct target_record record = {.good_ms = 1000};
	int reason;

	(void)state;
	EACH(reason, ours)
	{
		assert_int_equal(blame_of(&record, reason, 1000, WINDOW_MS), BLAME_NOBODY);
		assert_int_equal(blame_of(NULL, reason, 1000, WINDOW_MS), BLAME_NOBODY);
	}
}

static void test_without_a_target_every_failure_is_the_proxy_s(void **state)
{
	int reason;

	(void)state;
	EACH(reason, at_once)
	assert_int_equal(blame_of(NULL, reason, 1000, WINDOW_MS), BLAME_PROXY);
	assert_int_equal(blame_of(NULL, REASON_PROXY_RESET, 1000, WINDOW_MS), BLAME_PROXY);
	assert_int_equal(blame_of(NULL, REASON_PROXY_CERTIFICATE, 1000, WINDOW_MS), BLAME_PROXY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_pass_is_a_pass),
	    cmocka_unit_test(test_what_only_a_proxy_can_do_is_its_fault_at_once),
	    cmocka_unit_test(test_what_a_target_can_do_says_nothing_until_the_target_is_known_good),
	    cmocka_unit_test(test_a_pass_speaks_for_the_target_as_long_as_the_window),
	    cmocka_unit_test(test_our_own_failures_are_nobody_s),
	    cmocka_unit_test(test_without_a_target_every_failure_is_the_proxy_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
