/* policy.c - which targets and members may be reached. */
#include "gateway/policy.h"

#include <netinet/in.h>
#include <string.h>

#include "base/demo.h"

static bool is_in(const struct network *networks, size_t count, const struct address *address)
{
	for (size_t i = 0; i < count; i++)
		if (network_contains(&networks[i], address))
			return true;
	return false;
}

static bool is_zero(const struct address *address)
{
	static const struct address zero;

	return !memcmp(address->bytes, zero.bytes, sizeof zero.bytes);
}

/* IPv4 inside IPv6 as IPv4. */
static struct address unwrap(const struct address *address)
{
	struct address inner;

	return address_unwrap(address, &inner) ? inner : *address;
}

/* One of our own places: a wildcard listener answers on every local address, and the unspecified address as a target is this
 * host. */
static bool is_own(const struct policy *policy, const struct address *address, uint16_t port)
{
	struct address target = unwrap(address);

	for (size_t i = 0; i < policy->own_count; i++) {
		const struct sockaddr *sa = (const struct sockaddr *)&policy->own[i].sa;
		struct address own;

		/* The port has the same offset in both families. */
		if (address_from_sockaddr(&own, sa) ||
		    ntohs(((const struct sockaddr_in *)sa)->sin_port) != port)
			continue;
		own = unwrap(&own);
		if (own.family == target.family &&
		    !memcmp(own.bytes, target.bytes, sizeof own.bytes))
			return true;
		if (is_zero(&target) || (is_zero(&own) && address_is_special(address)))
			return true;
	}
	return false;
}

static bool is_local_name(const char *host)
{
	size_t len = strlen(host);

	return !strcmp(host, "localhost") || (len > 10 && !strcmp(host + len - 10, ".localhost"));
}

/* What the operator's lists say. The demonstration's origin is exempt by its exact address. */
static int judge_lists(const struct policy *policy, const char *host, uint16_t port,
		       const struct address *address)
{
	if (policy->is_demo && address && demo_is_origin(address, port))
		return 0;
	if (hosts_contain(policy->deny_hosts, host) ||
	    (policy->allow_hosts && !hosts_contain(policy->allow_hosts, host)))
		return REASON_HOST_DENIED;
	return policy->ports && !ports_contain(policy->ports, port) ? REASON_PORT_DENIED : 0;
}

int policy_target(const struct policy *policy, const char *host, uint16_t port)
{
	struct address address;
	bool is_address = !address_parse(&address, host, strlen(host));
	bool is_local = !is_address && is_local_name(host);
	int r;

	if (is_local && address_parse(&address, "127.0.0.1", 9))
		return REASON_INTERNAL;
	if ((is_address || is_local) && is_own(policy, &address, port))
		return REASON_REQUEST_LOOP;
	r = judge_lists(policy, host, port, is_address ? &address : NULL);
	if (r || (!is_address && !is_local))
		return r;
	if (is_local)
		return policy->allow_private ? 0 : REASON_TARGET_PROHIBITED;
	return policy_admits(policy, &address, port, true, false) ? 0 : REASON_TARGET_PROHIBITED;
}

bool policy_admits(const struct policy *policy, const struct address *address, uint16_t port,
		   bool is_target, bool allow_members)
{
	if (is_own(policy, address, port))
		return false;
	/* A member may be where a list may say that it is; a target stands in the public part of the Internet. */
	if (policy->allow_private ||
	    (is_target ? !address_is_special(address) : !address_is_bogon(address)))
		return true;
	if (!is_target)
		return allow_members || (policy->is_demo && demo_is_upstream(address, port));
	return is_in(policy->targets, policy->target_count, address) ||
	       (policy->is_demo && demo_is_origin(address, port));
}

bool policy_client(const struct policy *policy, const struct sockaddr *peer, bool is_local,
		   bool needs_account)
{
	struct address address;

	if (is_local || (needs_account && !policy->client_count))
		return true;
	return !address_from_sockaddr(&address, peer) &&
	       is_in(policy->clients, policy->client_count, &address);
}
