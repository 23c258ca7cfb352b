/* test_plan.c - how the members of a pool are checked, as its rules say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "check/plan.h"

static char error[200];

static struct pool_rules rules_with(const char *name, const char *value)
{
	struct pool_rules rules;

	rules_init(&rules);
	rules_take(&rules, name, value);
	return rules;
}

static void test_without_rules_there_is_no_target(void **state)
{
	struct pool_rules rules;
	struct plan *plan;

	(void)state;
	rules_init(&rules);
	assert_int_equal(plan_new(&plan, &rules, error, sizeof(error)), 0);
	assert_int_equal(plan->count, 0);
	assert_true(plan_is_of(plan, &rules));
	plan_unref(plan);
}

static void test_targets_stand_in_the_order_of_the_rule(void **state)
{
	struct pool_rules rules = rules_with("check_target", "http://a.test/x b.test:443");
	struct plan *plan;

	(void)state;
	assert_int_equal(plan_new(&plan, &rules, error, sizeof(error)), 0);
	assert_int_equal(plan->count, 2);
	assert_string_equal(plan->targets[0].target.host, "a.test");
	assert_string_equal(plan->targets[1].target.host, "b.test");
	assert_int_equal(plan->targets[1].target.port, 443);
	plan_unref(plan);
}

static void test_other_rules_about_checks_ask_for_another_plan(void **state)
{
	static const char *const rows[][2] = {
	    {"check_target", "http://b.test/"}, {"check_status", "204"}, {"check_text", "hello"}};
	struct pool_rules rules = rules_with("check_target", "http://a.test/");
	struct plan *plan;

	(void)state;
	assert_int_equal(plan_new(&plan, &rules, error, sizeof(error)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pool_rules other = rules;

		rules_take(&other, rows[i][0], rows[i][1]);
		assert_false(plan_is_of(plan, &other));
	}
	rules_take(&rules, "fall", "7");
	assert_true(plan_is_of(plan, &rules));
	plan_unref(plan);
}

static void test_what_cannot_be_read_makes_no_plan_and_is_told(void **state)
{
	static const char *const rows[][2] = {{"check_target", "ftp://a.test/"},
					      {"check_status", "many"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pool_rules rules = rules_with(rows[i][0], rows[i][1]);
		struct plan *plan;

		error[0] = '\0';
		assert_int_equal(plan_new(&plan, &rules, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, rows[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without_rules_there_is_no_target),
	    cmocka_unit_test(test_targets_stand_in_the_order_of_the_rule),
	    cmocka_unit_test(test_other_rules_about_checks_ask_for_another_plan),
	    cmocka_unit_test(test_what_cannot_be_read_makes_no_plan_and_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
