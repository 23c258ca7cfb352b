/* source.h - a list that keeps a pool supplied: a file that is watched, or a URL that is fetched again and again.
 *
 * A reading that fails, is cut short, is no list or holds nothing changes nothing: the pool stays as it is, a warning says
 * why, and the age of the last good reading grows. */
#ifndef FAIRLEAD_SOURCE_SOURCE_H
#define FAIRLEAD_SOURCE_SOURCE_H

#include "source/load.h"

struct source;

enum source_split { SOURCE_SPLIT_NONE, SOURCE_SPLIT_COUNTRY, SOURCE_SPLIT_ANONYMITY };

struct source_config {
	const char *name;  /* as it stands in the members' records: letters, digits and . _ : / - */
	const char *place; /* the path of a file, or an http:// or https:// URL */
	struct endpoint_rules rules;
	enum list_format format;
	enum source_split split; /* entries with such a tag go into the pool "<pool>.<tag>", too */
	bool is_strict;          /* one rejected entry refuses the reading */
	bool is_admitting;       /* newcomers are eligible at once, else candidates */
	int64_t interval_ms;     /* of URLs, with a fifth of jitter */
	int64_t grace_ms;        /* how long a member that is named no more stays */
	int64_t timeout_ms;
	uint64_t max_bytes;
};

/* After the first attempt, whatever came of it. NULL: nobody waits for it. */
typedef void source_cb(struct source *source, void *arg);

/* `config` is copied, its texts too. `pool` is supplied from the first turn on. 0 or -ENOMEM. */
MUST_USE int source_new(struct source **ret, struct loop *loop, struct store *store,
			struct pool *pool, const struct source_config *config, source_cb *cb,
			void *arg);

/* After store_free(), which ends what is under way. Accepts NULL. */
void source_free(struct source *source);

/* Ends one while the others go on: what is being fetched is given up. False: it is at work in the store and lives on. */
MUST_USE bool source_end(struct source *source);

/* Reads all again, changed or not, now or as soon as what is under way has ended. */
void source_refresh(struct source *source);

bool source_is_url(const char *place);

/* Milliseconds since the last good reading, or since the beginning. */
int64_t source_age_ms(const struct source *source);

#endif
