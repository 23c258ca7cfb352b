/* apply.h - what was read from lists becomes members, in batches, several of them under way at once. */
#ifndef FAIRLEAD_SOURCE_APPLY_H
#define FAIRLEAD_SOURCE_APPLY_H

#include "source/load.h"

/* What became of the entries, by enum placed. */
struct apply_result {
	uint64_t placed[PLACED_REMOVED + 1];
};

/* A tag that entries must have to be meant; NULL: all are. */
enum apply_tag { APPLY_COUNTRY, APPLY_ANONYMITY };

struct apply_request {
	const struct load *load; /* outlives the work, as all here does */
	struct pool *pool;       /* its rules have been read: its salt makes the identifiers */
	enum change change;      /* CHANGE_ADD, CHANGE_CANDIDATE or CHANGE_SUPPLY */
	const char *source;
	enum apply_tag tag;
	const char *value;  /* of the tag, in lower case; NULL: all entries */
	struct dedupe *ids; /* takes the identifiers of all that is meant; NULL: nobody asks */
	void (*progress)(size_t done, void *arg); /* NULL: nobody watches */
};

/* `result`: 0, or a store's reason with its error; `done` tells how far it came. */
typedef void apply_cb(int result, const char *error, const struct apply_result *done, void *arg);

/* Begins; `cb` runs once, never before this returns, not even when there is nothing to do. 0, or -ENOMEM. */
MUST_USE int apply_start(struct loop *loop, const struct apply_request *request, apply_cb *cb,
			 void *arg);

/* The value of an entry's tag in lower case into `buffer`; false: it has none that can name a pool. */
bool apply_tag_value(const struct dedupe_item *item, enum apply_tag tag, char *buffer, size_t size);

#endif
