/* holders.h - who holds leases, counted from the leases themselves; for people who look for what is wrong.
 *
 * `live` says the same by its own count. What is read here takes several calls: beside work that goes on the two may
 * differ for a moment. */
#ifndef FAIRLEAD_POOL_HOLDERS_H
#define FAIRLEAD_POOL_HOLDERS_H

#include "pool/pool.h"

#define HOLDERS_MAX ((size_t)10000)

struct holder_count {
	char *member;
	size_t member_len;
	int64_t leases;
};

/* `result`: 0 with a count for each member that has leases, in the order of holder_order(), valid until the callback
 * returns; or a store's reason with its error. `is_whole`: there are no more leases than HOLDERS_MAX, which were
 * looked at. */
typedef void holders_cb(int result, const char *error, const struct holder_count *counts,
			size_t count, bool is_whole, void *arg);
MUST_USE int pool_holders(struct pool *pool, holders_cb *cb, void *arg);

/* By bytes; of two struct holder_count, as qsort(3) wants it. */
int holder_order(const void *a, const void *b);

#endif
