/* test_keys.c - the names of a pool's keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/keys.h"

static void test_siblings_stand_in_the_slot_of_the_pool(void **state)
{
	static const struct {
		const char *name, *parked;
	} rows[] = {
	    {"proxies", "{proxies}:pool:parked"},
	    {"a:b", "{a:b}:pool:parked"},
	    {"{a}b", "{a}b:pool:parked"},
	    {"x{a}{b}", "x{a}{b}:pool:parked"},
	    {"x{a}}", "x{a}}:pool:parked"},
	    {"x{{a}", "x{{a}:pool:parked"},
	    {"\xc3\xa4 b", "{\xc3\xa4 b}:pool:parked"},
	};
	struct pool_keys keys;
	char error[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(pool_keys_init(&keys, rows[i].name, error, sizeof(error)), 0);
		assert_string_equal(keys.text[KEY_POOL], rows[i].name);
		assert_string_equal(keys.text[KEY_PARKED], rows[i].parked);
		assert_int_equal(pool_key(&keys, KEY_PARKED).len, strlen(rows[i].parked));
		assert_memory_equal(pool_key(&keys, KEY_POOL).at, rows[i].name,
				    pool_key(&keys, KEY_POOL).len);
	}
}

/* DESIGN 4, the table of keys. */
static void test_the_keys_are_those_of_the_contract(void **state)
{
	static const char *const words[KEY_COUNT] = {
	    [KEY_PARKED] = "parked",   [KEY_OFFSET] = "offset",     [KEY_PROXIES] = "proxies",
	    [KEY_ADMIN] = "admin",     [KEY_SECRETS] = "secrets",   [KEY_HEALTH] = "health",
	    [KEY_STREAKS] = "streaks", [KEY_DUE] = "due",           [KEY_COOLDOWN] = "cooldown",
	    [KEY_LIVE] = "live",       [KEY_BUSY] = "busy",         [KEY_LEASES] = "leases",
	    [KEY_HOLDERS] = "holders", [KEY_RULES] = "rules",       [KEY_TRAFFIC] = "traffic",
	    [KEY_CLIENTS] = "clients", [KEY_FAILING] = "failing",   [KEY_FALLEN] = "fallen",
	    [KEY_ALARM] = "alarm",     [KEY_RELEASED] = "released",
	};
	struct pool_keys keys;
	char error[200], text[100];

	(void)state;
	assert_int_equal(pool_keys_init(&keys, "p", error, sizeof(error)), 0);
	for (int key = 0; key < KEY_COUNT; key++) {
		if (key == KEY_POOL)
			continue;
		snprintf(text, sizeof(text), "{p}:pool:%s", words[key]);
		assert_string_equal(keys.text[key], text);
	}
}

static void test_names_whose_slot_would_be_another_are_refused(void **state)
{
	static const char *const names[] = {"",   "{x}",   "{",   "}",    "a{b",   "a}b", "a{}",
					    "{}", "{}{a}", "a}{", "a\nb", "a\x7f", "\t"};
	struct pool_keys keys;
	char error[200];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		error[0] = '\0';
		if (pool_keys_init(&keys, names[i], error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' is admitted", names[i]);
		assert_true(strlen(error) > 10);
	}
}

static void test_a_name_has_at_most_200_bytes(void **state)
{
	struct pool_keys keys;
	char name[202], error[200];

	(void)state;
	memset(name, 'n', 201);
	name[201] = '\0';
	assert_int_equal(pool_keys_init(&keys, name, error, sizeof(error)), -EINVAL);
	name[200] = '\0';
	assert_int_equal(pool_keys_init(&keys, name, error, sizeof(error)), 0);
	for (int key = 1; key < KEY_COUNT; key++) {
		assert_int_equal(strlen(keys.text[key]), keys.len[key]);
		assert_int_equal(keys.text[key][201], '}');
		assert_memory_equal(keys.text[key] + 202, ":pool:", 6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_siblings_stand_in_the_slot_of_the_pool),
	    cmocka_unit_test(test_the_keys_are_those_of_the_contract),
	    cmocka_unit_test(test_names_whose_slot_would_be_another_are_refused),
	    cmocka_unit_test(test_a_name_has_at_most_200_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
