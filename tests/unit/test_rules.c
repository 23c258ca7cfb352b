/* test_rules.c - the rules of a pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "pool/rules.h"

static void test_rules_are_found_by_their_name(void **state)
{
	(void)state;
	assert_int_equal(rule_find("join"), RULE_JOIN);
	assert_int_equal(rule_find("start"), RULE_START);
	assert_int_equal(rule_find("allow_private"), RULE_ALLOW_PRIVATE);
	assert_int_equal(rule_find("Join"), -1);
	assert_int_equal(rule_find(""), -1);
	assert_int_equal(rule_find("salt"), -1);
}

static void check(enum rule rule, const char *value, int expected)
{
	char error[200] = "";

	if (rule_check(rule, value, error, sizeof(error)) != expected)
		fail_msg("%s=%s: %s", rule_row(rule)->word, value, expected ? "admitted" : error);
	if (expected)
		assert_non_null(strstr(error, rule_row(rule)->word));
}

static void test_values_are_judged_by_their_kind(void **state)
{
	static const struct {
		enum rule rule;
		const char *value;
	} good[] = {{RULE_JOIN, "floor"},  {RULE_JOIN, "keep"},       {RULE_JOIN, "zero"},
		    {RULE_START, "0"},     {RULE_START, "-1.5"},      {RULE_START, "1e15"},
		    {RULE_START, "-1e15"}, {RULE_ALLOW_PRIVATE, "0"}, {RULE_ALLOW_PRIVATE, "1"}},
	  bad[] = {
	      {RULE_JOIN, ""},          {RULE_JOIN, "floo"},        {RULE_JOIN, "floor|keep"},
	      {RULE_JOIN, "floors"},    {RULE_START, ""},           {RULE_START, "x"},
	      {RULE_START, "1x"},       {RULE_START, " 1"},         {RULE_START, "0x10"},
	      {RULE_START, "nan"},      {RULE_START, "inf"},        {RULE_START, "1e16"},
	      {RULE_START, "1e999"},    {RULE_ALLOW_PRIVATE, "2"},  {RULE_ALLOW_PRIVATE, "yes"},
	      {RULE_ALLOW_PRIVATE, ""}, {RULE_ALLOW_PRIVATE, "0.5"}};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		check(good[i].rule, good[i].value, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check(bad[i].rule, bad[i].value, -EINVAL);
}

/* tables/rule.def: a FLAG is 0 or 1. What is admitted must also mean what it says. */
static void test_a_flag_is_0_or_1_and_nothing_that_equals_them(void **state)
{
	static const char *const values[] = {"01", "+1", "1.0", "1e0", "00", "-0", "10e-1"};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		check(RULE_ALLOW_PRIVATE, values[i], -EINVAL);
}

static void test_a_pool_without_rules_has_the_defaults(void **state)
{
	struct pool_rules rules;

	(void)state;
	rules_init(&rules);
	assert_string_equal(rules.value[RULE_JOIN], "floor");
	assert_string_equal(rules.value[RULE_START], "0");
	assert_false(rules_flag(&rules, RULE_ALLOW_PRIVATE));
	assert_false(rules.has_salt);
	assert_true(rules.wire == 0);
	for (int rule = 0; rule < RULE_COUNT; rule++) {
		assert_false(rules.is_set[rule]);
		check((enum rule)rule, rules.value[rule], 0);
	}
}

static void test_fields_of_the_hash_are_taken_over(void **state)
{
	struct pool_rules rules;
	static const char salt[] =
	    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

	(void)state;
	rules_init(&rules);
	rules_take(&rules, "join", "keep");
	rules_take(&rules, "allow_private", "1");
	rules_take(&rules, "wire", "1");
	rules_take(&rules, "salt", salt);
	rules_take(&rules, "of_a_newer_node", "x");
	assert_string_equal(rules.value[RULE_JOIN], "keep");
	assert_true(rules.is_set[RULE_JOIN]);
	assert_false(rules.is_set[RULE_START]);
	assert_true(rules_flag(&rules, RULE_ALLOW_PRIVATE));
	assert_true(rules.wire == 1);
	assert_true(rules.has_salt);
	assert_int_equal(rules.salt[31], 0x1f);
}

static void test_what_is_not_valid_keeps_the_default(void **state)
{
	struct pool_rules rules;

	(void)state;
	rules_init(&rules);
	rules_take(&rules, "join", "sideways");
	rules_take(&rules, "start", "many");
	rules_take(&rules, "salt", "0102");
	assert_string_equal(rules.value[RULE_JOIN], "floor");
	assert_string_equal(rules.value[RULE_START], "0");
	assert_false(rules.is_set[RULE_JOIN]);
	assert_false(rules.has_salt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules_are_found_by_their_name),
	    cmocka_unit_test(test_values_are_judged_by_their_kind),
	    cmocka_unit_test(test_a_flag_is_0_or_1_and_nothing_that_equals_them),
	    cmocka_unit_test(test_a_pool_without_rules_has_the_defaults),
	    cmocka_unit_test(test_fields_of_the_hash_are_taken_over),
	    cmocka_unit_test(test_what_is_not_valid_keeps_the_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
