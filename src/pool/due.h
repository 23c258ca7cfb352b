/* due.h - whose check is due: each member is given to one checker of all nodes (docs/wire.md, "due"). */
#ifndef FAIRLEAD_POOL_DUE_H
#define FAIRLEAD_POOL_DUE_H

#include "pool/member.h"
#include "pool/pool.h"

#define DUE_MAX ((size_t)128)

/* `result`: 0 with `count` members to be checked now (references are the callee's; a member that cannot be read is passed
 * over and told as a report), and in how many ms the next one is due (-1: none is); or a store's reason. */
typedef void due_cb(int result, struct member **members, size_t count, int64_t next_ms, void *arg);

/* Takes up to `count` members whose check is due; nobody else gets them for `lease_ms`. 0 if queued, else -errno. */
MUST_USE int pool_due_take(struct pool *pool, size_t count, int64_t lease_ms, due_cb *cb,
			   void *arg);

/* Gives back members that were taken and not probed: due at once. Nothing waits for it. */
void pool_due_return(struct pool *pool, struct member *const *members, size_t count);

/* Walks a slice of the pool and its parked members, and makes due, spread over `spread_ms`, those that are in
 * nobody's list (foreign hands, older nodes); forgets those that are no members any more; parks members whose
 * `expires_at` has passed, and drops them a day later. Call from time to time; `cb` tells whether the walk is
 * complete. */
typedef void due_mend_cb(int result, bool is_complete, void *arg);
MUST_USE int pool_due_mend(struct pool *pool, int64_t spread_ms, due_mend_cb *cb, void *arg);

#endif
