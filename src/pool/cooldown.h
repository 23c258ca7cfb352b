/* cooldown.h - members that one target host has refused: avoided for that host, eligible for all others.
 *
 * A bounded table in the store, which each process keeps a copy of and reads again every second while it is used. */
#ifndef FAIRLEAD_POOL_COOLDOWN_H
#define FAIRLEAD_POOL_COOLDOWN_H

#include "pool/member.h"
#include "pool/pool.h"

/* `member` shall be avoided for `host` (canonical) from now on, as long as the pool's rule cooldown_ms says.
 * Gathered, nothing waits for it; this process knows at once. */
void pool_cooldown_add(struct pool *pool, const struct member *member, const char *host);

/* Is it to be avoided now, as far as this process knows? */
bool pool_cooldown_has(struct pool *pool, const struct member *member, const char *host);

#endif
