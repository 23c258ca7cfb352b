/* supply.c - one reading of a source into a pool, by difference. */
#include "source/supply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"

#define IDS_MAX ((size_t)2000000)
#define PAGE "1000"

/* A member that the store says this source names, and the last reading did not. */
struct missing {
	UT_hash_handle hh;
	int64_t since_ms;
	bool is_leaving;
	size_t len;
	char id[];
};

struct supply {
	struct loop *loop;
	struct pool *pool;
	char *name, *value;
	enum apply_tag tag;
	struct missing *missing;

	/* one run */
	bool has_ids;
	struct dedupe ids; /* of what was read */
	int64_t grace_ms;
	char cursor[24];
	supply_cb *cb;
	void *arg;
	struct supply_result done;
};

int supply_new(struct supply **ret, struct loop *loop, struct pool *pool, const char *name,
	       enum apply_tag tag, const char *value)
{
	struct supply *supply = calloc(1, sizeof *supply);

	if (!supply)
		return -ENOMEM;
	supply->loop = loop;
	supply->pool = pool;
	supply->tag = tag;
	supply->name = strdup(name);
	supply->value = value ? strdup(value) : NULL;
	if (!supply->name || (value && !supply->value)) {
		supply_free(supply);
		return -ENOMEM;
	}
	*ret = supply;
	return 0;
}

static void forget(struct supply *supply, struct missing *missing)
{
	/* The analyzer does not follow the links of uthash. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	HASH_DEL(supply->missing, missing);
	free(missing);
}

static void drop_ids(struct supply *supply)
{
	if (supply->has_ids)
		dedupe_fini(&supply->ids);
	supply->has_ids = false;
}

void supply_free(struct supply *supply)
{
	if (!supply)
		return;
	while (supply->missing)
		forget(supply, supply->missing);
	drop_ids(supply);
	free(supply->name);
	free(supply->value);
	free(supply);
}

struct pool *supply_pool(const struct supply *supply)
{
	return supply->pool;
}

const char *supply_value(const struct supply *supply)
{
	return supply->value;
}

static void finish(struct supply *supply, int result, const char *error)
{
	drop_ids(supply);
	supply->done.missing = HASH_COUNT(supply->missing);
	supply->cb(result, error, &supply->done, supply->arg);
}

/* --- leave -------------------------------------------------------------------------------------------------------- */

int64_t supply_due_ms(const struct supply *supply, int64_t grace_ms)
{
	const struct missing *missing;
	int64_t due = INT64_MAX;

	for (missing = supply->missing; missing; missing = missing->hh.next)
		if (missing->since_ms + grace_ms < due)
			due = missing->since_ms + grace_ms;
	return due;
}

static int leave_next(struct supply *supply);

static void on_left(int result, const char *error, const enum placed *placed, size_t count,
		    void *arg)
{
	struct supply *supply = arg;
	struct missing *missing, *next;

	(void)placed;
	HASH_ITER (hh, supply->missing, missing, next) {
		if (missing->is_leaving && !result)
			forget(supply, missing);
		else
			missing->is_leaving = false;
	}
	if (!result)
		supply->done.left += count;
	if (!result && leave_next(supply) == 0)
		return;
	finish(supply, result, error);
}

/* The next batch of members whose grace has passed. 0 if under way, -ENOENT: none is left, or another -errno. */
static int leave_next(struct supply *supply)
{
	struct change_item items[CHANGE_MAX];
	int64_t now = clock_ms();
	struct missing *missing;
	size_t count = 0;

	for (missing = supply->missing; missing && count < CHANGE_MAX; missing = missing->hh.next) {
		if (missing->since_ms + supply->grace_ms > now)
			continue;
		missing->is_leaving = true;
		items[count++] = (struct change_item){.id = missing->id};
	}
	if (!count)
		return -ENOENT;
	return pool_change(supply->pool, CHANGE_LEAVE, supply->name, items, count, on_left, supply);
}

/* --- difference --------------------------------------------------------------------------------------------------- */

/* Does a record's list of sources name this one? Records are packed: "sources=a,b" TAB "country=us". */
static bool is_named(const struct supply *supply, const char *record)
{
	size_t len = strlen(supply->name);
	const char *at = strncmp(record, "sources=", 8) ? strstr(record, "\tsources=") : record;

	if (!at)
		return false;
	at = strchr(at, '=') + 1;
	while (*at && *at != '\t') {
		size_t item = strcspn(at, ",\t");

		if (item == len && !memcmp(at, supply->name, len))
			return true;
		at += item + (at[item] == ',');
	}
	return false;
}

static void look_at(struct supply *supply, const char *id, size_t len, const char *record)
{
	struct missing *missing;

	if (!is_named(supply, record))
		return;
	HASH_FIND(hh, supply->missing, id, (unsigned)len, missing);
	if (dedupe_has(&supply->ids, id, len)) {
		if (missing)
			forget(supply, missing);
		return;
	}
	if (missing)
		return;
	missing = calloc(1, sizeof *missing + len + 1);
	if (!missing)
		return; /* the next reading misses it again */
	missing->since_ms = clock_ms();
	missing->len = len;
	memcpy(missing->id, id, len);
	HASH_ADD_KEYPTR(hh, supply->missing, missing->id, (unsigned)len, missing);
}

static int read_page(struct supply *supply);

static void on_page(int result, const struct reply *reply, void *arg)
{
	struct supply *supply = arg;
	const struct reply *items = reply_at(reply, 1);

	if (result) {
		finish(supply, result, reply_text(reply, NULL));
		return;
	}
	for (size_t i = 0; i + 1 < reply_count(items); i += 2) {
		size_t len;
		const char *id = reply_text(reply_at(items, i), &len);

		look_at(supply, id, len, reply_text(reply_at(items, i + 1), NULL));
	}
	snprintf(supply->cursor, sizeof supply->cursor, "%s", reply_text(reply_at(reply, 0), NULL));
	if (strcmp(supply->cursor, "0")) {
		if (read_page(supply))
			finish(supply, REASON_STORE_NOT_DONE, "");
	} else if (leave_next(supply)) {
		finish(supply, 0, "");
	}
}

static int read_page(struct supply *supply)
{
	struct word words[] = {WORD("HSCAN"), pool_key(pool_keys(supply->pool), KEY_PROXIES),
			       WORD(supply->cursor), WORD("COUNT"), WORD(PAGE)};

	return store_command(pool_store(supply->pool), STORE_IDEMPOTENT, words, 5, on_page, supply);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

static void on_applied(int result, const char *error, const struct apply_result *done, void *arg)
{
	struct supply *supply = arg;

	supply->done.joined = done->placed[PLACED_JOINED];
	supply->done.candidates = done->placed[PLACED_CANDIDATE];
	supply->done.known =
	    done->placed[PLACED_ELIGIBLE] + done->placed[PLACED_PARKED] + done->placed[PLACED_LEFT];
	snprintf(supply->cursor, sizeof supply->cursor, "0");
	if (!result && read_page(supply))
		result = REASON_STORE_NOT_DONE;
	if (result)
		finish(supply, result, error);
}

int supply_run(struct supply *supply, const struct load *load, bool is_admitting, int64_t grace_ms,
	       supply_cb *cb, void *arg)
{
	struct apply_request request = {
	    .load = load,
	    .pool = supply->pool,
	    .change = is_admitting ? CHANGE_SUPPLY : CHANGE_CANDIDATE,
	    .source = supply->name,
	    .tag = supply->tag,
	    .value = supply->value,
	    .ids = &supply->ids,
	};
	int r = dedupe_init(&supply->ids, IDS_MAX);

	if (r)
		return r;
	supply->has_ids = true;
	supply->grace_ms = grace_ms;
	supply->cb = cb;
	supply->arg = arg;
	supply->done = (struct supply_result){0};
	r = apply_start(supply->loop, &request, on_applied, supply);
	if (r)
		drop_ids(supply);
	return r;
}

int supply_release(struct supply *supply, int64_t grace_ms, supply_cb *cb, void *arg)
{
	supply->grace_ms = grace_ms;
	supply->cb = cb;
	supply->arg = arg;
	supply->done = (struct supply_result){0};
	return leave_next(supply);
}
