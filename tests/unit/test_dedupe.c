/* test_dedupe.c - the set of canonical forms, and its hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

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

			assert_int_equal(dedupe_add(&d, text, (size_t)len), round);
		}
	assert_int_equal(dedupe_add(&d, "x", 1), -ENOBUFS);
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
	    cmocka_unit_test(test_siphash_gives_the_value_of_its_paper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
