/* gateway.h - clients in, members out: the listeners of one process and all that happens behind them. */
#ifndef FAIRLEAD_GATEWAY_GATEWAY_H
#define FAIRLEAD_GATEWAY_GATEWAY_H

#include "base/listen.h"
#include "gateway/account.h"
#include "gateway/policy.h"
#include "gateway/pools.h"
#include "pool/limit.h"

struct gateway;
struct tls;

struct gateway_config {
	struct policy policy;
	const char *name; /* in Proxy-Status */
	bool has_access_log, has_member_header;
	int tries;
	int64_t lease_wait_ms; /* for a lease while all members are at their cap */
	int64_t tries_ms, connect_ms, dial_ms, head_ms, response_ms, idle_ms;
	size_t retry_body_bytes, body_rate; /* body_rate: bytes a second */
	int64_t retry_after_s;
	int64_t session_ms, session_max_ms, session_limit; /* of sticky sessions */
	size_t max_clients;
	struct pools *pools; /* NULL: no pool; every request goes out through `upstream` */
	const struct accounts *accounts; /* NULL: no client has to name itself */
	struct limits *limits;           /* NULL: none */
	struct tls *tls;                 /* for https members; NULL: they cannot be used */
	const struct endpoint *upstream; /* the demonstration's upstreams: a fixed direct member */
};

/* `config` is copied; what it points to outlives the gateway. 0 or -ENOMEM. */
MUST_USE int gateway_new(struct gateway **ret, struct loop *loop,
			 const struct gateway_config *config);

/* From the next step of each exchange on. What the old configuration points to may go afterwards, except its pools and
 * limits, which stay the same. */
void gateway_configure(struct gateway *gateway, const struct gateway_config *config);

/* Serves the listening descriptor `fd`, which stays the caller's. `spec`: what holds there, copied; NULL: nothing
 * special. 0 or -errno. */
MUST_USE int gateway_listen(struct gateway *gateway, int fd, const struct listen_spec *spec);

/* Stops accepting (the caller may close the listeners then), lets what is under way finish until `deadline_ms`, then
 * ends it; `done` runs once, from the loop. */
void gateway_drain(struct gateway *gateway, int64_t deadline_ms, void (*done)(void *arg),
		   void *arg);

/* Ends everything at once. Accepts NULL. */
void gateway_free(struct gateway *gateway);

#endif
