/* test_user.c - parameters behind the account in a user name: keys, aliases of vendors, what is refused. */
#include "http_split.h"

#include <stdio.h>

#include "gateway/user.h"

#define DAY_MS 86400000

static struct user user;
static char detail[128];

static int parse(const char *text)
{
	char *copy = exact_copy(text, strlen(text));
	int result = user_parse(&user, copy, strlen(text), DAY_MS, detail, sizeof(detail));

	free(copy);
	return result;
}

static void check_refused(const char *text, const char *want)
{
	if (parse(text) != REASON_USER_PARAMETER)
		fail_msg("'%s' is not refused", text);
	assert_string_equal(detail, want);
}

static void test_a_bare_name_says_nothing(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_string_equal(user.pool, "");
	assert_string_equal(user.country, "");
	assert_string_equal(user.session, "");
	assert_int_equal(user.lifetime_ms, 0);
	assert_false(user.is_strict);
}

static void test_all_parameters_are_read_in_any_order(void **state)
{
	static const char *const texts[] = {
	    "-pool-eu.1-country-US-session-My_id.7-lifetime-30s-strict",
	    "-strict-lifetime-30s-session-My_id.7-country-us-pool-eu.1",
	};

	(void)state;
	for (size_t i = 0; i < ROWS(texts); i++) {
		assert_int_equal(parse(texts[i]), 0);
		assert_string_equal(user.pool, "eu.1");
		assert_string_equal(user.country, "us");
		assert_string_equal(user.session, "My_id.7");
		assert_int_equal(user.lifetime_ms, 30000);
		assert_true(user.is_strict);
	}
}

static void test_keys_are_read_in_any_case(void **state)
{
	(void)state;
	assert_int_equal(parse("-POOL-a-Country-De-sESSION-b-LifeTime-1H-STRICT"), 0);
	assert_string_equal(user.pool, "a");
	assert_string_equal(user.country, "de");
	assert_string_equal(user.session, "b");
	assert_int_equal(user.lifetime_ms, 3600000);
	assert_true(user.is_strict);
}

/* Oxylabs; NetNut and dataimpulse; Decodo; SOAX. */
static void test_the_keys_of_vendors_mean_the_same(void **state)
{
	static const char *const texts[] = {
	    "-cc-US-sessid-abc-sesstime-10",
	    "-country-us-sid-abc-sessttl-10",
	    "-country-us-session-abc-sessionduration-10",
	    "-country-us-sessionid-abc-sessionlength-10",
	};

	(void)state;
	for (size_t i = 0; i < ROWS(texts); i++) {
		assert_int_equal(parse(texts[i]), 0);
		assert_string_equal(user.country, "us");
		assert_string_equal(user.session, "abc");
		assert_int_equal(user.lifetime_ms, 600000);
	}
}

static void test_a_lifetime_without_a_unit_is_in_minutes(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
	    {"-lifetime-1", 60000},       {"-lifetime-010", 600000}, {"-lifetime-1440", DAY_MS},
	    {"-lifetime-1s", 1000},       {"-lifetime-90s", 90000},  {"-lifetime-5m", 300000},
	    {"-lifetime-24h", DAY_MS},    {"-lifetime-1D", DAY_MS},  {"-sesstime-2M", 120000},
	    {"-sesstime-86400s", DAY_MS},
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		if (parse(rows[i].text) != 0 || user.lifetime_ms != rows[i].ms)
			fail_msg("%s: %lld", rows[i].text, (long long)user.lifetime_ms);
	}
}

static void test_a_lifetime_out_of_range_is_refused(void **state)
{
	static const char *const texts[] = {
	    "0",
	    "0s",
	    "999ms",
	    "1441",
	    "86401s",
	    "25h",
	    "2d",
	    "99999999999999999999",
	    "153722867280912931m",
	    "x",
	    "m",
	    "1.5h",
	    "1x",
	    "1_0",
	    "1ss",
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ROWS(texts); i++) {
		snprintf(text, sizeof(text), "-sesstime-%s", texts[i]);
		check_refused(text, "parameter lifetime must be 1s to 1d");
	}
}

static void test_an_unknown_parameter_is_refused_by_name(void **state)
{
	(void)state;
	check_refused("-city-berlin", "parameter city is not known");
	check_refused("-session-a-b", "parameter b is not known");
	check_refused("-country-us-", "parameter without a name is not known");
	check_refused("-", "parameter without a name is not known");
	check_refused("-strict-pool-a-rotate", "parameter rotate is not known");
	check_refused("-sessions-a", "parameter sessions is not known");
	check_refused("-sess-a", "parameter sess is not known");
	check_refused("+session-a", "parameter ?session?a is not known");
}

static void test_a_parameter_stands_there_once(void **state)
{
	(void)state;
	check_refused("-session-a-session-a", "parameter session stands there twice");
	check_refused("-session-a-SID-b", "parameter session stands there twice");
	check_refused("-strict-strict", "parameter strict stands there twice");
	check_refused("-cc-us-country-us", "parameter country stands there twice");
}

static void test_a_parameter_needs_a_value(void **state)
{
	(void)state;
	check_refused("-session", "parameter session has no value");
	check_refused("-strict-pool", "parameter pool has no value");
	check_refused("-sid-", "parameter session is empty");
	check_refused("-cc--strict", "parameter country is empty");
	check_refused("-lifetime", "parameter lifetime has no value");
}

static void test_values_have_few_bytes(void **state)
{
	static const char *const values[] = {"a b",      "a:b",   "a/b",    "a+b", "a\"b", "a\\b",
					     "\xc3\xa4", "a\x7f", "a\r\nb", "{a}", "a,b",  "a=b"};
	char text[32];

	(void)state;
	for (size_t i = 0; i < ROWS(values); i++) {
		snprintf(text, sizeof(text), "-session-%s", values[i]);
		check_refused(text, "parameter session may have letters, digits, underscores and "
				    "dots only");
	}
	assert_int_equal(user_parse(&user, "-pool-a\0b", 9, DAY_MS, detail, sizeof(detail)),
			 REASON_USER_PARAMETER);
}

static void test_values_have_at_most_64_bytes(void **state)
{
	char text[128] = "-session-";

	(void)state;
	memset(text + strlen(text), 'a', 64);
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(user.session), 64);
	strcat(text, "a");
	check_refused(text, "parameter session is longer than 64 bytes");
}

static void test_the_detail_is_printable_whatever_the_client_writes(void **state)
{
	char text[512] = "-";

	(void)state;
	check_refused("-\"\\\r\n\x80\x01x", "parameter ??????x is not known");
	memset(text + 1, 'k', 400);
	check_refused(text, "parameter kkkkkkkkkkkkkkkkkkkkkkkk is not known");
}

static void test_a_refused_name_leaves_the_structure_alone(void **state)
{
	(void)state;
	assert_int_equal(parse("-session-before"), 0);
	assert_int_equal(parse("-session-after-nonsense"), REASON_USER_PARAMETER);
	assert_string_equal(user.session, "before");
}

/* A name that is cut says less or is refused; it never says something else. */
static void test_a_name_cut_anywhere_never_means_more(void **state)
{
	static const char text[] = "-pool-eu-country-us-session-abc-lifetime-30m-strict";

	(void)state;
	for (size_t len = 0; len < strlen(text); len++) {
		char *copy = exact_copy(text, len);

		if (user_parse(&user, copy, len, DAY_MS, detail, sizeof(detail)) == 0) {
			assert_memory_equal(user.pool, "eu", strlen(user.pool));
			assert_memory_equal(user.session, "abc", strlen(user.session));
			assert_false(user.is_strict);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_bare_name_says_nothing),
	    cmocka_unit_test(test_all_parameters_are_read_in_any_order),
	    cmocka_unit_test(test_keys_are_read_in_any_case),
	    cmocka_unit_test(test_the_keys_of_vendors_mean_the_same),
	    cmocka_unit_test(test_a_lifetime_without_a_unit_is_in_minutes),
	    cmocka_unit_test(test_a_lifetime_out_of_range_is_refused),
	    cmocka_unit_test(test_an_unknown_parameter_is_refused_by_name),
	    cmocka_unit_test(test_a_parameter_stands_there_once),
	    cmocka_unit_test(test_a_parameter_needs_a_value),
	    cmocka_unit_test(test_values_have_few_bytes),
	    cmocka_unit_test(test_values_have_at_most_64_bytes),
	    cmocka_unit_test(test_the_detail_is_printable_whatever_the_client_writes),
	    cmocka_unit_test(test_a_refused_name_leaves_the_structure_alone),
	    cmocka_unit_test(test_a_name_cut_anywhere_never_means_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
