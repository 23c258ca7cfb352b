/* test_endpoint_id.c - the identifiers of members, written and read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/endpoint.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct endpoint_rules defaults = {.default_scheme = SCHEME_HTTP};

static void id_is(const char *text, const char *expected)
{
	uint8_t salt[ENDPOINT_SALT_BYTES];
	char id[ENDPOINT_ID_MAX];
	struct endpoint e;

	for (size_t i = 0; i < sizeof(salt); i++)
		salt[i] = (uint8_t)i;
	assert_int_equal(endpoint_parse(&e, text, strlen(text), &defaults), 0);
	assert_int_equal(endpoint_id(&e, salt, id, sizeof(id)), 0);
	assert_string_equal(id, expected);
	endpoint_fini(&e);
}

/* The digests are those of Python's hmac module. */
static void test_identifiers_hold_a_digest_of_the_credentials(void **state)
{
	(void)state;
	id_is("HTTP://192.0.2.1:80/", "http://192.0.2.1:80");
	id_is("[2001:db8::1]:80", "http://[2001:db8::1]:80");
	id_is("socks5://user:pass@192.0.2.1:80", "socks5://192.0.2.1:80#9a01b132b1dfda3c");
	id_is("192.0.2.1:80:user:pass", "http://192.0.2.1:80#9a01b132b1dfda3c");
	id_is("user:p%40ss@192.0.2.1:80", "http://192.0.2.1:80#1f33cca68c1d90d5");
	id_is("user:p@ss@192.0.2.1:80", "http://192.0.2.1:80#1f33cca68c1d90d5");
}

static void test_identifiers_are_read_back(void **state)
{
	static const struct {
		const char *id, *canonical;
		bool has_secret;
	} rows[] = {
	    {"http://192.0.2.1:80", "http://192.0.2.1:80", false},
	    {"socks5://[2001:db8::1]:80#0123456789abcdef", "socks5://[2001:db8::1]:80", true},
	    {"192.0.2.1:80", "http://192.0.2.1:80", false},
	    {"127.0.0.1:80", "http://127.0.0.1:80", false},
	    {"tor:9050", "http://tor:9050", false},
	    {"https://192.0.2.1:80", "https://192.0.2.1:80", false},
	    {"direct://10.0.0.1", "direct://10.0.0.1", false},
	    {"direct://", "direct://", false},
	};
	char text[64];
	struct endpoint e;
	bool has_secret;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(endpoint_parse_id(&e, &has_secret, rows[i].id, strlen(rows[i].id)),
				 0);
		endpoint_print(&e, SHOW_SECRET, text, sizeof(text));
		assert_string_equal(text, rows[i].canonical);
		assert_int_equal(has_secret, rows[i].has_secret);
		assert_null(e.secret);
	}
}

static void test_foreign_members_of_other_kinds_are_refused(void **state)
{
	static const char *const bad[] = {
	    "",
	    "task-17",
	    "192.0.2.1",
	    "http://user:pass@192.0.2.1:80",
	    "192.0.2.1:80:user:pass",
	    "192.0.2.1:80:US",
	    "http://192.0.2.1:80#",
	    "http://192.0.2.1:80#0123456789abcde",
	    "http://192.0.2.1:80#0123456789ABCDEF",
	    "http://192.0.2.1:80#0123456789abcdef0",
	    "direct://#0123456789abcdef",
	    "192.0.2.1:80 US",
	    "192.0.2.1:80\t",
	    "ss://192.0.2.1:80",
	    "#0123456789abcdef",
	    "user@192.0.2.1:80",
	};
	struct endpoint e;
	bool has_secret;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (endpoint_parse_id(&e, &has_secret, bad[i], strlen(bad[i])) <= 0)
			fail_msg("accepted: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_identifiers_hold_a_digest_of_the_credentials),
	    cmocka_unit_test(test_identifiers_are_read_back),
	    cmocka_unit_test(test_foreign_members_of_other_kinds_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
