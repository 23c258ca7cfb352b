/* pools.h - the pools of a gateway by alias: --pool under its own name, those of --alias, and what sources split off.
 *
 * A pool that was once known stays until the end, for exchanges may be using it; its alias may go. */
#ifndef FAIRLEAD_GATEWAY_POOLS_H
#define FAIRLEAD_GATEWAY_POOLS_H

#include "pool/pool.h"

#define POOLS_ALIAS_MAX 64

struct pools;

/* `first` is --pool; it stays its owner's, who also reads its rules. 0 or -ENOMEM. */
MUST_USE int pools_new(struct pools **ret, struct loop *loop, struct store *store,
		       struct pool *first);

/* After store_free(). Accepts NULL. */
void pools_free(struct pools *pools);

/* Replaces the aliases by `count` texts "ALIAS=POOL". All are looked at before anything changes. 0, -ENOMEM, or
 * -EINVAL with a line in `error`. */
MUST_USE int pools_set(struct pools *pools, const char *const *texts, size_t count, char *error,
		       size_t error_size);

/* The pool of that alias, or NULL. "" is --pool. */
struct pool *pools_find(struct pools *pools, const char *alias);

/* The rules of all pools have been read, or asked for in vain, once. */
bool pools_are_read(const struct pools *pools);

/* Sends what has gathered about traffic. */
void pools_send_traffic(struct pools *pools);

#endif
