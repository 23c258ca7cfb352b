/* test_endpoint.c - the grammar of entries, canonical forms, identifiers, credentials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/endpoint.h"
#include "base/endpoint_parts.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct endpoint_rules defaults = {.default_scheme = SCHEME_HTTP};

/* Parses a copy that ends where its memory ends; writes the canonical form, or the verdict's
 * word, into `got`. */
static void parse_to(char got[ENDPOINT_TEXT_MAX], const char *text, size_t len,
		     const struct endpoint_rules *rules)
{
	char *copy = malloc(len ? len : 1);
	struct endpoint e;
	size_t n;
	int r;

	memcpy(copy, text, len);
	r = endpoint_parse(&e, copy, len, rules);
	free(copy);
	assert_true(r >= 0);
	if (r) {
		snprintf(got, ENDPOINT_TEXT_MAX, "%s", verdict_word(r));
		return;
	}
	n = endpoint_print(&e, SHOW_SECRET, got, ENDPOINT_TEXT_MAX);
	assert_int_equal(n, strlen(got));
	endpoint_fini(&e);
}

static void parses_as(const char *text, const struct endpoint_rules *rules, const char *expected)
{
	char got[ENDPOINT_TEXT_MAX];

	parse_to(got, text, strlen(text), rules);
	if (strcmp(got, expected) != 0)
		fail_msg("%s gives %s, expected %s", text, got, expected);
}

struct row {
	const char *text, *expected;
};

static void rows_parse(const struct row *rows, size_t count, const struct endpoint_rules *rules)
{
	for (size_t i = 0; i < count; i++)
		parses_as(rows[i].text, rules, rows[i].expected);
}

static void test_the_three_forms_are_read(void **state)
{
	static const struct row rows[] = {
	    {"192.0.2.1:8080", "http://192.0.2.1:8080"},
	    {"SOCKS5H://Proxy.Example.COM.:1", "socks5h://proxy.example.com:1"},
	    {"http://192.0.2.1:8080/", "http://192.0.2.1:8080"},
	    {"user:pass@192.0.2.1:80", "http://user:pass@192.0.2.1:80"},
	    {"192.0.2.1:80@user:pass", "http://user:pass@192.0.2.1:80"},
	    {"192.0.2.1:80@user:p%40s@s", "http://user:p%2540s%40s@192.0.2.1:80"},
	    {"192.0.2.1:80:user:pass", "http://user:pass@192.0.2.1:80"},
	    {"user:pass:192.0.2.1:80", "http://user:pass@192.0.2.1:80"},
	    {"user:pass:[2001:db8::1]:80", "http://user:pass@[2001:db8::1]:80"},
	    {"socks5://user:pass:192.0.2.1:80", "socks5://user:pass@192.0.2.1:80"},
	    {"192.0.2.1:80:Peru", "http://192.0.2.1:80"},
	    {"[2001:DB8::0:1]:80", "http://[2001:db8::1]:80"},
	    {"gw.example.com:80:user:p@ss", "http://user:p%40ss@gw.example.com:80"},
	};

	(void)state;
	rows_parse(rows, COUNT(rows), &defaults);
}

static void test_each_fault_has_its_reason(void **state)
{
	static const struct row rows[] = {
	    {"", "not-an-endpoint"},
	    {"http://", "empty-host"},
	    {":8080", "empty-host"},
	    {"user:pass@:80", "empty-host"},
	    {"socks://192.0.2.1:1080", "ambiguous-scheme"},
	    {"vmess://x", "unsupported-scheme"},
	    {"http://socks5://192.0.2.1:80", "double-scheme"},
	    {"http://socks://192.0.2.1:80", "double-scheme"},
	    {"user:pass@http://192.0.2.1:80", "scheme-after-userinfo"},
	    {"192.0.2.1:80@user", "single-label-host"},
	    {"user:pass@192.0.2.1:80:US", "port-syntax"},
	    {"192.0.2.1:8080@gw.example.com:99999", "port-range"},
	    {"http://192.0.2.1:80#x", "not-an-endpoint"},
	    {"http://192.0.2.1:80 US", "not-an-endpoint"},
	    {"192.0.2.1 80", "missing-port"},
	    {" 192.0.2.1:80", "not-an-endpoint"},
	    {"192.0.2.1:80\n", "control-char"},
	    {"[::1:80", "ipv6-syntax"},
	    {"[2001:db8::1]x:80", "ipv6-syntax"},
	    {"[192.0.2.1]:80", "ipv6-syntax"},
	    {"[]:80", "ipv6-syntax"},
	    {"::1:8080", "ipv6-unbracketed"},
	    {"http://2001:db8::1", "ipv6-unbracketed"},
	    {"192.0.2.1.:80", "ipv4-form"},
	    {"a.0x:80", "ipv4-form"},
	    {"a.0x1g:80", "hostname-label"},
	    {".:80", "hostname-label"},
	    {"a.b..:80", "hostname-label"},
	    {"a.b-:80", "hostname-label"},
	    {"a.1b:80", "hostname-label"},
	    {"x.localhost:80", "bogon"},
	    {"LOCALHOST.:80", "bogon"},
	    {"[::127.0.0.1]:80", "bogon"},
	    {"[fc00::1]:80", "bogon"},
	    {"direct://", "direct"},
	    {"Direct://192.0.2.1", "direct"},
	};

	(void)state;
	rows_parse(rows, COUNT(rows), &defaults);
}

static void test_the_limits_of_ports_hold(void **state)
{
	static const struct row rows[] = {
	    {"192.0.2.1:1", "http://192.0.2.1:1"}, {"192.0.2.1:65535", "http://192.0.2.1:65535"},
	    {"192.0.2.1:65536", "port-range"},     {"192.0.2.1:0", "port-range"},
	    {"192.0.2.1:00", "port-leading-zero"}, {"192.0.2.1:18446744073709551617", "port-range"},
	    {"192.0.2.1:\xd9\xa1", "port-syntax"},
	};

	(void)state;
	rows_parse(rows, COUNT(rows), &defaults);
}

/* A name of `len` bytes in labels of at most 50. */
static void name_make(char *name, size_t len)
{
	memset(name, 'a', len);
	for (size_t i = 50; i + 1 < len; i += 51)
		name[i] = '.';
	name[len] = '\0';
}

static void test_a_host_name_has_at_most_253_bytes(void **state)
{
	char name[300], text[320], expected[320];

	(void)state;
	name_make(name, 253);
	snprintf(expected, sizeof(expected), "http://%s:80", name);
	parses_as(expected + 7, &defaults, expected);
	snprintf(text, sizeof(text), "%s.:80", name);
	parses_as(text, &defaults, expected);
	name_make(name, 254);
	snprintf(text, sizeof(text), "%s:80", name);
	parses_as(text, &defaults, "hostname-length");
}

static void test_a_label_has_at_most_63_bytes(void **state)
{
	char label[65], text[100], expected[110];

	(void)state;
	memset(label, 'a', sizeof(label));
	snprintf(text, sizeof(text), "%.63s.example.com:80", label);
	snprintf(expected, sizeof(expected), "http://%s", text);
	parses_as(text, &defaults, expected);
	snprintf(text, sizeof(text), "%.64s.example.com:80", label);
	parses_as(text, &defaults, "hostname-label");
}

static void test_colon_order_decides_where_both_readings_fit(void **state)
{
	struct endpoint_rules rules = defaults;
	const char *both = "gw.example.com:8080:john.doe:9000";

	(void)state;
	parses_as(both, &rules, "ambiguous-colon-list");
	rules.colon_order = COLON_HOST_FIRST;
	parses_as(both, &rules, "http://john.doe:9000@gw.example.com:8080");
	parses_as("user:pass:192.0.2.1:80", &rules, "single-label-host");
	rules.colon_order = COLON_USER_FIRST;
	parses_as(both, &rules, "http://gw.example.com:8080@john.doe:9000");
	parses_as("192.0.2.1:80:user:pass", &rules, "single-label-host");
	parses_as("u:gw.example.com:80:x", &rules, "ipv4-form");
	parses_as("192.0.2.1:80", &rules, "http://192.0.2.1:80");
	parses_as("192.0.2.1:80:Peru", &rules, "http://192.0.2.1:80");
	parses_as("[2001:db8::1]:80", &rules, "http://[2001:db8::1]:80");
}

static void test_a_mistyped_port_never_swaps_host_and_credentials(void **state)
{
	(void)state;
	parses_as("gw.example.com:99999:john.doe:9000", &defaults, "port-range");
	parses_as("gw.example.com:08080:john.doe:9000", &defaults, "port-leading-zero");
	parses_as("10.0.0.1:80:john.doe:9000", &defaults, "ambiguous-colon-list");
	parses_as("10.0.0.1:80:user:pass", &defaults, "bogon");
}

static void test_switches_admit_what_they_name(void **state)
{
	struct endpoint_rules rules = {.default_scheme = SCHEME_SOCKS5,
				       .allow_private = true,
				       .allow_single_label = true,
				       .https_means_connect = true};

	(void)state;
	parses_as("127.0.0.1:80", &rules, "socks5://127.0.0.1:80");
	parses_as("localhost:80", &rules, "socks5://localhost:80");
	parses_as("http://tor:9050", &rules, "http://tor:9050");
	parses_as("https://192.0.2.1:80", &rules, "http://192.0.2.1:80");
	parses_as("[::ffff:192.0.2.1]:80", &rules, "ipv6-v4mapped");
	rules.allow_single_label = false;
	parses_as("localhost:80", &rules, "socks5://localhost:80");
	parses_as("tor:80", &rules, "single-label-host");
	rules.default_scheme = SCHEME_HTTPS;
	parses_as("192.0.2.1:80", &rules, "http://192.0.2.1:80");
}

static void test_direct_needs_its_switch(void **state)
{
	struct endpoint_rules rules = {.allow_direct = true};

	(void)state;
	parses_as("direct://", &rules, "direct://");
	parses_as("DIRECT://10.1.2.3", &rules, "direct://10.1.2.3");
	parses_as("direct://[2001:DB8::1]", &rules, "direct://[2001:db8::1]");
	parses_as("direct://example.com", &rules, "ipv4-form");
	parses_as("direct://192.0.2.1:80", &rules, "host-charset");
	parses_as("192.0.2.1:80:direct", &rules, "http://192.0.2.1:80");
}

static void test_credentials_are_judged_by_scheme(void **state)
{
	static const struct row rows[] = {
	    {"http://a%3Ab:c@192.0.2.1:1", "colon-in-username"},
	    {"https://a%3Ab:c@192.0.2.1:1", "colon-in-username"},
	    {"socks5h://a%3Ab:c@192.0.2.1:1", "socks5h://a%3Ab:c@192.0.2.1:1"},
	    {"socks4://user@192.0.2.1:1", "socks4://user:@192.0.2.1:1"},
	    {"socks4://user:pass@192.0.2.1:1", "socks4-password"},
	    {"socks4a://user:pass@192.0.2.1:1", "socks4-password"},
	    {"socks5://user@192.0.2.1:1", "credential-too-long"},
	    {"http://:pass@192.0.2.1:1", "empty-user"},
	    {"http://:@192.0.2.1:1", "http://192.0.2.1:1"},
	    {"http://u:%0a@192.0.2.1:1", "credential-control-char"},
	    {"http://u%7f:p@192.0.2.1:1", "credential-control-char"},
	};

	(void)state;
	rows_parse(rows, COUNT(rows), &defaults);
}

/* RFC 1929: each field has one length byte. */
static void test_socks5_credentials_have_at_most_255_bytes(void **state)
{
	char text[1200], field[800];

	(void)state;
	for (size_t len = 255; len <= 256; len++) {
		memset(field, 'x', len);
		field[len] = '\0';
		snprintf(text, sizeof(text), "socks5://u:%s@192.0.2.1:1", field);
		parses_as(text, &defaults, len == 255 ? text : "credential-too-long");
		snprintf(text, sizeof(text), "socks5://%s:p@192.0.2.1:1", field);
		parses_as(text, &defaults, len == 255 ? text : "credential-too-long");
		snprintf(text, sizeof(text), "http://u:%s@192.0.2.1:1", field);
		parses_as(text, &defaults, text);
	}
	/* Counted after decoding. */
	for (size_t i = 0; i < 255; i++)
		memcpy(field + 3 * i, "%2F", 4);
	snprintf(text, sizeof(text), "socks5://u:%s@192.0.2.1:1", field);
	parses_as(text, &defaults, text);
}

static void credentials_are(const char *text, const char *user, const char *password)
{
	char u[300], p[300];
	size_t u_len = sizeof(u), p_len = sizeof(p);
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, text, strlen(text), &defaults), 0);
	assert_int_equal(endpoint_credentials(&e, u, &u_len, p, &p_len), 0);
	assert_string_equal(u, user);
	assert_string_equal(p, password);
	assert_int_equal(u_len, strlen(user));
	assert_int_equal(p_len, strlen(password));
	endpoint_fini(&e);
}

/* T10: the upstream gets the bytes that were written in the list. */
static void test_odd_passwords_come_back_byte_for_byte(void **state)
{
	(void)state;
	credentials_are("192.0.2.1:80:user:a:b", "user", "a:b");
	credentials_are("http://user:a:b@192.0.2.1:80", "user", "a:b");
	credentials_are("http://user:p@ss@192.0.2.1:80", "user", "p@ss");
	credentials_are("http://user:100%@192.0.2.1:80", "user", "100%");
	credentials_are("http://user:100%2@192.0.2.1:80", "user", "100%2");
	credentials_are("http://user:%40x@192.0.2.1:80", "user", "@x");
	credentials_are("192.0.2.1:80:user:%40x", "user", "%40x");
	credentials_are("http://user:%zz@192.0.2.1:80", "user", "%zz");
	credentials_are("http://us\xc3\xa9r:p\xff@192.0.2.1:80", "us\xc3\xa9r", "p\xff");
	credentials_are("http://user:@192.0.2.1:80", "user", "");
	credentials_are("http://user@192.0.2.1:80", "user", "");
	credentials_are("socks5://u%3As:p%20w@192.0.2.1:80", "u:s", "p w");
}

static void test_credentials_need_room_and_presence(void **state)
{
	char u[8], p[8];
	size_t u_len = 4, p_len = 5;
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse(&e, "user:pass@192.0.2.1:80", 22, &defaults), 0);
	assert_int_equal(endpoint_credentials(&e, u, &u_len, p, &p_len), -EMSGSIZE);
	u_len = p_len = 5;
	assert_int_equal(endpoint_credentials(&e, u, &u_len, p, &p_len), 0);
	endpoint_fini(&e);
	assert_int_equal(endpoint_credentials(&e, u, &u_len, p, &p_len), -ENOENT);
}

static void test_printing_hides_secrets_and_stays_inside_its_buffer(void **state)
{
	char text[64];
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse(&e, "user:pass@[2001:db8::1]:80", 26, &defaults), 0);
	assert_int_equal(endpoint_print(&e, HIDE_SECRET, text, sizeof(text)), 27);
	assert_string_equal(text, "http://***@[2001:db8::1]:80");
	endpoint_print(&e, SHOW_SECRET, text, sizeof(text));
	assert_string_equal(text, "http://user:pass@[2001:db8::1]:80");
	memset(text, 'x', sizeof(text));
	assert_int_equal(endpoint_print(&e, SHOW_SECRET, text, 10), 9);
	assert_string_equal(text, "http://us");
	assert_int_equal(text[10], 'x');
	endpoint_fini(&e);
}

static void test_copies_own_their_secret(void **state)
{
	struct endpoint a, b;

	(void)state;
	assert_int_equal(endpoint_parse(&a, "user:pass@192.0.2.1:80", 22, &defaults), 0);
	assert_int_equal(endpoint_copy(&b, &a), 0);
	assert_ptr_not_equal(a.secret, b.secret);
	endpoint_fini(&a);
	assert_string_equal(b.secret, "user:pass");
	endpoint_fini(&b);
}

static void test_fields_of_their_own_are_taken_literally(void **state)
{
	struct endpoint_parts p;
	struct endpoint e;
	char text[100];

	(void)state;
	parts_init(&p);
	p.scheme = SCHEME_SOCKS5;
	p.is_bare_host = true;
	p.host = (struct span){"2001:DB8::1", 11};
	p.port = (struct span){"1080", 4};
	p.user = (struct span){"a:b", 3};
	p.password = (struct span){"%41", 3};
	p.has_credentials = true;
	assert_int_equal(parts_build(&e, &p, &defaults), 0);
	endpoint_print(&e, SHOW_SECRET, text, sizeof(text));
	assert_string_equal(text, "socks5://a%3Ab:%2541@[2001:db8::1]:1080");
	endpoint_fini(&e);
	p.host = (struct span){"fe80::1%eth0", 12};
	assert_int_equal(parts_build(&e, &p, &defaults), VERDICT_IPV6_ZONE);
}

static uint32_t random_next(void)
{
	static uint32_t random = 7;

	random = random * 1664525 + 1013904223;
	return random >> 10;
}

/* A text of pieces that entries are made of, in any order. */
static void text_make(char *text, size_t size)
{
	static const char *const pieces[] = {
	    "u", "a.b", "192.0.2.1", "[::1]",      ":",         ":", ":80", ":80", "@",
	    "%", "%41", "%3A",       "socks5h://", "socks4://", "/", "#",   "|",   "\xc3",
	};
	size_t count = 2 + random_next() % 8;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		strncat(text, pieces[random_next() % COUNT(pieces)], size - strlen(text) - 1);
}

/* Whatever a text gives is read back to the same: nothing is lost or decoded twice. */
static void test_canonical_forms_are_fixed_points(void **state)
{
	struct endpoint_rules rules = {.allow_private = true, .allow_single_label = true};
	char text[100], once[ENDPOINT_TEXT_MAX], twice[ENDPOINT_TEXT_MAX];
	int accepted = 0;

	(void)state;
	for (int round = 0; round < 100000; round++) {
		text_make(text, sizeof(text));
		parse_to(once, text, strlen(text), &rules);
		if (!strstr(once, "://"))
			continue;
		accepted++;
		parse_to(twice, once, strlen(once), &rules);
		assert_string_equal(once, twice);
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_three_forms_are_read),
	    cmocka_unit_test(test_each_fault_has_its_reason),
	    cmocka_unit_test(test_the_limits_of_ports_hold),
	    cmocka_unit_test(test_a_host_name_has_at_most_253_bytes),
	    cmocka_unit_test(test_a_label_has_at_most_63_bytes),
	    cmocka_unit_test(test_colon_order_decides_where_both_readings_fit),
	    cmocka_unit_test(test_a_mistyped_port_never_swaps_host_and_credentials),
	    cmocka_unit_test(test_switches_admit_what_they_name),
	    cmocka_unit_test(test_direct_needs_its_switch),
	    cmocka_unit_test(test_credentials_are_judged_by_scheme),
	    cmocka_unit_test(test_socks5_credentials_have_at_most_255_bytes),
	    cmocka_unit_test(test_odd_passwords_come_back_byte_for_byte),
	    cmocka_unit_test(test_credentials_need_room_and_presence),
	    cmocka_unit_test(test_printing_hides_secrets_and_stays_inside_its_buffer),
	    cmocka_unit_test(test_copies_own_their_secret),
	    cmocka_unit_test(test_fields_of_their_own_are_taken_literally),
	    cmocka_unit_test(test_canonical_forms_are_fixed_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
