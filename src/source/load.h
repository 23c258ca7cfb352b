/* load.h - a proxy list into a pool: read to its end, then applied. */
#ifndef FAIRLEAD_SOURCE_LOAD_H
#define FAIRLEAD_SOURCE_LOAD_H

#include <stdint.h>

#include "base/endpoint.h"
#include "pool/change.h"

struct load;

/* What a reading found. `first_*`: of each verdict the first entry, its text with secrets masked (NULL: none). */
struct load_summary {
	uint64_t counts[VERDICT_COUNT];
	struct {
		uint64_t line;
		char *text;
	} first[VERDICT_COUNT];
};

/* An empty load. `rules` is copied. 0 or -ENOMEM. */
MUST_USE int load_new(struct load **ret, const struct endpoint_rules *rules);
void load_free(struct load *load);

/* Reads a whole list from `fd` (a regular file, a pipe); its entries join what the load holds. 0, or -errno: not readable
 * (-EISDIR ...), -EFBIG (over 1 GiB), -ENOBUFS (over 2,000,000 entries). */
MUST_USE int load_read(struct load *load, int fd);

/* Adds one entry that was named by hand; `direct://` is welcome here. 0, an enum verdict, or -ENOMEM. */
MUST_USE int load_add(struct load *load, const char *text);

/* The same from a file, which must be a regular one: a pipe could hold up a node for ever. -EINVAL for others. */
MUST_USE int load_read_file(struct load *load, const char *path);

const struct load_summary *load_summary(const struct load *load);

/* How many different endpoints it holds. */
size_t load_count(const struct load *load);
const struct endpoint *load_at(const struct load *load, size_t index);

/* What became of them, by enum placed. */
struct load_result {
	uint64_t placed[PLACED_REMOVED + 1];
};

/* `result`: 0, or a store's reason with its error; `done` tells how far it came. */
typedef void load_cb(int result, const char *error, const struct load_result *done, void *arg);

/* Applies `change` (CHANGE_ADD or CHANGE_CANDIDATE) to all of it, in batches, in order. The pool's rules must have been
 * read: its salt makes the identifiers. The load must outlive the callback. 0 if queued, else -errno. */
MUST_USE int load_apply(struct load *load, struct pool *pool, enum change change,
			const char *source, load_cb *cb, void *arg);

#endif
