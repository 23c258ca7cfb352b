/* lease.h - the right to use one member until a deadline (docs/wire.md, "Leases").
 *
 * A lease is live from the answer of pool_acquire() until lease_release(), or until its deadline has passed on the clock of
 * Redis. Whoever holds it alone knows its token; a stale token changes nothing. Leases that this process holds are renewed
 * by a timer of its own. */
#ifndef FAIRLEAD_POOL_LEASE_H
#define FAIRLEAD_POOL_LEASE_H

#include <sys/queue.h>

#include "pool/member.h"
#include "pool/pool.h"

#define LEASE_ID_MAX ((size_t)64)
#define LEASE_TOKEN_MAX ((size_t)64)

/* Stands inside whoever asks; all zero when it holds nothing and waits for nothing. */
struct lease;

/* `result`:
 *   0                         lease->member is to be used; the lease is held, and renewed until lease_release()
 *   REASON_MEMBER_UNREADABLE  lease->member cannot be used; the lease is held: avoid it, release, ask again
 *   REASON_POOL_EMPTY         nothing is eligible (or all of it is to be avoided): make no request
 *   REASON_LEASE_STALE        the lease of that id has been released already
 *   REASON_POOL_FULL          all are at their cap, and stayed so for wait_ms
 *   REASON_STORE_UNKNOWN      the answer was lost, or came too late, twice; what was granted runs out by itself
 *   REASON_STORE_*            as store.h says
 * lease->member is the lease's reference: it goes with lease_release(). */
typedef void lease_cb(int result, struct lease *lease, void *arg);

/* The lease is not ours any more: it has run out on the clock of Redis, or the store was away for too long. Whoever uses
 * the member may go on or stop; lease_release() is still due. */
typedef void lease_lost_cb(struct lease *lease, void *arg);

struct lease_request {
	int64_t ttl_ms;              /* 0: the pool's rule lease_ms */
	int64_t wait_ms;             /* how long to wait while all are at their cap */
	const char *id;              /* the operation's id; NULL: one is made up */
	struct member *only;         /* this member, which has been counted already; NULL: any */
	struct member *const *avoid; /* the caller's until the callback; at most AVOID_MAX */
	size_t avoid_count;
	lease_cb *cb;
	lease_lost_cb *lost; /* NULL: nobody wants to know */
	void *arg;
};

struct lease {
	TAILQ_ENTRY(lease) link;
	struct pool *pool; /* NULL: holds nothing and waits for nothing */
	struct lease_request request;
	void *call;            /* the question that is under way */
	struct member *member; /* of a lease that is held */
	int64_t ttl_ms;        /* by which it is renewed */
	int64_t deadline_ms;   /* of clock_ms(): it surely lives until then */
	int64_t wait_until_ms; /* of clock_ms(): while it stands in line */
	bool is_held, is_lost, is_waiting;
	char id[LEASE_ID_MAX + 1];
	char token[LEASE_TOKEN_MAX + 1];
};

/* Asks for a lease; `request` is copied, the member `only` referenced. `request.cb` runs once, never before this
 * returns. Whoever takes any member, and finds all at their cap, waits in order of arrival among those of this
 * process; whoever wants one, or avoids some, waits beside them. 0 if queued, else -errno. */
MUST_USE int pool_acquire(struct pool *pool, struct lease *lease,
			  const struct lease_request *request);

/* Ends the lease, or the asking for it: `cb` and `lost` will not run. What is granted after that is released at once.
 * Nobody waits: a release that cannot be said in time runs out. Releases of one turn are one call. Accepts one that
 * is all zero, and leaves it so. */
void lease_release(struct lease *lease);

/* Lets go of a lease that is held, and does not end it: it is in other hands, is renewed here no more, and lives until it is
 * released or runs out. Leaves it all zero. */
void lease_keep(struct lease *lease);

/* For commands, with ids and tokens from elsewhere: renews, or releases, one lease of `id` and `token`. `cb` gets 0,
 * REASON_LEASE_STALE, or a store's reason. 0 if queued, else -errno. */
MUST_USE int pool_lease_renew(struct pool *pool, const char *id, const char *token, int64_t ttl_ms,
			      pool_cb *cb, void *arg);
MUST_USE int pool_lease_release(struct pool *pool, const char *id, const char *token, pool_cb *cb,
				void *arg);

/* Leases that this process holds of the pool, for tests and metrics. */
size_t pool_leases_held(const struct pool *pool);

#endif
