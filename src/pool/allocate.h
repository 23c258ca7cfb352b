/* allocate.h - take the eligible member with the fewest recorded allocations (docs/wire.md).
 *
 * At most one call is in flight for a pool and process; what is asked for meanwhile is the next call. Every member that
 * the store hands out is an allocation and counted, also when nobody waits for it any more. */
#ifndef FAIRLEAD_POOL_ALLOCATE_H
#define FAIRLEAD_POOL_ALLOCATE_H

#include <sys/queue.h>

#include "pool/member.h"
#include "pool/pool.h"

#define ALLOCATE_MAX 256 /* of one call */
#define AVOID_MAX 64

/* `result`:
 *   0                         and a member; the callee takes over its reference
 *   REASON_MEMBER_UNREADABLE  and a member that cannot be used; likewise. Avoid it and ask again
 *   REASON_POOL_EMPTY         nothing is eligible (or all of it is to be avoided): make no request
 *   REASON_STORE_*            as store.h says; REASON_STORE_UNKNOWN only after a second try */
struct allocation;
typedef void allocation_cb(int result, struct member *member, struct allocation *allocation);

/* Stands inside whoever asks. */
struct allocation {
	TAILQ_ENTRY(allocation) link;
	allocation_cb *cb;
	struct pool *pool; /* NULL: not under way */
	void *batch;       /* the call it is part of, or NULL while it waits */
	struct member *const
	    *avoid; /* of pool_allocate_except(); the caller's until the callback */
	size_t avoid_count;
	bool is_repeated; /* asked for once more after an answer was lost */
};

/* Asks for one member. `cb` runs once, never before this returns. */
void pool_allocate(struct pool *pool, struct allocation *allocation, allocation_cb *cb);

/* Asks for one member that is none of `avoid` (at most AVOID_MAX), which stays as it is until the callback. 0 if
 * queued, else -errno. */
MUST_USE int pool_allocate_except(struct pool *pool, struct allocation *allocation,
				  struct member *const *avoid, size_t count, allocation_cb *cb);

/* `cb` will not run. Accepts one that is not under way. */
void pool_allocate_cancel(struct allocation *allocation);

#endif
