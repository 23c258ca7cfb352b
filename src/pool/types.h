/* types.h - does each key of a pool hold what belongs there? */
#ifndef FAIRLEAD_POOL_TYPES_H
#define FAIRLEAD_POOL_TYPES_H

#include "pool/pool.h"

/* Asks for the types of all keys, changing nothing. `cb`: 0; or REASON_STORE_REFUSED with "WRONGTYPE the key ... "
 * for the first that holds something else; or another store's reason. 0 if queued, else -errno. */
MUST_USE int pool_check_types(struct pool *pool, pool_cb *cb, void *arg);

#endif
