/* spread.c - one reading of a source into its pool, and by tag into pools of their own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "source/internal.h"

#define MEMORY_NAME_MAX 1100

static void supply_branch(struct source *source);

static void on_supplied(int result, const char *error, const struct supply_result *done, void *arg)
{
	struct source *source = arg;

	if (result) {
		source_fail_store(source, result, error);
		return;
	}
	log_info("source loaded", LOG_TEXT("source", source->config.name),
		 LOG_TEXT("pool", pool_name(supply_pool(source->branches[source->branch]))),
		 LOG_NUMBER("joined", (int64_t)done->joined),
		 LOG_NUMBER("candidates", (int64_t)done->candidates),
		 LOG_NUMBER("known", (int64_t)done->known),
		 LOG_NUMBER("missing", (int64_t)done->missing),
		 LOG_NUMBER("left", (int64_t)done->left));
	if (++source->branch < source->branch_count) {
		supply_branch(source);
		return;
	}
	source->good_ms = clock_ms();
	source->is_good = true;
	source->loaded = source->seen;
	snprintf(source->etag, sizeof source->etag, "%s", source->new_etag);
	snprintf(source->modified, sizeof source->modified, "%s", source->new_modified);
	source_end_attempt(source);
}

static void on_founded(int result, const char *error, void *arg)
{
	struct source *source = arg;
	struct supply *branch = source->branches[source->branch];

	if (result)
		source_fail_store(source, result, error);
	else if (supply_run(branch, source->load, source->config.is_admitting,
			    source->config.grace_ms, on_supplied, source))
		source_fail(source, "out of memory");
}

/* A pool that the split makes gets its salt, and the rule that decides whom it may hold, from here. */
static void supply_branch(struct source *source)
{
	struct pool *pool = supply_pool(source->branches[source->branch]);
	bool allow = rules_flag(pool_rules(source->pool), RULE_ALLOW_PRIVATE);
	struct word words[] = {WORD("allow_private"), WORD("1")};

	if (pool_write_rules(pool, words, allow && pool != source->pool ? 2 : 0, on_founded,
			     source))
		source_fail_store(source, REASON_STORE_NOT_DONE, "");
}

static bool has_branch(const struct source *source, const char *value)
{
	for (size_t i = 1; i < source->branch_count; i++)
		if (!strcmp(supply_value(source->branches[i]), value))
			return true;
	return false;
}

static enum apply_tag tag_of(const struct source *source)
{
	return source->config.split == SOURCE_SPLIT_COUNTRY ? APPLY_COUNTRY : APPLY_ANONYMITY;
}

/* 0, -ENOBUFS (as many as there may be), or another -errno. */
static int add_branch(struct source *source, const char *value)
{
	char name[KEY_NAME_MAX + LIST_TAG_MAX + 2], error[200];
	struct pool *pool;
	int r;

	if (source->branch_count == BRANCHES_MAX)
		return -ENOBUFS;
	snprintf(name, sizeof name, "%s.%s", pool_name(source->pool), value);
	r = pool_new(&pool, source->loop, source->store, name, error, sizeof error);
	if (r)
		return r;
	r = supply_new(&source->branches[source->branch_count], source->loop, pool,
		       source->config.name, tag_of(source), value);
	if (r)
		pool_free(pool);
	else
		source->branch_count++;
	return r;
}

/* Finds the tags of this reading; branches of earlier ones stay, since their members may have gone. */
static void split(struct source *source)
{
	struct load_cursor cursor = {0};
	struct dedupe_item item;
	char value[LIST_TAG_MAX];

	while (load_next(source->load, &cursor, &item)) {
		if (!apply_tag_value(&item, tag_of(source), value, sizeof value) ||
		    has_branch(source, value))
			continue;
		if (add_branch(source, value)) {
			log_warn("a source has too many tags to split by",
				 LOG_TEXT("source", source->config.name),
				 LOG_NUMBER("pools", (int64_t)source->branch_count));
			return;
		}
	}
}

/* The field of the pool's rules that remembers the tags which a source has split by: "us,de". */
static void name_memory(const struct source *source, char *buffer, size_t size)
{
	snprintf(buffer, size, "branches:%s", source->config.name);
}

static void remember(struct source *source)
{
	char field[MEMORY_NAME_MAX];
	struct buffer tags;
	int r = 0;

	buffer_init(&tags, BRANCHES_MAX * LIST_TAG_MAX);
	for (size_t i = 1; i < source->branch_count && !r; i++)
		r = buffer_printf(&tags, i > 1 ? ",%s" : "%s", supply_value(source->branches[i]));
	name_memory(source, field, sizeof field);
	if (!r && buffer_len(&tags)) {
		struct word words[] = {WORD("HSET"),
				       pool_key(pool_keys(source->pool), KEY_RULES),
				       WORD(field),
				       {buffer_at(&tags), buffer_len(&tags)}};

		r = store_command(source->store, STORE_IDEMPOTENT, words, 4, NULL, NULL);
	}
	if (r)
		log_warn("the pools that a source splits into could not be noted",
			 LOG_TEXT("source", source->config.name));
	buffer_fini(&tags);
}

static void begin_supply(struct source *source)
{
	size_t before = source->branch_count;

	if (source->config.split != SOURCE_SPLIT_NONE)
		split(source);
	if (source->branch_count != before)
		remember(source);
	source->branch = 0;
	supply_branch(source);
}

static void on_recalled(int result, const struct reply *reply, void *arg)
{
	struct source *source = arg;
	const char *at = reply_text(reply, NULL);
	char value[LIST_TAG_MAX];

	if (result) {
		source_fail_store(source, result, at);
		return;
	}
	source->has_recalled = true;
	for (size_t len; *at; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		snprintf(value, sizeof value, "%.*s", (int)len, at);
		if (len && !has_branch(source, value) && add_branch(source, value))
			break;
	}
	begin_supply(source);
}

/* A tag that vanished while nobody watched has left members behind: the branches of earlier runs are supplied, too. */
static void recall(struct source *source)
{
	char field[MEMORY_NAME_MAX];
	struct word words[] = {
	    WORD("HGET"), pool_key(pool_keys(source->pool), KEY_RULES), {field, 0}};

	name_memory(source, field, sizeof field);
	words[2] = WORD(field);
	if (store_command(source->store, STORE_IDEMPOTENT, words, 3, on_recalled, source))
		source_fail_store(source, REASON_STORE_NOT_DONE, "");
}

void spread_begin(struct source *source)
{
	if (source->config.split != SOURCE_SPLIT_NONE && !source->has_recalled)
		recall(source);
	else
		begin_supply(source);
}
