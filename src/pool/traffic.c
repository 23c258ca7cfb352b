/* traffic.c - bytes by member and by client: a small table, emptied into Redis. */
#include "pool/traffic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "pool/internal.h"

#define PERIOD_MS 2000
#define ENTRIES_MAX 4096
#define PAIRS_MAX ((size_t)128) /* of one call of lua/traffic.lua */
#define NUMBER_SIZE 24

enum { IN, OUT };

struct entry {
	uint64_t bytes[2];
	UT_hash_handle hh;
	const char *fields[2]; /* in `text`: the names of its fields in the hash */
	char text[];
};

/* The two tables, and how many fields their hashes may have: members ever seen, and names that clients give
 * themselves where nobody asks for a password, must not fill Redis. */
enum table { MEMBERS, CLIENTS, TABLE_COUNT };
static const struct {
	enum pool_key key;
	const char *fields_max;
} tables[TABLE_COUNT] = {
    [MEMBERS] = {KEY_TRAFFIC, "4000000"},
    [CLIENTS] = {KEY_CLIENTS, "200000"},
};

struct traffic {
	struct entry *entries[TABLE_COUNT];
	unsigned count; /* over both */
	struct alarm alarm;
};

/* One call being put together. The store copies the words when it takes the call. */
struct report {
	struct pool *pool;
	enum table table;
	size_t pairs;
	char numbers[PAIRS_MAX][NUMBER_SIZE];
	struct word words[2 + 2 * PAIRS_MAX];
};

/* What the store does not take is lost: nobody could tell whether to report it again. */
static void report_send(struct report *report)
{
	if (report->pairs == 0)
		return;
	report->words[0] = pool_key(&report->pool->keys, tables[report->table].key);
	report->words[1] = WORD(tables[report->table].fields_max);
	if (store_script(report->pool->store, SCRIPT_TRAFFIC, 0, report->words,
			 2 + 2 * report->pairs, NULL, NULL)) {
		/* As above. */
	}
	report->pairs = 0;
}

static void report_add(struct report *report, const char *field, uint64_t bytes)
{
	char *number = report->numbers[report->pairs];
	struct word *words = &report->words[2 + 2 * report->pairs];

	if (bytes == 0)
		return;
	snprintf(number, NUMBER_SIZE, "%" PRIu64, bytes);
	words[0] = WORD(field);
	words[1] = WORD(number);
	report->pairs++;
}

static void send_table(struct pool *pool, enum table table)
{
	struct report report = {.pool = pool, .table = table};
	struct entry *entry, *next;

	HASH_ITER (hh, pool->traffic->entries[table], entry, next) {
		if (report.pairs + 2 > PAIRS_MAX)
			report_send(&report);
		report_add(&report, entry->fields[IN], entry->bytes[IN]);
		report_add(&report, entry->fields[OUT], entry->bytes[OUT]);
	}
	report_send(&report);
}

static void forget(struct traffic *traffic)
{
	for (int table = 0; table < TABLE_COUNT; table++) {
		struct entry *entry = traffic->entries[table], *next;

		HASH_CLEAR(hh, traffic->entries[table]);
		for (; entry; entry = next) {
			next = entry->hh.next;
			free(entry);
		}
	}
	traffic->count = 0;
}

void pool_traffic_send(struct pool *pool)
{
	struct traffic *traffic = pool->traffic;

	if (!traffic || traffic->count == 0)
		return;
	if (!pool_is_newer(pool)) {
		send_table(pool, MEMBERS);
		send_table(pool, CLIENTS);
	}
	forget(traffic);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

static void on_alarm(void *arg)
{
	pool_traffic_send(arg);
}

static struct traffic *traffic_new(struct pool *pool)
{
	struct traffic *traffic = calloc(1, sizeof *traffic);

	if (traffic)
		alarm_init(&traffic->alarm, pool->loop, on_alarm, pool);
	return traffic;
}

void traffic_free(struct traffic *traffic)
{
	if (!traffic)
		return;
	forget(traffic);
	alarm_fini(&traffic->alarm);
	free(traffic);
}

/* The entry of `name`, which has `len` bytes; NULL without memory. */
static struct entry *entry_new(struct traffic *traffic, enum table table, const char *name,
			       size_t len)
{
	const size_t size = len + sizeof TRAFFIC_IN + len + sizeof TRAFFIC_OUT;
	struct entry *entry = calloc(1, sizeof *entry + size);
	char *end;

	if (!entry)
		return NULL;
	entry->fields[IN] = entry->text;
	end = stpcpy(stpcpy(entry->text, TRAFFIC_IN), name);
	entry->fields[OUT] = end + 1;
	stpcpy(stpcpy(end + 1, TRAFFIC_OUT), name);
	HASH_ADD_KEYPTR(hh, traffic->entries[table], entry->text + strlen(TRAFFIC_IN),
			(unsigned)len, entry);
	traffic->count++;
	return entry;
}

static void add(struct pool *pool, enum table table, const char *name, uint64_t in, uint64_t out)
{
	struct traffic *traffic = pool->traffic;
	const size_t len = strlen(name);
	struct entry *entry;

	HASH_FIND(hh, traffic->entries[table], name, (unsigned)len, entry);
	if (!entry && traffic->count == ENTRIES_MAX)
		pool_traffic_send(pool);
	if (!entry)
		entry = entry_new(traffic, table, name, len);
	if (!entry)
		return;
	entry->bytes[IN] += in;
	entry->bytes[OUT] += out;
}

void pool_traffic_add(struct pool *pool, const char *member, const char *client, uint64_t in,
		      uint64_t out)
{
	if (in == 0 && out == 0)
		return;
	if (!pool->traffic)
		pool->traffic = traffic_new(pool);
	if (!pool->traffic)
		return;
	add(pool, MEMBERS, "", in, out);
	add(pool, MEMBERS, member, in, out);
	if (client[0])
		add(pool, CLIENTS, client, in, out);
	if (!pool->traffic->alarm.due_ms)
		alarm_set(&pool->traffic->alarm, clock_ms() + PERIOD_MS);
}
