/* test_member.c - the cache of members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "pool/member.h"

#define WITH_SECRET "http://192.0.2.1:80#0123456789abcdef"

static struct member *add(struct members *members, const char *id, const char *secret)
{
	return members_add(members, id, strlen(id), secret, secret ? strlen(secret) : 0);
}

static bool is_kept(struct members *members, const char *id)
{
	struct member *member = members_find(members, id, strlen(id));

	member_unref(member);
	return member != NULL;
}

static void test_identifiers_are_read(void **state)
{
	static const struct {
		const char *id, *secret;
		bool is_readable, is_kept;
	} rows[] = {
	    {"http://192.0.2.1:80", NULL, true, true},
	    {"192.0.2.1:8080", NULL, true, true},
	    {"socks5h://proxy.example:1080", NULL, true, true},
	    {"direct://192.0.2.9", NULL, true, true},
	    {WITH_SECRET, "u:p", true, true},
	    {WITH_SECRET, NULL, false, false},
	    {"nonsense", NULL, false, false},
	    {"", NULL, false, false},
	    {"http://u:p@192.0.2.1:80", NULL, false, false},
	    {"\xff\x01", NULL, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct members *members;
		struct member *member;

		assert_int_equal(members_new(&members, 10), 0);
		member = add(members, rows[i].id, rows[i].secret);
		assert_int_equal(member->is_readable, rows[i].is_readable);
		assert_string_equal(member->id, rows[i].id);
		assert_int_equal(is_kept(members, rows[i].id), rows[i].is_kept);
		member_unref(member);
		members_free(members);
	}
}

static void test_an_identifier_announces_its_credentials(void **state)
{
	(void)state;
	assert_true(member_needs_secret(WITH_SECRET, strlen(WITH_SECRET)));
	assert_false(member_needs_secret("http://192.0.2.1:80", 19));
	assert_false(member_needs_secret("http://192.0.2.1:80#0123", 24));
	assert_false(member_needs_secret("#0123456789abcdef", 17));
}

static void test_the_credentials_go_with_the_endpoint(void **state)
{
	struct members *members;
	struct member *member;

	(void)state;
	assert_int_equal(members_new(&members, 10), 0);
	member_unref(add(members, WITH_SECRET, "user:pass%3Aword"));
	member = members_find(members, WITH_SECRET, strlen(WITH_SECRET));
	assert_non_null(member);
	assert_string_equal(member->endpoint.secret, "user:pass%3Aword");
	assert_string_equal(member->endpoint.host, "192.0.2.1");
	member_unref(member);
	members_free(members);
}

static void test_the_least_recently_used_goes_first(void **state)
{
	struct members *members;

	(void)state;
	assert_int_equal(members_new(&members, 2), 0);
	member_unref(add(members, "192.0.2.1:1", NULL));
	member_unref(add(members, "192.0.2.2:1", NULL));
	assert_true(is_kept(members, "192.0.2.1:1"));
	member_unref(add(members, WITH_SECRET, "u:p"));
	assert_false(is_kept(members, "192.0.2.2:1"));
	assert_true(is_kept(members, "192.0.2.1:1"));
	assert_true(is_kept(members, WITH_SECRET));
	members_free(members);
}

static void test_a_full_cache_keeps_a_part_of_a_larger_pool_in_place(void **state)
{
	struct members *members;
	char id[32];
	int kept = 0;

	(void)state;
	assert_int_equal(members_new(&members, 100), 0);
	for (int round = 0; round < 3; round++) {
		kept = 0;
		for (int i = 0; i < 200; i++) {
			snprintf(id, sizeof id, "192.0.2.%d:1", i);
			if (is_kept(members, id))
				kept++;
			else
				member_unref(add(members, id, NULL));
		}
	}
	/* A pool of twice its size, in order: without the rule every one of them would miss. */
	assert_true(kept > 50);
	members_free(members);
}

static void test_a_member_in_use_outlives_the_cache(void **state)
{
	struct members *members;
	struct member *member, *same;

	(void)state;
	assert_int_equal(members_new(&members, 1), 0);
	member = add(members, "192.0.2.1:1", NULL);
	same = members_find(members, "192.0.2.1:1", 11);
	assert_ptr_equal(member, same);
	member_unref(same);
	member_unref(add(members, "192.0.2.2:1", NULL));
	assert_string_equal(member->id, "192.0.2.1:1");
	members_free(members);
	assert_string_equal(member->endpoint.host, "192.0.2.1");
	member_unref(member);
	member_unref(NULL);
	members_free(NULL);
}

static void test_identifiers_may_hold_any_byte(void **state)
{
	struct members *members;
	struct member *member;

	(void)state;
	assert_int_equal(members_new(&members, 10), 0);
	member = members_add(members, "192.0.2.1:1\0x", 13, NULL, 0);
	assert_false(member->is_readable);
	assert_int_equal(member->id_len, 13);
	assert_null(members_find(members, "192.0.2.1:1", 11));
	member_unref(member);
	members_free(members);
}

static void test_the_cache_stays_bounded(void **state)
{
	struct members *members;
	int kept = 0;
	char id[40];

	(void)state;
	assert_int_equal(members_new(&members, 100), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "192.0.2.1:%d", i + 1);
		member_unref(add(members, id, NULL));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "192.0.2.1:%d", i + 1);
		kept += is_kept(members, id);
	}
	assert_int_equal(kept, 100);
	members_free(members);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_identifiers_are_read),
	    cmocka_unit_test(test_an_identifier_announces_its_credentials),
	    cmocka_unit_test(test_the_credentials_go_with_the_endpoint),
	    cmocka_unit_test(test_the_least_recently_used_goes_first),
	    cmocka_unit_test(test_a_full_cache_keeps_a_part_of_a_larger_pool_in_place),
	    cmocka_unit_test(test_a_member_in_use_outlives_the_cache),
	    cmocka_unit_test(test_identifiers_may_hold_any_byte),
	    cmocka_unit_test(test_the_cache_stays_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
