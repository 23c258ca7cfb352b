/* test_dedupe.c - the set of canonical forms, and its hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "list/dedupe.h"

static void test_the_set_tells_new_from_seen(void **state)
{
	struct dedupe d;
	char text[32];

	(void)state;
	assert_int_equal(dedupe_init(&d, 20000), 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			int len = snprintf(text, sizeof(text), "%d", i);

			assert_int_equal(
			    dedupe_add(&d, &(struct dedupe_item){text, (size_t)len, "", ""}),
			    round);
		}
	assert_int_equal(dedupe_add(&d, &(struct dedupe_item){"x", 1, "", ""}), -ENOBUFS);
	dedupe_fini(&d);
}

static void test_the_first_tags_of_a_text_stay(void **state)
{
	struct dedupe d;
	struct dedupe_item item;
	size_t at = 0;

	(void)state;
	assert_int_equal(dedupe_init(&d, 10), 0);
	assert_int_equal(dedupe_add(&d, &(struct dedupe_item){"a", 1, "DE", "elite"}), 0);
	assert_int_equal(dedupe_add(&d, &(struct dedupe_item){"bc", 2, "", ""}), 0);
	assert_int_equal(dedupe_add(&d, &(struct dedupe_item){"a", 1, "US", ""}), 1);
	assert_true(dedupe_next(&d, &at, &item));
	assert_string_equal(item.text, "a");
	assert_string_equal(item.country, "DE");
	assert_string_equal(item.anonymity, "elite");
	assert_true(dedupe_next(&d, &at, &item));
	assert_int_equal(item.len, 2);
	assert_string_equal(item.country, "");
	assert_false(dedupe_next(&d, &at, &item));
	dedupe_fini(&d);
}

static void test_long_texts_are_bounded_together(void **state)
{
	static char text[60000];
	struct dedupe d;
	int r = 0, count = 0;

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(dedupe_init(&d, 1000), 0);
	for (; r == 0 && count < 1000; count++) {
		text[count] = 'y';
		r = dedupe_add(&d, &(struct dedupe_item){text, sizeof(text), "", ""});
	}
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(count - 1, (65536 + 1000 * 256) / (60000 + 5));
	dedupe_fini(&d);
}

/* The example of the paper's appendix: key 00..0f, message 00..0e. */
static void test_siphash_gives_the_value_of_its_paper(void **state)
{
	static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	uint8_t message[15];

	(void)state;
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	assert_true(siphash(key, message, sizeof(message)) == 0xa129ca6149be45e5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_set_tells_new_from_seen),
	    cmocka_unit_test(test_the_first_tags_of_a_text_stay),
	    cmocka_unit_test(test_long_texts_are_bounded_together),
	    cmocka_unit_test(test_siphash_gives_the_value_of_its_paper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
