/* resolve.h - names of proxies and of Redis to addresses, without blocking the loop.
 *
 * Names of targets never come here: the upstream resolves them. */
#ifndef FAIRLEAD_BASE_RESOLVE_H
#define FAIRLEAD_BASE_RESOLVE_H

#include "base/address.h"
#include "base/loop.h"
#include "base/result.h"

#define RESOLVE_MAX 8

/* `result`: 0 with 1..RESOLVE_MAX addresses, or -ENOENT (no such name), -EIO (no answer). */
typedef void resolve_cb(int result, const struct address *addresses, size_t count, void *arg);

struct resolve;

/* Looks up `host` (a name; /etc/hosts, then DNS). Returns 0 if queued (`*ret` may be cancelled until `cb` has run, which
 * is never before this returns), else -errno. */
MUST_USE int resolve_start(struct resolve **ret, struct loop *loop, const char *host,
			   resolve_cb *cb, void *arg);

/* `cb` will not run. Accepts NULL. */
void resolve_cancel(struct resolve *resolve);

#endif
