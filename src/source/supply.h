/* supply.h - one reading of a source into a pool, by difference: newcomers join, what stays is left alone, what is
 * gone leaves after a grace period.
 *
 * Which members a source names stands in their records in the store, so that a restart forgets nothing but since when
 * a member has been missing. */
#ifndef FAIRLEAD_SOURCE_SUPPLY_H
#define FAIRLEAD_SOURCE_SUPPLY_H

#include "source/apply.h"

struct supply;

/* What a supply did. */
struct supply_result {
	uint64_t joined, candidates, known, missing, left;
};

/* `result`: 0, or a store's reason with its error. */
typedef void supply_cb(int result, const char *error, const struct supply_result *done, void *arg);

/* The source `name` (copied) of `pool`, whose entries with a tag's `value` (copied; NULL: all) are meant. 0 or -ENOMEM. */
MUST_USE int supply_new(struct supply **ret, struct loop *loop, struct pool *pool, const char *name,
			enum apply_tag tag, const char *value);

/* After store_free(), which ends what is under way. Accepts NULL. */
void supply_free(struct supply *supply);

/* Brings the pool in line with `load`, which outlives the callback; newcomers are eligible at once if `is_admitting`, else
 * candidates. Members missing for `grace_ms` leave the source. `cb` runs
 * once, never before this returns. One at a time. 0 or -errno. */
MUST_USE int supply_run(struct supply *supply, const struct load *load, bool is_admitting,
			int64_t grace_ms, supply_cb *cb, void *arg);

/* Lets go of the members whose grace has passed since; `cb` as above. 0 if under way, -ENOENT: there is none yet. */
MUST_USE int supply_release(struct supply *supply, int64_t grace_ms, supply_cb *cb, void *arg);

/* When the next member's grace passes; INT64_MAX: none is missing. */
int64_t supply_due_ms(const struct supply *supply, int64_t grace_ms);

struct pool *supply_pool(const struct supply *supply);
const char *supply_value(const struct supply *supply);

#endif
