/* sweep.h - the janitor of a pool: the only place with periodic work on its leases.
 *
 * Collects leases that have run out, and walks pool and busy in slices, so that members that foreign hands have added
 * join `busy` and what is wrong there is mended. Any number of keepers may do so at a time. */
#ifndef FAIRLEAD_POOL_SWEEP_H
#define FAIRLEAD_POOL_SWEEP_H

#include "pool/pool.h"

struct sweep;

/* Begins; works only while the pool's policy is least-concurrent or leases are left. 0 or -ENOMEM. */
MUST_USE int pool_sweep_new(struct sweep **ret, struct loop *loop, struct pool *pool);

/* After store_free(). Accepts NULL. */
void pool_sweep_free(struct sweep *sweep);

#endif
