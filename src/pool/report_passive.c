/* report_passive.c - what clients' requests showed of members: gathered for a turn, one call in flight. */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "pool/internal.h"
#include "pool/report_call.h"

#define ENTRIES_MAX 1024u  /* members that wait for a call; others' reports are lost */
#define FAILING_MAX "1023" /* the last index that is read: those that failed last */
#define FAILING_AGE_MS 1000

/* A member that waits to be reported. */
struct entry {
	UT_hash_handle hh;
	int reason;
	int64_t began_ms;
	char id[];
};

/* A member that failed lately, as the store said, or as this process has reported since. */
struct failing {
	UT_hash_handle hh;
	bool is_own; /* reported here since the store last said: its next answer may not know yet */
	char id[];
};

struct reports {
	struct pool *pool;
	struct turn_hook hook;
	struct entry *entries;
	bool is_calling;
	struct failing *failing;
	int64_t failing_ms; /* when it was asked for; 0: never */
	bool is_asking;
};

/* --- who is failing ----------------------------------------------------------------------------------------------- */

static void forget_failing(struct reports *reports)
{
	struct failing *one = reports->failing, *next;

	HASH_CLEAR(hh, reports->failing);
	for (; one; one = next) {
		next = one->hh.next;
		free(one);
	}
}

static bool is_failing(const struct reports *reports, const char *id, size_t len)
{
	struct failing *found;

	HASH_FIND(hh, reports->failing, id, (unsigned)len, found);
	return found != NULL;
}

static void note_failing(struct reports *reports, const char *id, size_t len, bool is_own)
{
	struct failing *one;

	HASH_FIND(hh, reports->failing, id, (unsigned)len, one);
	if (one) {
		one->is_own = one->is_own || is_own;
		return;
	}
	one = malloc(sizeof *one + len + 1);
	if (!one)
		return;
	one->is_own = is_own;
	memcpy(one->id, id, len);
	one->id[len] = '\0';
	HASH_ADD_KEYPTR(hh, reports->failing, one->id, (unsigned)len, one);
}

/* Before an answer is taken: what was reported while it was under way stays until the next one. */
static void age_failing(struct reports *reports)
{
	struct failing *one, *next;

	HASH_ITER (hh, reports->failing, one, next) {
		if (!one->is_own) {
			/* It stands in the index. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
			HASH_DELETE(hh, reports->failing, one);
			free(one);
		} else {
			one->is_own = false;
		}
	}
}

static void on_failing(int result, const struct reply *reply, void *arg)
{
	struct reports *reports = arg;

	reports->is_asking = false;
	if (result)
		return;
	age_failing(reports);
	for (size_t i = 0; i < reply_count(reply); i++) {
		size_t len;
		const char *id = reply_text(reply_at(reply, i), &len);

		note_failing(reports, id, len, false);
	}
}

/* At most once a second, and only while somebody wants to know. */
static void ask_failing(struct reports *reports)
{
	struct word words[] = {WORD("ZRANGE"), pool_key(&reports->pool->keys, KEY_FAILING),
			       WORD("0"), WORD(FAILING_MAX), WORD("REV")};

	if (reports->is_asking ||
	    (reports->failing_ms && clock_ms() - reports->failing_ms < FAILING_AGE_MS))
		return;
	reports->failing_ms = clock_ms();
	reports->is_asking =
	    !store_command(reports->pool->store, STORE_IDEMPOTENT, words, 5, on_failing, reports);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

static void drop_entry(struct reports *reports, struct entry *entry)
{
	/* It stands in the index. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DELETE(hh, reports->entries, entry);
	free(entry);
}

static void on_reported(int result, const char *error, const struct report_result *results,
			size_t count, void *arg)
{
	struct reports *reports = arg;

	(void)result; /* what is lost is lost */
	(void)error;
	(void)results;
	(void)count;
	reports->is_calling = false;
	if (reports->entries)
		loop_again(reports->pool->loop);
}

/* At the end of a turn. */
static void send(void *arg)
{
	struct reports *reports = arg;
	struct entry *entry = reports->entries, *next;
	struct probe_report items[REPORT_MAX] NOT_ZEROED;
	struct entry *sent[REPORT_MAX] NOT_ZEROED;
	const int64_t now = clock_ms();
	size_t count = 0;

	if (reports->is_calling || !entry)
		return;
	for (; entry && count < REPORT_MAX; entry = next) {
		next = entry->hh.next;
		sent[count] = entry;
		items[count++] = (struct probe_report){.member = entry->id,
						       .reason = entry->reason,
						       .age_ms = now - entry->began_ms,
						       .latency_ms = -1};
	}
	reports->is_calling =
	    !report_call(reports->pool, items, count, "passive", on_reported, reports);
	for (size_t i = 0; i < count; i++)
		drop_entry(reports, sent[i]);
}

static struct reports *reports_new(struct pool *pool)
{
	struct reports *reports = calloc(1, sizeof *reports);

	if (!reports)
		return NULL;
	reports->pool = pool;
	reports->hook = (struct turn_hook){.run = send, .arg = reports};
	loop_hook(pool->loop, &reports->hook);
	return reports;
}

void reports_free(struct reports *reports)
{
	struct entry *entry, *next;

	if (!reports)
		return;
	loop_unhook(reports->pool->loop, &reports->hook);
	forget_failing(reports);
	entry = reports->entries;
	HASH_CLEAR(hh, reports->entries);
	for (; entry; entry = next) {
		next = entry->hh.next;
		free(entry);
	}
	free(reports);
}

/* Of several attempts in a turn the one that began last speaks for the member. */
static void gather(struct reports *reports, const struct member *member, int reason,
		   int64_t began_ms)
{
	struct entry *entry;

	HASH_FIND(hh, reports->entries, member->id, (unsigned)member->id_len, entry);
	if (!entry) {
		if (HASH_COUNT(reports->entries) >= ENTRIES_MAX)
			return;
		entry = malloc(sizeof *entry + member->id_len + 1);
		if (!entry)
			return;
		*entry = (struct entry){.reason = reason, .began_ms = began_ms};
		memcpy(entry->id, member->id, member->id_len + 1);
		HASH_ADD_KEYPTR(hh, reports->entries, entry->id, (unsigned)member->id_len, entry);
	} else if (began_ms >= entry->began_ms) {
		entry->reason = reason;
		entry->began_ms = began_ms;
	}
	loop_again(reports->pool->loop);
}

void pool_report(struct pool *pool, const struct member *member, int reason, int64_t began_ms)
{
	const enum health health = reason_row(reason)->health;
	struct reports *reports;

	if (health == HEALTH_NONE || pool_is_newer(pool))
		return;
	if (!pool->reports)
		pool->reports = reports_new(pool);
	reports = pool->reports;
	if (!reports)
		return;
	ask_failing(reports);
	if (health != HEALTH_PASS)
		note_failing(reports, member->id, member->id_len, true);
	else if (!is_failing(reports, member->id, member->id_len))
		return;
	gather(reports, member, reason, began_ms);
}
