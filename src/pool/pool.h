/* pool.h - one pool of proxies in the store: its rules, and who may be used.
 *
 * `struct pool` belongs to one process and one loop; what it holds is a copy of what Redis says. */
#ifndef FAIRLEAD_POOL_POOL_H
#define FAIRLEAD_POOL_POOL_H

#include <stdbool.h>

#include "pool/rules.h"
#include "store/keys.h"
#include "store/store.h"

struct pool;

/* The pool whose sorted set is `name`. Asks the store for nothing yet. 0, -ENOMEM, or -EINVAL with a line in `error`. */
MUST_USE int pool_new(struct pool **ret, struct loop *loop, struct store *store, const char *name,
		      char *error, size_t error_size);

/* After store_free(), which ends what is under way. Accepts NULL. */
void pool_free(struct pool *pool);

const char *pool_name(const struct pool *pool);
const struct pool_keys *pool_keys(const struct pool *pool);
struct store *pool_store(const struct pool *pool);

/* The rules as last read; the defaults before. */
const struct pool_rules *pool_rules(const struct pool *pool);

/* A newer node has written the pool, as far as its rules were read: nothing is written any more. */
bool pool_is_newer(const struct pool *pool);

/* What the store said when an allocation last failed; "" = nothing. */
const char *pool_last_error(const struct pool *pool);

/* 0, REASON_STORE_NEWER (a newer node wrote this pool: nothing may be written), or a store's reason with its error
 * in `error` ("" if it gave none). */
typedef void pool_cb(int result, const char *error, void *arg);

/* Reads the rules. 0 if queued, else -errno. */
MUST_USE int pool_read_rules(struct pool *pool, pool_cb *cb, void *arg);

/* Makes sure that the pool has a salt and the wire version, sets `count` rules (names and values already checked), and
 * reads the rules back. */
MUST_USE int pool_write_rules(struct pool *pool, const struct word *names_and_values, size_t count,
			      pool_cb *cb, void *arg);

#endif
