/* sticky.h - sticky sessions: one member for all requests of a client that name the same session (docs/wire.md).
 *
 * All gateways share them through Redis. A session is created, looked up, moved and counted in one script; each
 * request on it is one allocation of its member. */
#ifndef FAIRLEAD_POOL_STICKY_H
#define FAIRLEAD_POOL_STICKY_H

#include "pool/allocate.h"

#define STICKY_NAME_MAX KEY_PART_MAX

struct sticky_request {
	const char *client;  /* account, 1..STICKY_NAME_MAX bytes; "" for nobody in particular */
	const char *session; /* id, 1..STICKY_NAME_MAX bytes */
	int64_t lifetime_ms; /* from this request on */
	int64_t max_ms;      /* from creation on */
	int64_t limit;       /* most live sessions of the client in this pool */
	bool is_strict; /* a member that is not eligible, or is to be avoided, is not replaced */
	struct member *const
	    *avoid; /* had before by this request; the caller's until the callback */
	size_t avoid_count;
};

/* `result` as allocation_cb, and besides
 *   REASON_SESSION_LOST   strict, and the pinned member is not eligible (any more) or is among `avoid`
 *   REASON_SESSION_LIMIT  the client has too many live sessions
 * `is_moved`: this call gave the session another member than it had (not known when the first answer was lost). */
struct sticky;
typedef void sticky_cb(int result, struct member *member, bool is_moved, struct sticky *sticky);

/* Stands inside whoever asks. */
struct sticky {
	sticky_cb *cb;
	void *call; /* NULL: not under way */
};

/* `cb` runs once, never before this returns; the names of `request` are copied. 0 if queued, else -errno (-EPERM: a
 * newer node has written the pool; -EINVAL: a name is too long, or the session has none). */
MUST_USE int pool_sticky(struct pool *pool, struct sticky *sticky,
			 const struct sticky_request *request, sticky_cb *cb);

/* `cb` will not run. Accepts one that is not under way. */
void pool_sticky_cancel(struct sticky *sticky);

#endif
