/* limit.h - how many requests at a time, and how many a second: of one client, to one target host.
 *
 * Counted in this process, or (is_shared) in Redis over all processes of the pool. What a process holds in Redis runs out
 * by itself when the process dies; while it lives it is renewed. */
#ifndef FAIRLEAD_POOL_LIMIT_H
#define FAIRLEAD_POOL_LIMIT_H

#include "pool/pool.h"

struct limits;

struct limits_config {
	int64_t client_concurrent, client_rate, host_concurrent, host_rate; /* 0: none */
	bool is_shared;
};

/* `pool` (whose keys are used) may be NULL if nothing is shared. 0 or -errno. */
MUST_USE int limits_new(struct limits **ret, struct loop *loop, struct pool *pool);

/* After store_free(), which ends what is under way, and before pool_free(). Tickets may still be held, and returned later.
 * Accepts NULL. */
void limits_free(struct limits *limits);

/* What holds from the next request on. What was let in without a limit is not counted when one comes. */
void limits_set(struct limits *limits, const struct limits_config *config);

/* Stands inside whoever asks; all zero when it holds nothing. */
struct ticket;
typedef void limit_cb(int result, int64_t retry_after_ms, struct ticket *ticket);
struct ticket {
	struct limits *limits; /* NULL: holds nothing and waits for nothing */
	limit_cb *cb;
	void *call;   /* in Redis: the question, then what is held */
	void *client; /* in this process: what is held */
	void *host;
};

/* Asks for one request of `client` to `host`, names of any bytes that are compared as they are; both at once or neither.
 * Returns
 *   0             the ticket is held
 *   -EINPROGRESS  `cb` will run once, not before this returns, with 0 or a reason (-ECANCELED: the store ends)
 *   REASON_CLIENT_LIMIT, REASON_HOST_LIMIT, and in *ret_retry_after_ms a guess
 *   REASON_CLIENT_RATE, REASON_HOST_RATE, and in *ret_retry_after_ms when the rate will admit one more
 *   REASON_STORE_* (shared), -errno
 * After REASON_STORE_UNKNOWN the request may count for 30 seconds. */
MUST_USE int ticket_take(struct limits *limits, struct ticket *ticket, const char *client,
			 const char *host, limit_cb *cb, int64_t *ret_retry_after_ms);

/* Gives back what is held and forgets what is asked for; accepts a ticket that is neither. */
void ticket_return(struct ticket *ticket);

#endif
