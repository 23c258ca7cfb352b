/* test_address.c - reading, printing and judging IP addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/address.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct address address_of(const char *text)
{
	struct address a;

	if (address_parse(&a, text, strlen(text)))
		fail_msg("not an address: %s", text);
	return a;
}

static void test_strict_dotted_quads_are_read(void **state)
{
	struct address a = address_of("192.0.2.255");

	(void)state;
	assert_int_equal(a.family, AF_INET);
	assert_memory_equal(a.bytes, ((uint8_t[]){192, 0, 2, 255}), 4);
	a = address_of("0.0.0.0");
	assert_memory_equal(a.bytes, ((uint8_t[]){0, 0, 0, 0}), 4);
}

static void test_other_spellings_of_ipv4_are_refused(void **state)
{
	static const char *const bad[] = {
	    "",           "1",          "1.2.3",     "1.2.3.4.5",  "1.2.3.256",     "01.2.3.4",
	    "1.2.3.04",   "00.0.0.0",   "0x1.2.3.4", "1.2.3.4 ",   " 1.2.3.4",      "1..3.4",
	    "1.2.3.4.",   "1.2.3.-4",   "1.2.3.+4",  "3221225985", "1.2.3.1000000", "1.2.3.a",
	    "192.0.2.1/", "192.0.2.1:",
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (address_parse(&a, bad[i], strlen(bad[i])) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

static void test_a_nul_inside_hides_nothing(void **state)
{
	struct address a;

	(void)state;
	assert_int_equal(address_parse(&a, "::1\0x", 5), -EINVAL);
	assert_int_equal(address_parse(&a, "1.2.3.4\0x", 9), -EINVAL);
	assert_int_equal(address_parse(&a, "192.0.2.1999", 9), 0);
}

static void test_malformed_ipv6_is_refused(void **state)
{
	static const char *const bad[] = {
	    ":",
	    ":::",
	    "1::2::3",
	    "2001:db8::zz",
	    "1:2:3:4:5:6:7",
	    "12345::",
	    "[::1]",
	    "fe80::1%1",
	    "1:2:3:4:5:6:7:8:9",
	    "::ffff:192.0.2.256",
	    "::1.2.3.04",
	    "::ffff:192.0.2",
	    "::1/128",
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (address_parse(&a, bad[i], strlen(bad[i])) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

/* The right-hand sides are those of RFC 5952 sections 1, 4 and 5. */
static void test_ipv6_is_printed_as_rfc_5952_says(void **state)
{
	static const char *const rows[][2] = {
	    {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
	    {"2001:db8:0:0:0:0:2:1", "2001:db8::2:1"},
	    {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
	    {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
	    {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
	    {"2001:DB8::AAAA", "2001:db8::aaaa"},
	    {"0:0:0:0:0:0:0:0", "::"},
	    {"0:0:0:0:0:0:0:1", "::1"},
	    {"1:0:0:0:0:0:0:0", "1::"},
	    {"::ffff:c000:201", "::ffff:192.0.2.1"},
	    {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
	    {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
	};
	char text[46];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct address a = address_of(rows[i][0]);

		address_print(&a, text, sizeof(text));
		assert_string_equal(text, rows[i][1]);
	}
}

static void test_what_is_printed_is_read_back(void **state)
{
	struct address a = {.family = AF_INET6}, b;
	uint32_t random = 1;
	char text[46];

	(void)state;
	for (int round = 0; round < 5000; round++) {
		for (size_t i = 0; i < 16; i += 2) {
			random = random * 1664525 + 1013904223;
			a.bytes[i] = (uint8_t)(random & 1u << 30 ? random >> 16 : 0);
			a.bytes[i + 1] = (uint8_t)(random & 1u << 30 ? random >> 8 : 0);
		}
		address_print(&a, text, sizeof(text));
		assert_int_equal(address_parse(&b, text, strlen(text)), 0);
		assert_memory_equal(a.bytes, b.bytes, 16);
	}
}

static void test_socket_addresses_go_round(void **state)
{
	static const char *const texts[] = {"192.0.2.7", "2001:db8::7"};
	struct sockaddr_storage ss;
	struct address a, b;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		a = address_of(texts[i]);
		assert_int_equal(address_to_sockaddr(&a, 8080, &ss),
				 i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		assert_int_equal(address_from_sockaddr(&b, (struct sockaddr *)(void *)&ss), 0);
		assert_memory_equal(&a, &b, sizeof(a));
	}
	assert_int_equal(((struct sockaddr_in6 *)(void *)&ss)->sin6_port, htons(8080));
	ss.ss_family = AF_UNIX;
	assert_int_equal(address_from_sockaddr(&b, (struct sockaddr *)(void *)&ss), -EINVAL);
}

/* The first and last address of each block of the IANA registries, and their neighbours outside. */
static void test_special_purpose_blocks_are_known(void **state)
{
	static const char *const special[] = {
	    "0.0.0.0",      "0.255.255.255",   "10.0.0.0",   "10.255.255.255",
	    "100.64.0.0",   "100.127.255.255", "127.0.0.1",  "127.255.255.255",
	    "169.254.0.0",  "169.254.169.254", "172.16.0.0", "172.31.255.255",
	    "192.0.0.0",    "192.0.0.255",     "192.0.2.0",  "192.88.99.1",
	    "192.168.0.0",  "192.168.255.255", "198.18.0.0", "198.19.255.255",
	    "198.51.100.9", "203.0.113.255",   "224.0.0.0",  "239.255.255.255",
	    "240.0.0.0",    "255.255.255.255", "::",         "::1",
	    "64:ff9b:1::1", "100::1",          "2001::1",    "2001:db8::1",
	    "2001:1ff::1",  "3fff::1",         "5f00::1",    "fc00::",
	    "fdff::1",      "fe80::1",         "febf::1",    "fec0::1",
	    "ff02::1",
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(special); i++) {
		a = address_of(special[i]);
		if (!address_is_special(&a))
			fail_msg("not special: %s", special[i]);
	}
}

static void test_global_addresses_are_not_special(void **state)
{
	static const char *const global[] = {
	    "1.0.0.0",       "9.255.255.255",   "11.0.0.0",         "100.63.255.255",
	    "100.128.0.0",   "126.0.0.1",       "128.0.0.1",        "169.253.0.1",
	    "169.255.0.1",   "172.15.255.255",  "172.32.0.0",       "192.0.0.9",
	    "192.0.1.0",     "192.0.3.0",       "192.167.255.255",  "192.169.0.0",
	    "198.17.0.1",    "198.20.0.0",      "223.255.255.255",  "203.0.112.1",
	    "2606:4700::1",  "2001:200::1",     "2001:4860::1",     "2001:20::1",
	    "2001:4:112::1", "2002:808:808::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8",
	    "2003::1",       "fbff::1",
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(global); i++) {
		a = address_of(global[i]);
		if (address_is_special(&a))
			fail_msg("special: %s", global[i]);
	}
}

static void test_ipv4_inside_ipv6_is_judged(void **state)
{
	static const char *const inside[] = {
	    "::ffff:127.0.0.1",    "::ffff:10.1.2.3", "64:ff9b::169.254.169.254",
	    "64:ff9b:1::10.0.0.1", "2002:7f00:1::",   "2002:a00:1::1",
	    "2001:0:7f00:1::",     "::127.0.0.1",     "::10.0.0.1",
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(inside); i++) {
		a = address_of(inside[i]);
		if (!address_is_special(&a) || !address_is_bogon(&a))
			fail_msg("passed: %s", inside[i]);
	}
}

static void test_documentation_ranges_are_special_but_no_bogons(void **state)
{
	static const char *const texts[] = {"192.0.2.1",   "198.51.100.1", "203.0.113.1",
					    "2001:db8::1", "3fff::1",      "64:ff9b::192.0.2.1"};
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		a = address_of(texts[i]);
		assert_true(address_is_special(&a));
		assert_false(address_is_bogon(&a));
	}
	a = address_of("10.0.0.1");
	assert_true(address_is_bogon(&a));
}

static void test_networks_contain_their_addresses_only(void **state)
{
	static const struct {
		const char *network, *address;
		bool contains;
	} rows[] = {
	    {"10.0.0.0/8", "10.255.0.1", true},
	    {"10.0.0.0/8", "11.0.0.0", false},
	    {"172.16.0.0/12", "172.31.0.1", true},
	    {"172.16.0.0/12", "172.32.0.1", false},
	    {"192.0.2.1", "192.0.2.1", true},
	    {"192.0.2.1", "192.0.2.2", false},
	    {"0.0.0.0/0", "203.0.113.1", true},
	    {"0.0.0.0/0", "::1", false},
	    {"::1/128", "::1", true},
	    {"::/0", "2001:db8::1", true},
	    {"2001:db8::/33", "2001:db8:7fff::", true},
	    {"2001:db8::/33", "2001:db8:8000::", false},
	};
	struct network n;
	struct address a;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(network_parse(&n, rows[i].network, strlen(rows[i].network)), 0);
		a = address_of(rows[i].address);
		assert_int_equal(network_contains(&n, &a), rows[i].contains);
	}
}

static void test_malformed_networks_are_refused(void **state)
{
	static const char *const bad[] = {"",
					  "/8",
					  "10.0.0.0/",
					  "10.0.0.0/33",
					  "10.0.0.0/08",
					  "10.0.0.0/8 ",
					  "10.0.0.0/-1",
					  "::/129",
					  "10/8",
					  "10.0.0.0/8/8",
					  "10.0.0.0/0x8"};
	struct network n;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (network_parse(&n, bad[i], strlen(bad[i])) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_strict_dotted_quads_are_read),
	    cmocka_unit_test(test_other_spellings_of_ipv4_are_refused),
	    cmocka_unit_test(test_a_nul_inside_hides_nothing),
	    cmocka_unit_test(test_malformed_ipv6_is_refused),
	    cmocka_unit_test(test_ipv6_is_printed_as_rfc_5952_says),
	    cmocka_unit_test(test_what_is_printed_is_read_back),
	    cmocka_unit_test(test_socket_addresses_go_round),
	    cmocka_unit_test(test_special_purpose_blocks_are_known),
	    cmocka_unit_test(test_global_addresses_are_not_special),
	    cmocka_unit_test(test_ipv4_inside_ipv6_is_judged),
	    cmocka_unit_test(test_documentation_ranges_are_special_but_no_bogons),
	    cmocka_unit_test(test_networks_contain_their_addresses_only),
	    cmocka_unit_test(test_malformed_networks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
