/* test_page.c - the answer of a check target, in whatever pieces it comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/page.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define WHOLE 0

/* Feeds `bytes` in pieces of `step`, then the end of the stream if more is wanted. */
static int read_page(struct page *page, const char *text, const char *bytes, size_t len,
		     size_t step)
{
	int r = -EAGAIN;

	page_init(page, text);
	for (size_t at = 0, n; at < len && r == -EAGAIN; at += n) {
		n = len - at < step ? len - at : step;
		r = page_feed(page, bytes + at, n);
	}
	return r == -EAGAIN ? page_end(page) : r;
}

/* However the bytes are split, the result is the same. */
static void check(const char *bytes, const char *text, int result, int status, bool has_text)
{
	static const size_t steps[] = {1, 2, 3, 7, 4096};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct page page;
		int r = read_page(&page, text, bytes, strlen(bytes), steps[i]);

		if (r != result || page.status != status || page.has_text != has_text)
			fail_msg("%s in steps of %zu: %s, %d, %d", bytes, steps[i], result_word(r),
				 page.status, page.has_text);
		page_fini(&page);
	}
}

static void test_a_whole_answer_is_whole_in_each_framing(void **state)
{
	(void)state;
	check(OK "Content-Length: 5\r\n\r\nhello", "", WHOLE, 200, true);
	check(OK "Content-Length: 0\r\n\r\n", "", WHOLE, 200, true);
	check(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "", WHOLE, 200, true);
	check("HTTP/1.0 200 OK\r\n\r\nhello", "", WHOLE, 200, true);
	check("HTTP/1.1 204 No Content\r\n\r\n", "", WHOLE, 204, true);
	check("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "", WHOLE, 302,
	      true);
	check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" OK
	      "Content-Length: 2\r\n\r\nok",
	      "", WHOLE, 200, true);
}

static void test_an_answer_that_is_cut_off_is_incomplete(void **state)
{
	(void)state;
	check("", "", REASON_PROXY_RESET, 0, true);
	check(OK "Content-Le", "", REASON_PROXY_RESET, 0, true);
	check("HTTP/1.1 100 Continue\r\n\r\n", "", REASON_PROXY_RESET, 0, true);
	check(OK "Content-Length: 6\r\n\r\nhello", "", REASON_RESPONSE_INCOMPLETE, 200, true);
	check(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "",
	      REASON_RESPONSE_INCOMPLETE, 200, true);
	check(OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", "", REASON_RESPONSE_INCOMPLETE, 200,
	      true);
}

static void test_what_is_no_answer_is_a_breach(void **state)
{
	(void)state;
	check("SSH-2.0-OpenSSH\r\n", "", REASON_RESPONSE_SYNTAX, 0, true);
	check("<html>", "", REASON_RESPONSE_SYNTAX, 0, true);
	check("HTTP/1.1 200 OK\nX: y\n\n", "", REASON_RESPONSE_SYNTAX, 0, true);
	check(OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "",
	      REASON_RESPONSE_SYNTAX, 0, true);
	/* RFC 9110 15.2.2: nobody asked for another protocol. */
	check("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "", REASON_RESPONSE_SYNTAX,
	      0, true);
}

static void test_the_text_is_found_wherever_it_stands(void **state)
{
	(void)state;
	check(OK "Content-Length: 9\r\n\r\n..needle.", "needle", WHOLE, 200, true);
	check(OK "Content-Length: 9\r\n\r\nneeneedle", "needle", WHOLE, 200, true);
	check(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nnee\r\n3\r\ndle\r\n0\r\n\r\n", "needle",
	      WHOLE, 200, true);
	check(OK "Content-Length: 6\r\n\r\nneedlf", "needle", WHOLE, 200, false);
	check(OK "X: needle\r\nContent-Length: 0\r\n\r\n", "needle", WHOLE, 200, false);
	/* What stands behind the body is not its. */
	check(OK "Content-Length: 3\r\n\r\nneedle", "needle", WHOLE, 200, false);
}

/* A body of `len` bytes with `text` so that it ends at `end`. */
static char *long_page(size_t *ret_len, size_t len, const char *text, size_t end)
{
	static const char head[] = "HTTP/1.0 200 OK\r\n\r\n";
	char *bytes = malloc(sizeof head + len);

	assert_non_null(bytes);
	memcpy(bytes, head, sizeof head - 1);
	memset(bytes + sizeof head - 1, '.', len);
	memcpy(bytes + sizeof head - 1 + end - strlen(text), text, strlen(text));
	*ret_len = sizeof head - 1 + len;
	return bytes;
}

static void test_the_first_64_kib_are_read_and_no_more(void **state)
{
	static const size_t steps[] = {1, 1000, 4096, 1 << 20};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof steps / sizeof *steps; i++) {
		size_t len, end = PAGE_BODY_MAX + i % 2;
		char *bytes = long_page(&len, 100000, "needle", end);
		struct page page;

		assert_int_equal(read_page(&page, "needle", bytes, len, steps[i / 2]), WHOLE);
		assert_int_equal(page.has_text, end == PAGE_BODY_MAX);
		assert_int_equal(page.body_len, PAGE_BODY_MAX);
		page_fini(&page);
		free(bytes);
	}
}

static void test_an_endless_head_ends_at_its_cap(void **state)
{
	static const char line[] = "X-Endless: aaaaaaaaaaaaaaaa\r\n";
	struct page page;
	size_t fed;
	int r;

	(void)state;
	page_init(&page, "");
	r = page_feed(&page, OK, strlen(OK));
	for (fed = strlen(OK); r == -EAGAIN && fed < 2 * HTTP_HEAD_MAX; fed += strlen(line))
		r = page_feed(&page, line, strlen(line));
	assert_int_equal(r, REASON_RESPONSE_HEAD_SIZE);
	assert_true(fed <= HTTP_HEAD_MAX + strlen(line));
	page_fini(&page);
}

static void test_only_a_judge_s_body_is_kept(void **state)
{
	static const char judge[] =
	    OK "fairlead-judge: 1\r\nContent-Length: 13\r\n\r\n{\"address\":1}";
	static const char other[] = OK "Content-Length: 13\r\n\r\n{\"address\":1}";
	struct page page;

	(void)state;
	assert_int_equal(read_page(&page, "", judge, strlen(judge), 5), WHOLE);
	assert_true(page.is_judge);
	assert_int_equal(buffer_len(&page.kept), 13);
	assert_memory_equal(buffer_at(&page.kept), "{\"address\":1}", 13);
	page_fini(&page);
	assert_int_equal(read_page(&page, "", other, strlen(other), 5), WHOLE);
	assert_false(page.is_judge);
	assert_int_equal(buffer_len(&page.kept), 0);
	page_fini(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_whole_answer_is_whole_in_each_framing),
	    cmocka_unit_test(test_an_answer_that_is_cut_off_is_incomplete),
	    cmocka_unit_test(test_what_is_no_answer_is_a_breach),
	    cmocka_unit_test(test_the_text_is_found_wherever_it_stands),
	    cmocka_unit_test(test_the_first_64_kib_are_read_and_no_more),
	    cmocka_unit_test(test_an_endless_head_ends_at_its_cap),
	    cmocka_unit_test(test_only_a_judge_s_body_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
