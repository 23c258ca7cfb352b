/* test_json_text.c - texts of any bytes in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/json_text.h"

static void expect(const char *bytes, size_t len, const char *wanted)
{
	struct buffer to;

	buffer_init(&to, 4096);
	assert_int_equal(json_add_text(&to, bytes, len), 0);
	assert_int_equal(buffer_len(&to), strlen(wanted));
	assert_memory_equal(buffer_at(&to), wanted, strlen(wanted));
	buffer_fini(&to);
}

#define EXPECT(bytes, wanted) expect(bytes, sizeof bytes - 1, wanted)

/* RFC 8259 section 7 */
static void test_quotes_and_controls_are_escaped(void **state)
{
	(void)state;
	EXPECT("", "\"\"");
	EXPECT("a\"b\\c", "\"a\\\"b\\\\c\"");
	EXPECT("\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"");
	EXPECT("\0\x1f\x7f", "\"\\u0000\\u001f\x7f\"");
	EXPECT("caf\xC3\xA9 \xF0\x9F\x98\x80", "\"caf\xC3\xA9 \xF0\x9F\x98\x80\"");
}

static void test_what_is_no_utf8_is_latin_1(void **state)
{
	(void)state;
	EXPECT("price \xA3\"", "\"price \xC2\xA3\\\"\"");
	EXPECT("\xC3\xA9\xFF", "\"\xC3\x83\xC2\xA9\xC3\xBF\"");
}

/* The table of RFC 3629 section 4. */
static void test_utf8_is_strict(void **state)
{
	static const char *const good[] = {"",
					   "a",
					   "\xC2\x80",
					   "\xDF\xBF",
					   "\xE0\xA0\x80",
					   "\xED\x9F\xBF",
					   "\xEF\xBF\xBF",
					   "\xF0\x90\x80\x80",
					   "\xF4\x8F\xBF\xBF"};
	static const char *const bad[] = {
	    "\x80",      "\xC0\x80",         "\xC1\xBF",         "\xC2",
	    "\xC2g",     "\xE0\x9F\xBF",     "\xED\xA0\x80",     "\xE1\x80",
	    "\xE1\x80z", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(text_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(text_is_utf8(bad[i], strlen(bad[i])));
}

/* RFC 4648 section 10 */
static void test_base64(void **state)
{
	struct buffer to;

	(void)state;
	buffer_init(&to, 64);
	assert_int_equal(json_add_base64(&to, "foobar", 6), 0);
	assert_int_equal(json_add_base64(&to, "foob", 4), 0);
	assert_int_equal(json_add_base64(&to, "", 0), 0);
	assert_int_equal(buffer_len(&to), 22);
	assert_memory_equal(buffer_at(&to), "\"Zm9vYmFy\"\"Zm9vYg==\"\"\"", 22);
	buffer_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quotes_and_controls_are_escaped),
	    cmocka_unit_test(test_what_is_no_utf8_is_latin_1),
	    cmocka_unit_test(test_utf8_is_strict),
	    cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
