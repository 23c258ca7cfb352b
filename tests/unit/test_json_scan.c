/* test_json_scan.c - JSON cut into its top-level elements. */
#include "list_check.h"

#include <errno.h>

#include "list/json_scan.h"

/* "line:scheme:text;" for each piece. */
static int piece_collect(enum json_piece piece, uint64_t line, const char *text, size_t len,
			 int scheme, void *arg)
{
	static const char *const marks[] = {"", "document ", "long", "deep"};
	char *out = arg;

	sprintf(out + strlen(out), "%d:%d:%s%.*s;", (int)line, scheme, marks[piece], (int)len,
		text ? text : "");
	return 0;
}

/* Whether all is closed. */
static bool scan(const char *input, size_t step, char *out)
{
	struct json_scan s;
	size_t len = strlen(input);
	bool is_closed;

	out[0] = '\0';
	json_scan_init(&s, 1, piece_collect, out);
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;

		assert_int_equal(json_scan_feed(&s, input + at, n), 0);
	}
	is_closed = json_scan_is_closed(&s);
	json_scan_fini(&s);
	return is_closed;
}

static void pieces_are(const char *input, const char *expected)
{
	char out[1000];

	for (size_t step = 1; step <= 1000; step *= 10) {
		assert_true(scan(input, step, out));
		assert_string_equal(out, expected);
	}
}

static void test_elements_are_cut_with_their_lines(void **state)
{
	(void)state;
	pieces_are("[1,\r\n {\"a\":[2,\"]\"]} ,\r\r\"x,\\\"\"]", "1:-1:1;2:-1:{\"a\":[2,\"]\"]} ;"
								 "4:-1:\"x,\\\"\";");
	pieces_are("[[1,2],[]]", "1:-1:[1,2];1:-1:[];");
	pieces_are("[] [ ]\n[1]", "2:-1:1;");
	pieces_are("", "");
}

static void test_members_name_the_scheme(void **state)
{
	(void)state;
	pieces_are("{\"data\":[1],\"SOCKS5\":[2],\"x\":[3]}", "1:-1:1;1:4:2;");
	pieces_are("{\"http\":{\"list\":[1],\"socks4\":[2]}}", "1:0:1;1:2:2;");
	pieces_are("{\"x\":{\"data\":[1]}}", "1:-1:document {\"x\":{\"data\":[1]}};");
	pieces_are("\n{\"data\":{\"a\":1}} ", "2:-1:document {\"data\":{\"a\":1}};");
}

static void test_depth_is_bounded_for_an_element_alone(void **state)
{
	char input[400], out[1000];

	(void)state;
	snprintf(input, sizeof(input), "[1,%.*s%.*s,2]", 100,
		 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		 100,
		 "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
		 "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
	assert_true(scan(input, 1, out));
	assert_string_equal(out, "1:-1:1;1:-1:deep;1:-1:2;");
}

static void test_what_is_open_or_crossed_is_not_closed(void **state)
{
	static const char *const inputs[] = {
	    "[", "{",    "[\"]",  "[1}",       "{\"a\":1]",      "[{]}]",
	    "x", "[] x", "{1:2}", "{\"a\" 1}", "{\"data\":[]1}", "]"};
	char out[1000];

	(void)state;
	for (size_t i = 0; i < COUNT(inputs); i++)
		assert_false(scan(inputs[i], 1, out));
}

static int piece_refuse(enum json_piece piece, uint64_t line, const char *text, size_t len,
			int scheme, void *arg)
{
	(void)piece, (void)line, (void)text, (void)len, (void)scheme, (void)arg;
	return -ENOBUFS;
}

static void test_the_callback_ends_the_feed(void **state)
{
	struct json_scan s;

	(void)state;
	json_scan_init(&s, 1, piece_refuse, NULL);
	assert_int_equal(json_scan_feed(&s, "[1,2]", 5), -ENOBUFS);
	json_scan_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_elements_are_cut_with_their_lines),
	    cmocka_unit_test(test_members_name_the_scheme),
	    cmocka_unit_test(test_depth_is_bounded_for_an_element_alone),
	    cmocka_unit_test(test_what_is_open_or_crossed_is_not_closed),
	    cmocka_unit_test(test_the_callback_ends_the_feed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
