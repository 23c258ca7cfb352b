/* branches.h - the pools that sources have split a pool into: NAME.TAG for each tag in its rules (docs/wire.md). */
#ifndef FAIRLEAD_POOL_BRANCHES_H
#define FAIRLEAD_POOL_BRANCHES_H

#include "pool/pool.h"

/* Asks for the rules; `cb` gets them for branches_each(). 0 if queued, else -errno. */
MUST_USE int branches_ask(struct pool *pool, store_cb *cb, void *arg);

/* Calls `each` for every tag in the answer, which is not terminated and not empty; the same tag may come from several
 * sources. */
void branches_each(const struct reply *rules, void (*each)(const char *tag, size_t len, void *arg),
		   void *arg);

#endif
