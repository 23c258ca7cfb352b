/* test_detect.c - files that are no list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

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

static void test_the_first_bytes_name_the_format(void **state)
{
	static const struct {
		const char *head;
		enum list_format format;
	} cases[] = {
	    {"", LIST_LINES},
	    {"192.0.2.1:80", LIST_LINES},
	    {"[2001:db8::1]:80", LIST_LINES},
	    {"[ProxyList]\n", LIST_LINES},
	    {"[1]", LIST_LINES},
	    {"[", LIST_JSON},
	    {"[]", LIST_JSON},
	    {"\xef\xbb\xbf\r\n [ \n\"x", LIST_JSON},
	    {"[{", LIST_JSON},
	    {"[[", LIST_JSON},
	    {"{", LIST_JSON},
	    {"{\"a\":1}", LIST_JSON},
	    {"{\"a\":1}\n[", LIST_JSONL},
	    {"{\"a\":1}\n\nx", LIST_JSONL},
	    {"{\"a\":1,}\n{", LIST_JSONL},
	    {"{\"a\":1\n{", LIST_JSONL},
	    {"{\"a\":{}\n,\"b\":[\n{}]}", LIST_JSON},
	    {"{\"a\":1}\n{", LIST_JSONL},
	    {"{\"a\":1} \r\n\r\n{", LIST_JSONL},
	    {"{\"a\":[\n{", LIST_JSON},
	    {"{\"a\":[1,\n{", LIST_JSON},
	    {"{\n\"a\":1}\n{", LIST_JSON},
	    {"ip,port", LIST_CSV},
	    {"Country;PORT;Server\n", LIST_CSV},
	    {"addr\tport\r", LIST_CSV},
	    {"ip port\n", LIST_LINES},
	    {"ip,country\n", LIST_LINES},
	    {"proxy,port\n", LIST_LINES},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (list_format_detect(cases[i].head, strlen(cases[i].head)) != cases[i].format)
			fail_msg("%s", cases[i].head);
}

static void test_formats_have_words(void **state)
{
	(void)state;
	for (int i = 0; i < LIST_FORMAT_COUNT; i++)
		assert_int_equal(list_format_from_text(list_format_word((enum list_format)i)), i);
	assert_int_equal(list_format_from_text("JSON"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whole_files_are_refused_by_their_first_bytes),
	    cmocka_unit_test(test_the_first_bytes_name_the_format),
	    cmocka_unit_test(test_formats_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
