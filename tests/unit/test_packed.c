/* test_packed.c - reading packed values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "pool/packed.h"

static void test_only_the_key_itself_is_found(void **state)
{
	static const char packed[] = "laststate=a\tprose\tstate2=b\tstate=c=d\tstate=e\tempty=";
	size_t len = 9;
	char text[16];

	(void)state;
	assert_string_equal(packed_copy(packed, "state", text, sizeof(text)), "c=d");
	assert_non_null(packed_find(packed, "empty", &len));
	assert_int_equal(len, 0);
	assert_null(packed_find(packed, "prose", &len));
	assert_null(packed_find("", "state", &len));
}

static void test_a_long_value_is_cut_and_an_absent_one_is_empty(void **state)
{
	char text[4] = "xyz";

	(void)state;
	assert_string_equal(packed_copy("k=abcdef\tl=m", "k", text, sizeof(text)), "abc");
	assert_string_equal(packed_copy("k=abcdef\tl=m", "m", text, sizeof(text)), "");
}

static void test_a_number_is_whole_or_none(void **state)
{
	(void)state;
	assert_true(packed_number("a=1769860800000\tb=x", "a", -1) == 1769860800000);
	assert_true(packed_number("a=-5", "a", 0) == -5);
	assert_true(packed_number("a=1\tb=x\tc=1.5\td=", "b", -1) == -1);
	assert_true(packed_number("c=1.5", "c", -1) == -1);
	assert_true(packed_number("d=", "d", -1) == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_only_the_key_itself_is_found),
	    cmocka_unit_test(test_a_long_value_is_cut_and_an_absent_one_is_empty),
	    cmocka_unit_test(test_a_number_is_whole_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
