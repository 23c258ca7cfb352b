/* test_detect.c - files that are no list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/detect.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void test_whole_files_are_refused_by_their_first_bytes(void **state)
{
	static const struct {
		const char *head;
		size_t len;
		enum verdict verdict;
	} cases[] = {
	    {"\xfe\xff\0001", 4, VERDICT_ENCODING_UTF16},
	    {"\xff\xfe", 2, VERDICT_ENCODING_UTF16},
	    {"PK\x03\x04zz", 6, VERDICT_BINARY_FILE},
	    {"\x1f\x8b", 2, VERDICT_BINARY_FILE},
	    {"\xef\xbb\xbf// x\nfunction FindProxyForURL(", 32, VERDICT_PAC_FILE},
	    {"a: 1\r\nProxy:\r\n", 14, VERDICT_CLASH_YAML},
	    {"proxies:", 8, VERDICT_CLASH_YAML},
	    {"  proxies:", 10, VERDICT_ACCEPTED},
	    {"proxies:8080", 12, VERDICT_ACCEPTED},
	    {"aHR0cDovLzE5Mi4wLjIuMTo4MDgwCmh0dHA6Ly8x=\n", 42, VERDICT_BASE64_SUBSCRIPTION},
	    {"aHR0cDovLzE5Mi4wLjIuMTo4MDgwCmh0dHA6Ly8", 39, VERDICT_ACCEPTED},
	    {"aHR0cDovLzE5Mi4wLjIuMTo4MDgwCmh0dHA6Ly8x x", 42, VERDICT_ACCEPTED},
	    {"", 0, VERDICT_ACCEPTED},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(list_detect(cases[i].head, cases[i].len), cases[i].verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whole_files_are_refused_by_their_first_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
