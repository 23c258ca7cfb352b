/* test_exec_rule.c - what the end of a command says about its task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "worker/exec_rule.h"

/* As waitpid() has it (Linux): the exit status in the second byte, the signal in the first, 128 for a core. */
#define EXITED(n) ((n) << 8)
#define KILLED(n) (n)

static void check(const struct exec_rule *rule, struct exec_end end, enum outcome outcome,
		  const char *reason)
{
	char told[EXEC_REASON_SIZE];

	assert_int_equal(exec_judge(rule, &end, told), outcome);
	assert_string_equal(told, reason);
}

static void test_zero_is_done_and_all_else_is_tried_again(void **state)
{
	const struct exec_rule rule = {0};

	(void)state;
	check(&rule, (struct exec_end){.status = EXITED(0)}, OUTCOME_DONE, "exit status 0");
	check(&rule, (struct exec_end){.status = EXITED(1)}, OUTCOME_RETRY, "exit status 1");
	check(&rule, (struct exec_end){.status = EXITED(75)}, OUTCOME_RETRY, "exit status 75");
	check(&rule, (struct exec_end){.status = EXITED(255)}, OUTCOME_RETRY, "exit status 255");
}

static void test_a_dead_status_is_a_dead_letter(void **state)
{
	struct exec_rule rule = {0};
	char error[EXEC_RULE_ERROR_SIZE];

	(void)state;
	assert_int_equal(exec_rule_add(&rule, "65,66", error, sizeof error), 0);
	assert_int_equal(exec_rule_add(&rule, "255", error, sizeof error), 0);
	check(&rule, (struct exec_end){.status = EXITED(65)}, OUTCOME_DEAD, "exit status 65");
	check(&rule, (struct exec_end){.status = EXITED(66)}, OUTCOME_DEAD, "exit status 66");
	check(&rule, (struct exec_end){.status = EXITED(255)}, OUTCOME_DEAD, "exit status 255");
	check(&rule, (struct exec_end){.status = EXITED(67)}, OUTCOME_RETRY, "exit status 67");
}

static void test_what_is_no_status_to_be_dead_is_refused(void **state)
{
	static const char *const texts[] = {"",     "0",  "75",    "256", "-1",     "1000",
					    "x",    "6 ", "65,",   ",65", "65,,66", "65,75",
					    "0x41", "+6", "65-70", "6.5"};
	struct exec_rule rule = {0};
	char error[EXEC_RULE_ERROR_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		*error = '\0';
		if (exec_rule_add(&rule, texts[i], error, sizeof error) != -EINVAL)
			fail_msg("'%s'", texts[i]);
		assert_non_null(strstr(error, "1 to 255"));
	}
}

static void test_death_by_a_signal_is_a_failure_with_its_name(void **state)
{
	const struct exec_rule rule = {0};

	(void)state;
	check(&rule, (struct exec_end){.status = KILLED(SIGSEGV) | 128}, OUTCOME_RETRY,
	      "killed by SIGSEGV");
	check(&rule, (struct exec_end){.status = KILLED(SIGTERM)}, OUTCOME_RETRY,
	      "killed by SIGTERM");
	check(&rule, (struct exec_end){.status = KILLED(40)}, OUTCOME_RETRY, "killed by signal 40");
}

static void test_who_ends_with_the_worker_has_not_failed(void **state)
{
	const struct exec_rule rule = {0};
	struct exec_end end = {.status = KILLED(SIGTERM), .is_stopping = true};

	(void)state;
	check(&rule, end, OUTCOME_RELEASE, "killed by SIGTERM");
	end.status = KILLED(SIGSEGV);
	check(&rule, end, OUTCOME_RETRY, "killed by SIGSEGV");
	end.status = EXITED(0);
	check(&rule, end, OUTCOME_DONE, "exit status 0");
	end.status = EXITED(1);
	check(&rule, end, OUTCOME_RETRY, "exit status 1");
}

static void test_who_was_late_has_failed_whatever_it_says(void **state)
{
	struct exec_rule rule = {0};
	char error[EXEC_RULE_ERROR_SIZE];
	struct exec_end end = {.status = EXITED(0), .late_ms = 600000};

	(void)state;
	assert_int_equal(exec_rule_add(&rule, "65", error, sizeof error), 0);
	check(&rule, end, OUTCOME_RETRY, "timed out after 600000 ms");
	end.status = EXITED(65);
	check(&rule, end, OUTCOME_RETRY, "timed out after 600000 ms");
	end.status = KILLED(SIGTERM);
	end.is_stopping = true;
	check(&rule, end, OUTCOME_RETRY, "timed out after 600000 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_zero_is_done_and_all_else_is_tried_again),
	    cmocka_unit_test(test_a_dead_status_is_a_dead_letter),
	    cmocka_unit_test(test_what_is_no_status_to_be_dead_is_refused),
	    cmocka_unit_test(test_death_by_a_signal_is_a_failure_with_its_name),
	    cmocka_unit_test(test_who_ends_with_the_worker_has_not_failed),
	    cmocka_unit_test(test_who_was_late_has_failed_whatever_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
