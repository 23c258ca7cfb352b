/* test_admit.c - where a check may connect to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/demo.h"
#include "check/admit.h"

static struct address of(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(&address, text, strlen(text)), 0);
	return address;
}

static void test_a_member_in_a_private_range_needs_the_rule(void **state)
{
	struct address private = of("10.0.0.1"), public = of("8.8.8.8");

	(void)state;
	assert_true(admit_check(&public, 80, false, false, false));
	assert_false(admit_check(&private, 80, false, false, false));
	assert_true(admit_check(&private, 80, false, true, false));
}

static void test_a_target_is_where_the_operator_says(void **state)
{
	struct address private = of("10.0.0.1");

	(void)state;
	assert_true(admit_check(&private, 80, true, false, false));
}

static void test_a_demonstration_admits_exactly_its_own_upstreams(void **state)
{
	struct address upstream = of("127.0.0.11"), other = of("127.0.0.10");

	(void)state;
	assert_true(admit_check(&upstream, DEMO_UPSTREAM_PORT, false, false, true));
	assert_false(admit_check(&upstream, DEMO_UPSTREAM_PORT, false, false, false));
	assert_false(admit_check(&upstream, 80, false, false, true));
	assert_false(admit_check(&other, DEMO_UPSTREAM_PORT, false, false, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_member_in_a_private_range_needs_the_rule),
	    cmocka_unit_test(test_a_target_is_where_the_operator_says),
	    cmocka_unit_test(test_a_demonstration_admits_exactly_its_own_upstreams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
