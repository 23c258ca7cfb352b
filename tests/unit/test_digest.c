/* test_digest.c - keyed digests, hexadecimal text, random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/digest.h"

/* Test cases 1 and 2 of RFC 4231. */
static void test_the_digest_is_hmac_sha_256(void **state)
{
	uint8_t digest[DIGEST_BYTES], key[20];
	char hex[2 * DIGEST_BYTES + 1];

	(void)state;
	memset(key, 0x0b, sizeof(key));
	assert_int_equal(digest_hmac(digest, key, sizeof(key), "Hi There", 8), 0);
	hex_print(digest, sizeof(digest), hex);
	assert_string_equal(hex,
			    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	assert_int_equal(digest_hmac(digest, "Jefe", 4, "what do ya want for nothing?", 28), 0);
	hex_print(digest, sizeof(digest), hex);
	assert_string_equal(hex,
			    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void test_digests_are_equal_when_each_byte_is(void **state)
{
	uint8_t a[DIGEST_BYTES] = {1, 2, 3}, b[DIGEST_BYTES] = {1, 2, 3};

	(void)state;
	assert_true(digest_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(b); i++) {
		b[i] ^= 0x80;
		assert_false(digest_equal(a, b, sizeof(a)));
		b[i] ^= 0x80;
	}
}

static void test_hexadecimal_text_is_read_strictly(void **state)
{
	uint8_t bytes[2] = {0};

	(void)state;
	assert_int_equal(hex_parse(bytes, 2, "00fF", 4), 0);
	assert_int_equal(bytes[0], 0);
	assert_int_equal(bytes[1], 255);
	assert_int_equal(hex_parse(bytes, 2, "00f", 3), -EINVAL);
	assert_int_equal(hex_parse(bytes, 2, "00fg", 4), -EINVAL);
	assert_int_equal(hex_parse(bytes, 2, "00ff0", 5), -EINVAL);
}

static void test_random_bytes_differ(void **state)
{
	uint8_t a[32] = {0}, b[32] = {0};

	(void)state;
	assert_int_equal(random_bytes(a, sizeof(a)), 0);
	assert_int_equal(random_bytes(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_digest_is_hmac_sha_256),
	    cmocka_unit_test(test_digests_are_equal_when_each_byte_is),
	    cmocka_unit_test(test_hexadecimal_text_is_read_strictly),
	    cmocka_unit_test(test_random_bytes_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
