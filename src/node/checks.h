/* checks.h - the checker of a keeper: a schedule for its pool, and one for each pool that sources have split it into. */
#ifndef FAIRLEAD_NODE_CHECKS_H
#define FAIRLEAD_NODE_CHECKS_H

#include "base/conf.h"
#include "pool/pool.h"

struct checks;

/* Is the configuration fit for a checker? 0, or -errno with a line in `error` that names the setting. */
MUST_USE int checks_check(const struct conf *conf, char *error, size_t size);

/* Nothing is checked yet. 0 or -ENOMEM. */
MUST_USE int checks_new(struct checks **ret, struct loop *loop, struct store *store,
			struct pool *pool);

/* Checks from now on as `conf` says, or not at all if it says so; what is under way by another configuration is given up.
 * The pool's rules have been read. 0, or -errno with a line in `error`. */
MUST_USE int checks_begin(struct checks *checks, const struct conf *conf, char *error, size_t size);

/* Gives up what is under way: before store_free(). Accepts NULL. */
void checks_end(struct checks *checks);

/* After store_free(). Accepts NULL. */
void checks_free(struct checks *checks);

/* Of the pool whose last verdict is oldest; 0: none is expected. */
int64_t checks_age_ms(const struct checks *checks);

/* How checks are made, for the greeting. */
void checks_print(const struct pool *pool, const struct conf *conf, char *buffer, size_t size);

#endif
