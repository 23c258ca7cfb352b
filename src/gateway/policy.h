/* policy.h - which targets and members may be reached. Pure. */
#ifndef FAIRLEAD_GATEWAY_POLICY_H
#define FAIRLEAD_GATEWAY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/net.h"
#include "base/result.h"
#include "gateway/hosts.h"

#define POLICY_OWN_MAX 80

struct policy {
	bool allow_private; /* targets and members in special-purpose ranges, everywhere */
	const struct network
	    *targets; /* special-purpose networks that clients may reach all the same */
	size_t target_count;
	const struct ports *ports;       /* of targets; NULL: all */
	const struct hosts *allow_hosts; /* NULL: all */
	const struct hosts *deny_hosts;  /* wins over allow_hosts; NULL: none */
	const struct network *clients;   /* who may use a listener that is not local */
	size_t client_count;
	bool is_demo; /* exactly the demonstration's own addresses are exempt */
	struct net_place own[POLICY_OWN_MAX]; /* our listeners and the store: never targets */
	size_t own_count;
};

/* May clients reach `host` (canonical) at `port`? 0, or
 *   REASON_REQUEST_LOOP       one of our own places
 *   REASON_HOST_DENIED, REASON_PORT_DENIED  the operator's lists say no
 *   REASON_TARGET_PROHIBITED  a special-purpose address */
MUST_USE int policy_target(const struct policy *policy, const char *host, uint16_t port);

/* May this address be connected to, as a member or (direct) as a target? `allow_members`: the pool's rule. */
bool policy_admits(const struct policy *policy, const struct address *address, uint16_t port,
		   bool is_target, bool allow_members);

/* May a client from `peer` be served? On a local listener all may; elsewhere those of the named networks, or all when none
 * is named and credentials are asked for. */
bool policy_client(const struct policy *policy, const struct sockaddr *peer, bool is_local,
		   bool needs_account);

#endif
