/* seek.h - a member for one use, and another when it fails: by allocation or by lease, as the pool's policy says;
 * never one that was had before; one that cools down for the host only if there is no other. */
#ifndef FAIRLEAD_POOL_SEEK_H
#define FAIRLEAD_POOL_SEEK_H

#include "pool/allocate.h"

struct lease;
struct seek;

/* `result`:
 *   0                         seek->member is to be used; under least-concurrent with a lease, held until the next one or seek_end()
 *   REASON_POOL_EMPTY         nothing is eligible, or all of it was had before: make no request
 *   REASON_POOL_FULL          all are at their cap, and stayed so for lease_wait_ms
 *   REASON_MEMBER_UNREADABLE  none of those that are eligible can be used
 *   REASON_STORE_*            as store.h says */
typedef void seek_cb(int result, struct seek *seek);

/* Stands inside whoever seeks; all zero at the beginning, but for these five. */
struct seek {
	struct pool *pool;
	const char *host; /* canonical, the caller's; NULL: nothing cools down */
	int64_t lease_wait_ms;
	seek_cb *cb;
	void *arg;
	struct allocation allocation;
	struct lease *lease;   /* of the member in use, or asked for; NULL: none */
	struct member *member; /* in use; NULL: none */
	struct member **avoid; /* had before, then passed over; each a reference */
	size_t avoid_count, passed_count;
	bool is_unreadable; /* one could not be used */
};

/* Asks for the first member, or, instead of the one in use, for another. `cb` runs once, never before this returns. 0, or
 * -ENOBUFS: no more can be noted (AVOID_MAX), -ENOMEM. */
MUST_USE int seek_next(struct seek *seek);

/* `cb` will not run; the lease ends. Of one that was never begun, or has ended: nothing. */
void seek_end(struct seek *seek);

#endif
