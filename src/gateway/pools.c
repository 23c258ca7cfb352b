/* pools.c - the pools of a gateway by alias. */
#include "gateway/pools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/log.h"
#include "pool/branches.h"
#include "pool/traffic.h"

#define RULES_MS 5000
#define POOLS_MAX ((size_t)4096)

struct entry {
	TAILQ_ENTRY(entry) link;
	struct pools *pools;
	struct pool *pool;
	bool is_borrowed; /* --pool is its owner's, who also reads its rules */
	bool is_read;
	bool is_searched; /* for branches */
};

struct name {
	char alias[POOLS_ALIAS_MAX + 1];
	struct entry *entry;
	struct entry *
	    trunk; /* the pool that a source has split, of whose alias this is a part; NULL: the operator's alias */
	size_t trunk_len; /* of that alias */
};

struct names {
	struct name *at;
	size_t count;
};

struct pools {
	struct loop *loop;
	struct store *store;
	TAILQ_HEAD(, entry) entries; /* the first is --pool */
	size_t count;
	struct names names;
	struct alarm refresh;
};

static bool is_alias(const char *text, size_t len)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

	return len > 0 && len <= POOLS_ALIAS_MAX && strspn(text, letters) >= len;
}

static struct entry *find_alias(const struct names *names, const char *alias)
{
	for (size_t i = 0; i < names->count; i++)
		if (!strcmp(names->at[i].alias, alias))
			return names->at[i].entry;
	return NULL;
}

struct pool *pools_find(struct pools *pools, const char *alias)
{
	struct entry *entry =
	    *alias ? find_alias(&pools->names, alias) : TAILQ_FIRST(&pools->entries);

	return entry ? entry->pool : NULL;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static int add_entry(struct pools *pools, struct pool *pool, struct entry **ret)
{
	struct entry *entry = calloc(1, sizeof *entry);

	if (!entry)
		return -ENOMEM;
	entry->pools = pools;
	entry->pool = pool;
	TAILQ_INSERT_TAIL(&pools->entries, entry, link);
	pools->count++;
	*ret = entry;
	return 0;
}

/* The entry of that pool, made if there is none. */
static int provide(struct pools *pools, const char *name, struct entry **ret, char *error,
		   size_t error_size)
{
	struct entry *entry;
	struct pool *pool;
	int r;

	TAILQ_FOREACH (entry, &pools->entries, link) {
		if (!strcmp(pool_name(entry->pool), name)) {
			*ret = entry;
			return 0;
		}
	}
	if (pools->count >= POOLS_MAX) {
		snprintf(error, error_size, "there may be at most %zu pools", POOLS_MAX);
		return -EINVAL;
	}
	r = pool_new(&pool, pools->loop, pools->store, name, error, error_size);
	if (r)
		return r;
	r = add_entry(pools, pool, ret);
	if (r)
		pool_free(pool);
	return r;
}

static int add_name(struct names *names, const char *alias, struct entry *entry,
		    struct entry *trunk, size_t trunk_len)
{
	struct name *at = realloc(names->at, (names->count + 1) * sizeof *at);

	if (!at)
		return -ENOMEM;
	names->at = at;
	at += names->count++;
	*at = (struct name){.entry = entry, .trunk = trunk, .trunk_len = trunk_len};
	snprintf(at->alias, sizeof at->alias, "%s", alias);
	return 0;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

static void on_rules(int result, const char *error, void *arg)
{
	struct entry *entry = arg;

	(void)error;
	if (result != -ECANCELED)
		entry->is_read = true;
}

static void read_rules(struct entry *entry)
{
	if (pool_read_rules(entry->pool, on_rules, entry))
		entry->is_read = true; /* in vain; the next time will come */
}

/* A tag of a split: NAME.tag gets the alias ALIAS.tag, unless the operator has given that another meaning. */
static void add_branch(struct pools *pools, const struct name *trunk, const char *tag, size_t len)
{
	char name[KEY_NAME_MAX + 1], alias[2 * POOLS_ALIAS_MAX + 2], error[256] = "out of memory";
	struct entry *branch;

	snprintf(alias, sizeof alias, "%s.%.*s", trunk->alias, (int)len, tag);
	snprintf(name, sizeof name, "%s.%.*s", pool_name(trunk->entry->pool), (int)len, tag);
	if (!is_alias(alias, strlen(alias)) || find_alias(&pools->names, alias))
		return;
	if (provide(pools, name, &branch, error, sizeof error) ||
	    add_name(&pools->names, alias, branch, trunk->entry, strlen(trunk->alias))) {
		log_warn("a pool cannot be used", LOG_TEXT("pool", name), LOG_TEXT("error", error));
		return;
	}
	if (!branch->is_read)
		read_rules(branch);
}

/* Every alias of the pool has the branch. */
static void on_tag(const char *tag, size_t len, void *arg)
{
	struct entry *entry = arg;
	struct pools *pools = entry->pools;
	size_t count = pools->names.count;

	for (size_t i = 0; i < count && len <= POOLS_ALIAS_MAX; i++) {
		struct name trunk = pools->names.at[i]; /* adding may move it */

		if (trunk.entry == entry && !trunk.trunk)
			add_branch(pools, &trunk, tag, len);
	}
}

static void on_fields(int result, const struct reply *reply, void *arg)
{
	struct entry *entry = arg;

	entry->is_searched = true;
	if (!result)
		branches_each(reply, on_tag, entry);
}

static bool has_trunk(const struct pools *pools, const struct entry *entry)
{
	for (size_t i = 0; i < pools->names.count; i++)
		if (pools->names.at[i].entry == entry && !pools->names.at[i].trunk)
			return true;
	return false;
}

bool pools_are_read(const struct pools *pools)
{
	struct entry *entry;

	TAILQ_FOREACH (entry, &pools->entries, link)
		if (!entry->is_read || (has_trunk(pools, entry) && !entry->is_searched))
			return false;
	return true;
}

static void read_branches(struct entry *entry)
{
	if (branches_ask(entry->pool, on_fields, entry))
		entry->is_searched = true; /* in vain; the next time will come */
}

static void refresh(void *arg)
{
	struct pools *pools = arg;
	struct entry *entry;

	TAILQ_FOREACH (entry, &pools->entries, link) {
		if (!entry->is_borrowed)
			read_rules(entry);
		if (has_trunk(pools, entry))
			read_branches(entry);
	}
	alarm_set(&pools->refresh, clock_ms() + RULES_MS);
}

/* --- aliases ------------------------------------------------------------------------------------------------------ */

static int add_alias(struct pools *pools, struct names *names, const char *text, char *error,
		     size_t error_size)
{
	size_t len = strcspn(text, "=");
	char alias[POOLS_ALIAS_MAX + 1];
	struct entry *entry, *twin;
	int r;

	if (!text[len] || !is_alias(text, len)) {
		snprintf(error, error_size,
			 "'%.80s': expected ALIAS=POOL, the alias of 1 to %d letters, digits, '.' "
			 "and '_'",
			 text, POOLS_ALIAS_MAX);
		return -EINVAL;
	}
	snprintf(alias, sizeof alias, "%.*s", (int)len, text);
	r = provide(pools, text + len + 1, &entry, error, error_size);
	twin = find_alias(names, alias);
	if (!r && twin && twin != entry) {
		snprintf(error, error_size, "alias %s stands for two pools", alias);
		r = -EINVAL;
	}
	return r || twin ? r : add_name(names, alias, entry, NULL, 0);
}

/* Branches stay while the alias that they belong to does: they are known already. */
static int keep_branches(const struct names *old, struct names *names)
{
	char alias[POOLS_ALIAS_MAX + 1];
	int r = 0;

	for (size_t i = 0; i < old->count && !r; i++) {
		const struct name *branch = &old->at[i];

		if (!branch->trunk || find_alias(names, branch->alias))
			continue;
		snprintf(alias, sizeof alias, "%.*s", (int)branch->trunk_len, branch->alias);
		if (find_alias(names, alias) != branch->trunk)
			continue;
		r = add_name(names, branch->alias, branch->entry, branch->trunk, branch->trunk_len);
	}
	return r;
}

int pools_set(struct pools *pools, const char *const *texts, size_t count, char *error,
	      size_t error_size)
{
	struct entry *first = TAILQ_FIRST(&pools->entries);
	const char *name = pool_name(first->pool);
	struct names names = {0};
	int r = 0;

	/* Its name is an alias where it can be one. */
	if (is_alias(name, strlen(name)))
		r = add_name(&names, name, first, NULL, 0);
	for (size_t i = 0; i < count && !r; i++)
		r = add_alias(pools, &names, texts[i], error, error_size);
	if (!r)
		r = keep_branches(&pools->names, &names);
	if (r) {
		free(names.at);
		return r;
	}
	free(pools->names.at);
	pools->names = names;
	refresh(pools);
	return 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int pools_new(struct pools **ret, struct loop *loop, struct store *store, struct pool *first)
{
	struct pools *pools = calloc(1, sizeof *pools);
	struct entry *entry;

	if (!pools)
		return -ENOMEM;
	pools->loop = loop;
	pools->store = store;
	TAILQ_INIT(&pools->entries);
	alarm_init(&pools->refresh, loop, refresh, pools);
	if (add_entry(pools, first, &entry)) {
		free(pools);
		return -ENOMEM;
	}
	entry->is_borrowed = entry->is_read = true;
	*ret = pools;
	return 0;
}

void pools_free(struct pools *pools)
{
	struct entry *entry;

	if (!pools)
		return;
	alarm_fini(&pools->refresh);
	while ((entry = TAILQ_FIRST(&pools->entries))) {
		TAILQ_REMOVE(&pools->entries, entry, link);
		if (!entry->is_borrowed)
			pool_free(entry->pool);
		free(entry);
	}
	free(pools->names.at);
	free(pools);
}

void pools_send_traffic(struct pools *pools)
{
	struct entry *entry;

	TAILQ_FOREACH (entry, &pools->entries, link)
		pool_traffic_send(entry->pool);
}
