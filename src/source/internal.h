/* internal.h - what the files of a source share; nobody else includes it. */
#ifndef FAIRLEAD_SOURCE_INTERNAL_H
#define FAIRLEAD_SOURCE_INTERNAL_H

#include "base/alarm.h"
#include "fetch/fetch.h"
#include "source/file.h"
#include "source/source.h"
#include "source/supply.h"

#define BRANCHES_MAX 512

struct source {
	struct loop *loop;
	struct store *store;
	struct pool *pool;
	struct source_config config;
	char shown[256]; /* the place, without credentials */
	source_cb *cb;   /* NULL once the first attempt has ended */
	void *arg;
	struct alarm next; /* the next look at the place */
	struct alarm grace;
	struct file_state loaded, seen;
	char etag[256], modified[64];         /* of the last good reading */
	char new_etag[256], new_modified[64]; /* of the one under way */
	bool is_first;                        /* no attempt has ended yet */
	bool has_recalled;                    /* the branches of earlier runs */
	bool is_good;                         /* the last attempt was */
	struct fetch *fetch;
	struct load *load;
	struct supply *branches[BRANCHES_MAX]; /* the first is the pool itself */
	size_t branch_count, branch;
	bool is_busy, is_wanted_again;
	int64_t good_ms;
};

/* source.c: the end of an attempt, good, bad by its own fault, or by the store's. */
void source_end_attempt(struct source *source);
void source_fail(struct source *source, const char *why);
void source_fail_store(struct source *source, int result, const char *error);

/* spread.c: what source->load holds goes into the pool and its branches; ends in one of the above. */
void spread_begin(struct source *source);

#endif
