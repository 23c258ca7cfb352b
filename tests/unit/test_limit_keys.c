/* test_limit_keys.c - the keys of limits: names as others choose them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "pool/limit_parts.h"

#define CLIENT "{pool}:pool:limit:client:"

/* printf %s NAME | openssl dgst -sha256 -hmac limit, for a name of 129 times "n". */
#define LONG_DIGEST "aa8733fb35737fe6a2e366e715464cc1068e72e4aa5269881d6933b7dd690d0a"

static void test_names_are_encoded_and_long_ones_digested(void **state)
{
	static const struct {
		size_t repeat;
		const char *name, *key;
	} rows[] = {
	    {1, "", ""},
	    {1, "Az09-._~", "Az09-._~"},
	    {1, "a b:rate", "a%20b%3Arate"},
	    {1, "[2001:db8::1]", "%5B2001%3Adb8%3A%3A1%5D"},
	    {1, "{x}\xc3\xa9%", "%7Bx%7D%C3%A9%25"},
	    {129, "n", "#" LONG_DIGEST},
	};
	struct pool_keys keys;
	char error[200];

	(void)state;
	assert_int_equal(pool_keys_init(&keys, "pool", error, sizeof(error)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char name[256] = "", key[256], held[LIMIT_KEY_SIZE], due[LIMIT_KEY_SIZE];

		for (size_t k = 0; k < rows[i].repeat; k++)
			strcat(name, rows[i].name);
		assert_int_equal(limit_keys(&keys, LIMIT_CLIENT, name, held, due), 0);
		snprintf(key, sizeof(key), CLIENT "%s", rows[i].key);
		assert_string_equal(held, key);
		strcat(key, ":rate");
		assert_string_equal(due, key);
	}
}

/* The longest of a pool's names, and of those that are not digested, each byte encoded. */
static void test_the_longest_names_fit(void **state)
{
	char pool[201], name[129], held[LIMIT_KEY_SIZE], due[LIMIT_KEY_SIZE], error[200];
	struct pool_keys keys;

	(void)state;
	memset(pool, 'p', 200);
	memset(name, ':', 128);
	pool[200] = name[128] = '\0';
	assert_int_equal(pool_keys_init(&keys, pool, error, sizeof(error)), 0);
	assert_int_equal(limit_keys(&keys, LIMIT_CLIENT, name, held, due), 0);
	assert_int_equal(strlen(held), strlen("{}:pool:limit:client:") + 200 + 3 * 128);
	assert_int_equal(strlen(due), strlen(held) + strlen(":rate"));
	assert_string_equal(due + strlen(held), ":rate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names_are_encoded_and_long_ones_digested),
	    cmocka_unit_test(test_the_longest_names_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
