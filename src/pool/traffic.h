/* traffic.h - bytes through each member and of each client, added up here and brought to Redis every 2 s (docs/wire.md).
 *
 * A lost answer is not repeated: a report may be missing, never counted twice. */
#ifndef FAIRLEAD_POOL_TRAFFIC_H
#define FAIRLEAD_POOL_TRAFFIC_H

#include "pool/pool.h"

/* The fields of the two hashes: `in:NAME` and `out:NAME`; in KEY_TRAFFIC those without a name are the sums over all
 * members. */
#define TRAFFIC_IN "in:"
#define TRAFFIC_OUT "out:"

/* Adds to what is reported next. `member`: identifier; `client`: account, or "" for none; bytes `in` towards the
 * target, `out` back to the client. A table that is full is brought to Redis early. */
void pool_traffic_add(struct pool *pool, const char *member, const char *client, uint64_t in,
		      uint64_t out);

/* Sends what has gathered; a timer calls it, and at the end of a service whoever runs it: before store_free(), with
 * turns of the loop until the store is not busy. */
void pool_traffic_send(struct pool *pool);

#endif
