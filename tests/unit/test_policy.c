/* test_policy.c - which targets, members and clients are admitted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gateway/policy.h"

static bool admits(const struct policy *policy, const char *text, uint16_t port, bool is_target,
		   bool allow_members)
{
	struct address address;

	assert_int_equal(address_parse(&address, text, strlen(text)), 0);
	return policy_admits(policy, &address, port, is_target, allow_members);
}

static void own(struct policy *policy, const char *text)
{
	assert_int_equal(net_place_parse(&policy->own[policy->own_count++], text), 0);
}

static void test_special_purpose_targets_are_prohibited(void **state)
{
	static const struct {
		const char *host;
		int result;
	} rows[] = {
	    {"93.184.216.34", 0},
	    {"2606:4700::1111", 0},
	    {"example.com", 0},
	    {"127.0.0.1", REASON_TARGET_PROHIBITED},
	    {"10.1.2.3", REASON_TARGET_PROHIBITED},
	    {"169.254.169.254", REASON_TARGET_PROHIBITED},
	    {"0.0.0.0", REASON_TARGET_PROHIBITED},
	    {"::1", REASON_TARGET_PROHIBITED},
	    {"::", REASON_TARGET_PROHIBITED},
	    {"fd00::1", REASON_TARGET_PROHIBITED},
	    {"::ffff:10.0.0.1", REASON_TARGET_PROHIBITED},
	    {"64:ff9b::7f00:1", REASON_TARGET_PROHIBITED},
	    {"localhost", REASON_TARGET_PROHIBITED},
	    {"a.localhost", REASON_TARGET_PROHIBITED},
	    {"notlocalhost", 0},
	};
	struct policy policy = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (policy_target(&policy, rows[i].host, 80) != rows[i].result)
			fail_msg("%s", rows[i].host);
}

static void test_networks_open_what_they_contain_and_nothing_else(void **state)
{
	struct network network;
	struct policy policy = {.targets = &network, .target_count = 1};

	(void)state;
	assert_int_equal(network_parse(&network, "10.1.0.0/16", 11), 0);
	assert_int_equal(policy_target(&policy, "10.1.255.1", 80), 0);
	assert_int_equal(policy_target(&policy, "10.2.0.1", 80), REASON_TARGET_PROHIBITED);
	assert_int_equal(policy_target(&policy, "127.0.0.1", 80), REASON_TARGET_PROHIBITED);
	/* Two switches for two risks: targets say nothing of members. */
	assert_false(admits(&policy, "10.1.0.1", 80, false, false));
	assert_true(admits(&policy, "10.1.0.1", 80, true, false));
}

static void test_the_rule_of_the_pool_admits_members_but_no_targets(void **state)
{
	struct policy policy = {0};

	(void)state;
	assert_true(admits(&policy, "10.0.0.1", 3128, false, true));
	assert_false(admits(&policy, "10.0.0.1", 3128, false, false));
	assert_false(admits(&policy, "10.0.0.1", 3128, true, true));
	policy.allow_private = true;
	assert_true(admits(&policy, "10.0.0.1", 3128, false, false));
	assert_true(admits(&policy, "10.0.0.1", 3128, true, false));
	assert_int_equal(policy_target(&policy, "localhost", 80), 0);
}

static void test_own_listeners_are_never_reached(void **state)
{
	struct policy policy = {.allow_private = true};

	(void)state;
	own(&policy, "127.0.0.1:8888");
	own(&policy, "[::1]:8889");
	own(&policy, "203.0.113.9:80");
	own(&policy, "unix:/run/x.sock");
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8888), REASON_REQUEST_LOOP);
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8889), 0);
	assert_int_equal(policy_target(&policy, "::1", 8889), REASON_REQUEST_LOOP);
	assert_int_equal(policy_target(&policy, "203.0.113.9", 80), REASON_REQUEST_LOOP);
	assert_false(admits(&policy, "127.0.0.1", 8888, true, false));
	assert_false(admits(&policy, "127.0.0.1", 8888, false, true));
}

static void test_a_wildcard_listener_is_reached_at_every_local_address(void **state)
{
	static const char *const wildcards[] = {"0.0.0.0:8888", "[::]:8888"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct policy policy = {.allow_private = true};

		own(&policy, wildcards[i]);
		assert_int_equal(policy_target(&policy, "127.0.0.1", 8888), REASON_REQUEST_LOOP);
		assert_int_equal(policy_target(&policy, "10.0.0.1", 8888), REASON_REQUEST_LOOP);
		assert_int_equal(policy_target(&policy, "127.0.0.1", 8887), 0);
	}
}

/* IPv4 inside IPv6 is unwrapped: ::ffff:127.0.0.1 reaches the same socket. 0.0.0.0 reaches loopback on Linux. */
static void test_other_spellings_of_an_own_address_are_own(void **state)
{
	struct policy policy = {.allow_private = true};

	(void)state;
	own(&policy, "127.0.0.1:8888");
	own(&policy, "[::1]:8888");
	assert_int_equal(policy_target(&policy, "::ffff:127.0.0.1", 8888), REASON_REQUEST_LOOP);
	assert_int_equal(policy_target(&policy, "0.0.0.0", 8888), REASON_REQUEST_LOOP);
	assert_int_equal(policy_target(&policy, "::", 8888), REASON_REQUEST_LOOP);
}

/* With --allow-private the name is resolved by a member, which may stand on this very host. */
static void test_localhost_with_an_own_port_is_own(void **state)
{
	struct policy policy = {.allow_private = true};

	(void)state;
	own(&policy, "127.0.0.1:8888");
	assert_int_equal(policy_target(&policy, "localhost", 8888), REASON_REQUEST_LOOP);
	assert_int_equal(policy_target(&policy, "localhost", 80), 0);
}

static void test_the_demonstration_opens_its_very_addresses(void **state)
{
	struct policy policy = {.is_demo = true};

	(void)state;
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8889), 0);
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8890), REASON_TARGET_PROHIBITED);
	assert_int_equal(policy_target(&policy, "127.0.0.2", 8889), REASON_TARGET_PROHIBITED);
	assert_true(admits(&policy, "127.0.0.11", 8901, false, false));
	assert_true(admits(&policy, "127.0.0.13", 8901, false, false));
	assert_false(admits(&policy, "127.0.0.14", 8901, false, false));
	assert_false(admits(&policy, "127.0.0.11", 8902, false, false));
	assert_false(admits(&policy, "127.0.0.11", 8901, true, false));
}

static void test_clients_of_open_listeners_need_a_network(void **state)
{
	struct network network;
	struct policy policy = {.clients = &network, .client_count = 1};
	struct net_place inside, outside, unix_peer;

	(void)state;
	assert_int_equal(network_parse(&network, "10.0.0.0/8", 10), 0);
	assert_int_equal(net_place_parse(&inside, "10.9.9.9:5"), 0);
	assert_int_equal(net_place_parse(&outside, "11.0.0.1:5"), 0);
	assert_int_equal(net_place_parse(&unix_peer, "unix:/x"), 0);
	assert_true(policy_client(&policy, (struct sockaddr *)&inside.sa, false, false));
	assert_false(policy_client(&policy, (struct sockaddr *)&outside.sa, false, false));
	assert_false(policy_client(&policy, (struct sockaddr *)&unix_peer.sa, false, false));
	assert_true(policy_client(&policy, (struct sockaddr *)&outside.sa, true, false));
	/* Credentials do not open what networks close; alone they open everything. */
	assert_false(policy_client(&policy, (struct sockaddr *)&outside.sa, false, true));
	policy.client_count = 0;
	assert_false(policy_client(&policy, (struct sockaddr *)&inside.sa, false, false));
	assert_true(policy_client(&policy, (struct sockaddr *)&inside.sa, false, true));
}

static void test_lists_of_targets_come_before_addresses(void **state)
{
	static const char *const allowed[] = {".good.test", "10.0.0.1"}, *const denied[] = {
									     "bad.good.test"};
	struct hosts *allow, *deny;
	struct ports ports = {0};
	struct policy policy = {.ports = &ports, .is_demo = true};
	char error[200];

	(void)state;
	assert_int_equal(ports_add(&ports, "443", error, sizeof error), 0);
	assert_int_equal(hosts_new(&allow, allowed, 2, error, sizeof error), 0);
	assert_int_equal(hosts_new(&deny, denied, 1, error, sizeof error), 0);
	policy.allow_hosts = allow;
	policy.deny_hosts = deny;
	assert_int_equal(policy_target(&policy, "a.good.test", 443), 0);
	assert_int_equal(policy_target(&policy, "a.good.test", 80), REASON_PORT_DENIED);
	assert_int_equal(policy_target(&policy, "bad.good.test", 443), REASON_HOST_DENIED);
	assert_int_equal(policy_target(&policy, "other.test", 443), REASON_HOST_DENIED);
	assert_int_equal(policy_target(&policy, "10.0.0.1", 443), REASON_TARGET_PROHIBITED);
	/* The demonstration's origin, by its exact address. */
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8889), 0);
	assert_int_equal(policy_target(&policy, "127.0.0.1", 8890), REASON_HOST_DENIED);
	hosts_free(allow);
	hosts_free(deny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lists_of_targets_come_before_addresses),
	    cmocka_unit_test(test_special_purpose_targets_are_prohibited),
	    cmocka_unit_test(test_networks_open_what_they_contain_and_nothing_else),
	    cmocka_unit_test(test_the_rule_of_the_pool_admits_members_but_no_targets),
	    cmocka_unit_test(test_own_listeners_are_never_reached),
	    cmocka_unit_test(test_a_wildcard_listener_is_reached_at_every_local_address),
	    cmocka_unit_test(test_other_spellings_of_an_own_address_are_own),
	    cmocka_unit_test(test_localhost_with_an_own_port_is_own),
	    cmocka_unit_test(test_the_demonstration_opens_its_very_addresses),
	    cmocka_unit_test(test_clients_of_open_listeners_need_a_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
