/* test_buffer.c - bytes in order, and their cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buffer.h"

static void assert_holds(const struct buffer *b, const char *text)
{
	assert_int_equal(buffer_len(b), strlen(text));
	assert_memory_equal(buffer_at(b), text, strlen(text));
}

static void test_bytes_come_out_in_the_order_in_which_they_went_in(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_int_equal(buffer_add(&b, "one", 3), 0);
	assert_int_equal(buffer_add_text(&b, "two"), 0);
	assert_int_equal(buffer_printf(&b, "%d", 3), 0);
	assert_holds(&b, "onetwo3");
	buffer_consume(&b, 4);
	assert_holds(&b, "wo3");
	assert_int_equal(buffer_add_text(&b, "four"), 0);
	assert_holds(&b, "wo3four");
	buffer_fini(&b);
}

static void test_what_exceeds_the_cap_is_refused_as_a_whole(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 8);
	assert_int_equal(buffer_add(&b, "12345678", 8), 0);
	assert_int_equal(buffer_add(&b, "9", 1), -EMSGSIZE);
	assert_int_equal(buffer_printf(&b, "%s", "9"), -EMSGSIZE);
	assert_null(buffer_reserve(&b, 1));
	assert_int_equal(errno, EMSGSIZE);
	assert_holds(&b, "12345678");
	assert_int_equal(buffer_room(&b), 0);
	buffer_consume(&b, 3);
	assert_int_equal(buffer_room(&b), 3);
	assert_int_equal(buffer_add(&b, "abcd", 4), -EMSGSIZE);
	assert_int_equal(buffer_add(&b, "abc", 3), 0);
	assert_holds(&b, "45678abc");
	buffer_fini(&b);
}

static void test_room_behind_consumed_bytes_is_used_again(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1024);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(buffer_add(&b, "abcdefghijklmnopqrstuvwxyz", 26), 0);
		buffer_consume(&b, i % 2 ? 27 : 25);
		assert_true(b.size <= 1024);
		assert_true(buffer_len(&b) <= 1);
	}
	buffer_fini(&b);
}

static void test_an_empty_buffer_owns_no_memory(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 100);
	assert_null(b.data);
	assert_int_equal(buffer_add(&b, "", 0), 0);
	assert_null(b.data);
	assert_int_equal(buffer_add(&b, "x", 1), 0);
	assert_non_null(b.data);
	buffer_consume(&b, 1);
	assert_null(b.data);
	assert_int_equal(buffer_room(&b), 100);
}

static void test_reserved_bytes_count_when_they_are_committed(void **state)
{
	struct buffer b;
	char *at;

	(void)state;
	buffer_init(&b, 5000);
	assert_int_equal(buffer_add(&b, "x", 1), 0);
	at = buffer_reserve(&b, 4000);
	assert_non_null(at);
	memset(at, 'y', 4000);
	assert_int_equal(buffer_len(&b), 1);
	buffer_commit(&b, 10);
	assert_holds(&b, "xyyyyyyyyyy");
	buffer_fini(&b);
}

static void test_a_long_text_is_printed_whole(void **state)
{
	struct buffer b;
	char text[3000];

	(void)state;
	memset(text, 'z', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	buffer_init(&b, 10000);
	assert_int_equal(buffer_printf(&b, "<%s>", text), 0);
	assert_int_equal(buffer_printf(&b, "<%s>", text), 0);
	assert_int_equal(buffer_len(&b), 2 * 3001);
	assert_int_equal(buffer_at(&b)[3000], '>');
	assert_int_equal(buffer_at(&b)[3001], '<');
	buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bytes_come_out_in_the_order_in_which_they_went_in),
	    cmocka_unit_test(test_what_exceeds_the_cap_is_refused_as_a_whole),
	    cmocka_unit_test(test_room_behind_consumed_bytes_is_used_again),
	    cmocka_unit_test(test_an_empty_buffer_owns_no_memory),
	    cmocka_unit_test(test_reserved_bytes_count_when_they_are_committed),
	    cmocka_unit_test(test_a_long_text_is_printed_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
