/* branches.c - the pools that sources have split a pool into. */
#include "pool/branches.h"

#include <string.h>

/* "branches:<source>": the tags of that source, separated by commas. */
#define FIELD "branches:"

int branches_ask(struct pool *pool, store_cb *cb, void *arg)
{
	struct word words[] = {WORD("HGETALL"), pool_key(pool_keys(pool), KEY_RULES)};

	return store_command(pool_store(pool), STORE_IDEMPOTENT, words, 2, cb, arg);
}

static void each_tag(const char *tags, void (*each)(const char *tag, size_t len, void *arg),
		     void *arg)
{
	for (size_t len; *tags; tags += len + (tags[len] == ',')) {
		len = strcspn(tags, ",");
		if (len)
			each(tags, len, arg);
	}
}

void branches_each(const struct reply *rules, void (*each)(const char *tag, size_t len, void *arg),
		   void *arg)
{
	for (size_t i = 0; i + 1 < reply_count(rules); i += 2)
		if (!strncmp(reply_text(reply_at(rules, i), NULL), FIELD, strlen(FIELD)))
			each_tag(reply_text(reply_at(rules, i + 1), NULL), each, arg);
}
