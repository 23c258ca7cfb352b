/* gateway.h - clients in, members out: the listeners of one process and all that happens behind them. */
#ifndef FAIRLEAD_GATEWAY_GATEWAY_H
#define FAIRLEAD_GATEWAY_GATEWAY_H

#include "gateway/policy.h"
#include "pool/pool.h"

struct gateway;

struct gateway_config {
	struct policy policy;
	const char *name; /* in Proxy-Status */
	bool has_access_log;
	int tries;
	int64_t connect_ms, dial_ms, head_ms, response_ms, idle_ms;
	size_t retry_body_bytes;
	int64_t retry_after_s;
	size_t max_clients;
	struct pool *pool; /* NULL: no pool; every request goes out through `upstream` */
	const struct endpoint *upstream; /* the demonstration's upstreams: a fixed direct member */
};

/* `config` is copied; what it points to outlives the gateway. 0 or -ENOMEM. */
MUST_USE int gateway_new(struct gateway **ret, struct loop *loop,
			 const struct gateway_config *config);

/* Serves the listening descriptor `fd`, which stays the caller's. 0 or -errno. */
MUST_USE int gateway_listen(struct gateway *gateway, int fd);

/* Stops accepting (the caller may close the listeners then), lets what is under way finish until `deadline_ms`, then ends it; `done` runs once, from the loop. */
void gateway_drain(struct gateway *gateway, int64_t deadline_ms, void (*done)(void *arg),
		   void *arg);

/* Ends everything at once. Accepts NULL. */
void gateway_free(struct gateway *gateway);

#endif
