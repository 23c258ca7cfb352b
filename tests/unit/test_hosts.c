/* test_hosts.c - lists of targets: names, networks, ports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/hosts.h"

static struct hosts *hosts;
static char error[256];

#define LIST(...)                                                                                  \
	make_list((const char *const[]){__VA_ARGS__},                                              \
		  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void make_list(const char *const *texts, size_t count)
{
	hosts_free(hosts);
	hosts = NULL;
	if (hosts_new(&hosts, texts, count, error, sizeof(error)) != 0)
		fail_msg("%s", error);
}

static int forget(void **state)
{
	(void)state;
	hosts_free(hosts);
	hosts = NULL;
	return 0;
}

static void test_an_empty_list_holds_nothing(void **state)
{
	struct hosts *empty = (struct hosts *)&error;

	(void)state;
	assert_int_equal(hosts_new(&empty, NULL, 0, error, sizeof(error)), 0);
	assert_null(empty);
	assert_false(hosts_contain(empty, "example.com"));
	hosts_free(empty);
}

static void test_a_name_is_itself_alone(void **state)
{
	(void)state;
	LIST("example.com");
	assert_true(hosts_contain(hosts, "example.com"));
	assert_false(hosts_contain(hosts, "www.example.com"));
	assert_false(hosts_contain(hosts, "com"));
	assert_false(hosts_contain(hosts, "example.com.evil.net"));
	assert_false(hosts_contain(hosts, "example.co"));
}

static void test_a_dot_in_front_means_all_below_too(void **state)
{
	(void)state;
	LIST(".example.com");
	assert_true(hosts_contain(hosts, "example.com"));
	assert_true(hosts_contain(hosts, "www.example.com"));
	assert_true(hosts_contain(hosts, "a.b.c.example.com"));
	assert_false(hosts_contain(hosts, "notexample.com"));
	assert_false(hosts_contain(hosts, "com"));
	assert_false(hosts_contain(hosts, "example.com.evil.net"));
}

static void test_a_name_may_stand_there_in_both_ways(void **state)
{
	(void)state;
	LIST("example.com", ".example.com");
	assert_true(hosts_contain(hosts, "www.example.com"));
	LIST(".example.com", "example.com");
	assert_true(hosts_contain(hosts, "www.example.com"));
}

static void test_names_are_canonical_like_those_of_targets(void **state)
{
	(void)state;
	LIST("Example.COM.", ".Sub.Example.ORG.");
	assert_true(hosts_contain(hosts, "example.com"));
	assert_true(hosts_contain(hosts, "x.sub.example.org"));
	assert_false(hosts_contain(hosts, "example.org"));
}

static void test_networks_hold_the_addresses_in_them(void **state)
{
	(void)state;
	LIST("203.0.113.77/25", "198.51.100.1", "2001:db8::/33", "2001:DB8:ffff::1");
	assert_true(hosts_contain(hosts, "203.0.113.0"));
	assert_true(hosts_contain(hosts, "203.0.113.127"));
	assert_false(hosts_contain(hosts, "203.0.113.128"));
	assert_true(hosts_contain(hosts, "198.51.100.1"));
	assert_false(hosts_contain(hosts, "198.51.100.2"));
	assert_true(hosts_contain(hosts, "2001:db8:7fff::1"));
	assert_false(hosts_contain(hosts, "2001:db8:8000::1"));
	assert_true(hosts_contain(hosts, "2001:db8:ffff::1"));
	assert_false(hosts_contain(hosts, "2001:db8:ffff::2"));
	assert_false(hosts_contain(hosts, "example.com"));
}

static void test_a_network_of_all_addresses_is_of_one_family(void **state)
{
	(void)state;
	LIST("0.0.0.0/0");
	assert_true(hosts_contain(hosts, "203.0.113.9"));
	assert_false(hosts_contain(hosts, "2001:db8::1"));
	assert_false(hosts_contain(hosts, "example.com"));
	LIST("::/0");
	assert_true(hosts_contain(hosts, "2001:db8::1"));
	assert_false(hosts_contain(hosts, "203.0.113.9"));
}

/* A deny list must not be walked around by another way to write its addresses. */
static void test_ipv4_inside_ipv6_is_held_like_itself(void **state)
{
	static const char *const inside[] = {"::ffff:203.0.113.9", "64:ff9b::cb00:7109",
					     "2002:cb00:7109::1", "::cb00:7109"};
	static const char *const outside[] = {"::ffff:198.51.100.9", "64:ff9b::c633:6409",
					      "2002:c633:6409::1", "2001:db8::cb00:7109"};

	(void)state;
	LIST("203.0.113.0/24");
	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
		if (!hosts_contain(hosts, inside[i]))
			fail_msg("%s", inside[i]);
		if (hosts_contain(hosts, outside[i]))
			fail_msg("%s", outside[i]);
	}
}

static void test_what_is_no_target_is_refused_and_shown(void **state)
{
	static const char *const texts[] = {"",
					    ".",
					    "..a",
					    "a..b",
					    "*.a.com",
					    "a.com/8",
					    "1.2.3.4/33",
					    ".1.2.3.4",
					    "1.2.3",
					    "a.com:80",
					    "http://a.com",
					    "[::1]",
					    "1.2.3.4/",
					    "b\303\274cher.de",
					    "a b"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct hosts *none = NULL;

		error[0] = '\0';
		if (hosts_new(&none, &texts[i], 1, error, sizeof(error)) != -EINVAL || none)
			fail_msg("'%s' is taken", texts[i]);
		assert_non_null(strstr(error, "is no target"));
	}
}

static void test_a_long_list_answers_all_the_same(void **state)
{
	static char names[4096][32];
	static const char *texts[4096];

	(void)state;
	for (size_t i = 0; i < 4096; i++) {
		if (i % 2)
			snprintf(names[i], sizeof(names[i]), ".n%zu.example", i);
		else
			snprintf(names[i], sizeof(names[i]), "10.0.%zu.0/28", i / 16);
		texts[i] = names[i];
	}
	make_list(texts, 4096);
	assert_true(hosts_contain(hosts, "www.n4095.example"));
	assert_false(hosts_contain(hosts, "www.n4094.example"));
	assert_true(hosts_contain(hosts, "10.0.255.15"));
	assert_false(hosts_contain(hosts, "10.0.255.16"));
}

/* --- ports -------------------------------------------------------------------------------------------------------- */

static void check_range(struct ports *ports, unsigned first, unsigned last)
{
	for (unsigned port = 0; port <= UINT16_MAX; port++)
		if (ports_contain(ports, (uint16_t)port) != (port >= first && port <= last))
			fail_msg("%u", port);
}

static void test_ports_are_single_or_in_ranges(void **state)
{
	static const struct {
		const char *text;
		unsigned first, last;
	} rows[] = {{"443", 443, 443},     {"8000-8999", 8000, 8999},
		    {"1-65535", 1, 65535}, {"65535", 65535, 65535},
		    {"1", 1, 1},           {"80-80", 80, 80}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ports ports = {0};

		assert_int_equal(ports_add(&ports, rows[i].text, error, sizeof(error)), 0);
		check_range(&ports, rows[i].first, rows[i].last);
	}
}

static void test_ports_add_up(void **state)
{
	struct ports ports = {0};

	(void)state;
	assert_int_equal(ports_add(&ports, "80", error, sizeof(error)), 0);
	assert_int_equal(ports_add(&ports, "443", error, sizeof(error)), 0);
	assert_true(ports_contain(&ports, 80));
	assert_true(ports_contain(&ports, 443));
	assert_false(ports_contain(&ports, 81));
}

static void test_what_is_no_port_is_refused_and_shown(void **state)
{
	static const char *const texts[] = {
	    "",         "0",     "65536",   "443x", "-",
	    "80-",      "-80",   "90-80",   "0-80", "+80",
	    " 80",      "080",   "1-65536", "http", "99999999999999999999",
	    "80-90-95", "80,443"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct ports ports = {0};

		error[0] = '\0';
		if (ports_add(&ports, texts[i], error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' is taken", texts[i]);
		assert_non_null(strstr(error, "is no port"));
		check_range(&ports, 1, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_empty_list_holds_nothing),
	    cmocka_unit_test(test_a_name_is_itself_alone),
	    cmocka_unit_test(test_a_dot_in_front_means_all_below_too),
	    cmocka_unit_test(test_a_name_may_stand_there_in_both_ways),
	    cmocka_unit_test(test_names_are_canonical_like_those_of_targets),
	    cmocka_unit_test(test_networks_hold_the_addresses_in_them),
	    cmocka_unit_test(test_a_network_of_all_addresses_is_of_one_family),
	    cmocka_unit_test(test_ipv4_inside_ipv6_is_held_like_itself),
	    cmocka_unit_test(test_what_is_no_target_is_refused_and_shown),
	    cmocka_unit_test(test_a_long_list_answers_all_the_same),
	    cmocka_unit_test(test_ports_are_single_or_in_ranges),
	    cmocka_unit_test(test_ports_add_up),
	    cmocka_unit_test(test_what_is_no_port_is_refused_and_shown),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
