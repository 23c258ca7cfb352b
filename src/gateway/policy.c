/* policy.c - which targets and members may be reached. */
#include "gateway/policy.h"

#include <netinet/in.h>
#include <string.h>

#include "base/demo.h"

static bool is_text(const struct address *address, const char *text)
{
	struct address other;

	return !address_parse(&other, text, strlen(text)) && other.family == address->family &&
	       !memcmp(other.bytes, address->bytes, address->family == AF_INET ? 4 : 16);
}

static bool is_demo_member(const struct address *address, uint16_t port)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;

	for (int i = 0; i < DEMO_UPSTREAMS; i++)
		if (port == DEMO_UPSTREAM_PORT && is_text(address, hosts[i]))
			return true;
	return false;
}

static bool is_demo_target(const struct address *address, uint16_t port)
{
	return port == DEMO_ORIGIN_PORT && is_text(address, DEMO_ORIGIN_HOST);
}

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
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct address inner = {.family = AF_INET};

	if (address->family != AF_INET6 || memcmp(address->bytes, mapped, sizeof mapped))
		return *address;
	memcpy(inner.bytes, address->bytes + sizeof mapped, 4);
	return inner;
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

int policy_target(const struct policy *policy, const char *host, uint16_t port)
{
	struct address address;

	if (address_parse(&address, host, strlen(host))) {
		if (!is_local_name(host))
			return 0;
		if (address_parse(&address, "127.0.0.1", 9) || is_own(policy, &address, port))
			return REASON_REQUEST_LOOP;
		return policy->allow_private ? 0 : REASON_TARGET_PROHIBITED;
	}
	if (is_own(policy, &address, port))
		return REASON_REQUEST_LOOP;
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
		return allow_members || (policy->is_demo && is_demo_member(address, port));
	return is_in(policy->targets, policy->target_count, address) ||
	       (policy->is_demo && is_demo_target(address, port));
}

bool policy_client(const struct policy *policy, const struct sockaddr *peer, bool is_local_listener)
{
	struct address address;

	if (is_local_listener)
		return true;
	return !address_from_sockaddr(&address, peer) &&
	       is_in(policy->clients, policy->client_count, &address);
}
