/* cooldown.c - members to be avoided for a host: this process's copy of the table in the store.
 *
 * The copy is read once a second, from the latest end that is known: with an unchanged rule what was added since ends
 * no earlier. Every half a minute all of it is read, which also shows what was taken out, and what a shortened rule
 * made end earlier. Whoever asks for nothing sends nothing. */
#include "pool/cooldown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "pool/internal.h"

#define READ_MS 1000
#define READ_ALL_MS 30000
#define ENTRIES_MAX 10000 /* of the copy, and of the table (lua/cooldown.lua) */
#define ENTRIES_MAX_TEXT "10000"
#define PAIRS_MAX ((size_t)64)   /* of one call of lua/cooldown.lua */
#define COOLDOWN_MAX_MS 86400000 /* of the rule; no entry holds longer, whatever its score */
#define KEY_SIZE (ENDPOINT_HOST_MAX + 1 + ENDPOINT_ID_MAX)

struct entry {
	UT_hash_handle hh;
	int64_t until_ms;   /* of clock_ms() */
	bool is_from_store; /* seen there; else it was added here */
	unsigned len;
	char key[]; /* host TAB member */
};

struct cooldown {
	struct pool *pool;
	struct entry *
	    entries; /* in the order in which they were added or seen: about that in which they end */
	unsigned count;
	char *pending[PAIRS_MAX]; /* keys that are to be sent at the end of the turn */
	size_t pending_count;
	struct turn_hook hook;
	struct alarm alarm; /* the next reading, while somebody asks */
	bool is_asked;      /* since the last reading */
	bool is_reading;
	bool is_reading_all;
	int64_t read_all_ms; /* when all of it is to be read next; 0: at once */
	int64_t ahead_ms;    /* of the clock of Redis, before clock_ms() */
	char latest[32];     /* the latest end that was read, as Redis writes it */
};

/* --- the copy ----------------------------------------------------------------------------------------------------- */

static struct entry *find(const struct cooldown *c, const char *key, unsigned len)
{
	struct entry *entry;

	HASH_FIND(hh, c->entries, key, len, entry);
	return entry;
}

static void drop(struct cooldown *c, struct entry *entry)
{
	/* It stands in the index. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	HASH_DEL(c->entries, entry);
	c->count--;
	free(entry);
}

static void drop_ended(struct cooldown *c)
{
	const int64_t now = clock_ms();

	/* Who was dropped is no longer the first. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	while (c->entries && c->entries->until_ms <= now)
		drop(c, c->entries);
}

/* Sets the entry anew, or enters it in place of the oldest. Without memory it is not known here. */
static void put(struct cooldown *c, const char *key, unsigned len, int64_t until_ms,
		bool is_from_store)
{
	struct entry *entry = find(c, key, len);

	if (entry) {
		HASH_DEL(c->entries, entry); /* its place is the last now */
	} else {
		if (c->count == ENTRIES_MAX)
			drop(c, c->entries);
		entry = malloc(sizeof *entry + len);
		if (!entry)
			return;
		memcpy(entry->key, key, len);
		entry->len = len;
		c->count++;
	}
	entry->until_ms = until_ms;
	entry->is_from_store = is_from_store;
	HASH_ADD_KEYPTR(hh, c->entries, entry->key, entry->len, entry);
}

/* Those that the store knew; what was added here may still be on its way to it. */
static void drop_from_store(struct cooldown *c)
{
	struct entry *entry, *next;

	HASH_ITER (hh, c->entries, entry, next)
		if (entry->is_from_store)
			drop(c, entry);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void on_time(int result, const struct reply *reply, void *arg)
{
	struct cooldown *c = arg;
	const int64_t now = reply_integer(reply_at(reply, 0), 0) * 1000 +
			    reply_integer(reply_at(reply, 1), 0) / 1000;

	if (!result) {
		c->ahead_ms = now - clock_ms();
		c->read_all_ms = clock_ms() + READ_ALL_MS;
	}
}

static void take(struct cooldown *c, const struct reply *name, const struct reply *score)
{
	const int64_t now = clock_ms();
	size_t len;
	const char *key = reply_text(name, &len);
	double until, left;

	if (reply_double(score, &until) || len >= KEY_SIZE)
		return;
	left = until - (double)(now + c->ahead_ms);
	if (left > 0)
		put(c, key, (unsigned)len,
		    now + (left < COOLDOWN_MAX_MS ? (int64_t)left : COOLDOWN_MAX_MS), true);
}

static void on_entries(int result, const struct reply *reply, void *arg)
{
	struct cooldown *c = arg;
	const size_t count = reply_count(reply) / 2;

	c->is_reading = false;
	if (result)
		c->read_all_ms = 0;
	if (!c->read_all_ms) /* also when the time, without which the ends say nothing, did not come */
		return;
	if (c->is_reading_all)
		drop_from_store(c);
	/* The first ends last. */
	for (size_t i = count; i-- > 0;)
		take(c, reply_at(reply, 2 * i), reply_at(reply, 2 * i + 1));
	if (count)
		snprintf(c->latest, sizeof c->latest, "%s", reply_text(reply_at(reply, 1), NULL));
	drop_ended(c);
}

static void read_table(struct cooldown *c)
{
	struct pool *pool = c->pool;
	struct word time[] = {WORD("TIME")};
	struct word words[] = {WORD("ZREVRANGEBYSCORE"),
			       pool_key(&pool->keys, KEY_COOLDOWN),
			       WORD("+inf"),
			       WORD(c->latest),
			       WORD("WITHSCORES"),
			       WORD("LIMIT"),
			       WORD("0"),
			       WORD(ENTRIES_MAX_TEXT)};

	if (c->is_reading)
		return;
	c->is_reading_all = clock_ms() >= c->read_all_ms;
	if (c->is_reading_all) {
		c->read_all_ms = 0;
		words[3] = WORD("-inf");
		if (store_command(pool->store, STORE_IDEMPOTENT, time, 1, on_time, c))
			return;
	}
	c->is_reading = !store_command(pool->store, STORE_IDEMPOTENT, words,
				       sizeof words / sizeof *words, on_entries, c);
}

static void on_alarm(void *arg)
{
	struct cooldown *c = arg;

	if (!c->is_asked)
		return;
	c->is_asked = false;
	read_table(c);
	alarm_set(&c->alarm, clock_ms() + READ_MS);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* What the store does not take is known here alone. */
static void send_pending(struct cooldown *c)
{
	struct pool *pool = c->pool;
	struct word words[3 + PAIRS_MAX] = {pool_key(&pool->keys, KEY_COOLDOWN),
					    pool_key(&pool->keys, KEY_RULES), WORD("")};

	for (size_t i = 0; i < c->pending_count; i++)
		words[3 + i] = WORD(c->pending[i]);
	if (!pool_is_newer(pool) && store_script(pool->store, SCRIPT_COOLDOWN, STORE_IDEMPOTENT,
						 words, 3 + c->pending_count, NULL, NULL)) {
		/* As above. */
	}
	while (c->pending_count)
		free(c->pending[--c->pending_count]);
}

static void on_turn_end(void *arg)
{
	struct cooldown *c = arg;

	if (c->pending_count)
		send_pending(c);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static struct cooldown *cooldown_new(struct pool *pool)
{
	struct cooldown *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->pool = pool;
	snprintf(c->latest, sizeof c->latest, "-inf");
	alarm_init(&c->alarm, pool->loop, on_alarm, c);
	c->hook = (struct turn_hook){.run = on_turn_end, .arg = c};
	loop_hook(pool->loop, &c->hook);
	return c;
}

void cooldown_free(struct cooldown *c)
{
	struct entry *entry, *next;

	if (!c)
		return;
	loop_unhook(c->pool->loop, &c->hook);
	alarm_fini(&c->alarm);
	HASH_ITER (hh, c->entries, entry, next)
		drop(c, entry);
	while (c->pending_count)
		free(c->pending[--c->pending_count]);
	free(c);
}

/* Somebody asks: the copy is read now, if it was not within the last second, and again while it is asked. NULL without
 * memory. */
static struct cooldown *wake(struct pool *pool)
{
	struct cooldown *c = pool->cooldown;

	if (!c)
		c = pool->cooldown = cooldown_new(pool);
	if (!c)
		return NULL;
	c->is_asked = true;
	if (!c->alarm.due_ms) {
		read_table(c);
		alarm_set(&c->alarm, clock_ms() + READ_MS);
	}
	return c;
}

/* The key of member and host, with a NUL behind it, and its length; 0: too long. */
static unsigned key_print(char key[static KEY_SIZE], const struct member *member, const char *host)
{
	const size_t host_len = strlen(host), len = host_len + 1 + member->id_len;
	char *at = key;

	if (len >= KEY_SIZE)
		return 0;
	at = mempcpy(at, host, host_len);
	*at++ = '\t';
	at = mempcpy(at, member->id, member->id_len);
	*at = '\0';
	return (unsigned)len;
}

/* When the entry of that key ends; 0: there is none. */
static int64_t find_end(const struct cooldown *c, const char *key, unsigned len)
{
	const struct entry *entry = find(c, key, len);

	return entry ? entry->until_ms : 0;
}

bool pool_cooldown_has(struct pool *pool, const struct member *member, const char *host)
{
	struct cooldown *c = pool->cooldown;
	char key[KEY_SIZE] NOT_ZEROED;
	unsigned len;

	if (!c || !c->is_asked)
		c = wake(pool);
	if (!c || !c->count)
		return false;
	len = key_print(key, member, host);
	return len && find_end(c, key, len) > clock_ms();
}

void pool_cooldown_add(struct pool *pool, const struct member *member, const char *host)
{
	const int64_t until_ms = clock_ms() + rules_number(&pool->rules, RULE_COOLDOWN);
	char key[KEY_SIZE];
	unsigned len = key_print(key, member, host);
	struct cooldown *c = wake(pool);

	if (!c || !len || until_ms <= clock_ms())
		return;
	/* Those that were under way to the host together need not all be told. */
	if (find_end(c, key, len) > until_ms - READ_MS)
		return;
	drop_ended(c);
	put(c, key, len, until_ms, false);
	c->pending[c->pending_count] = strdup(key);
	if (!c->pending[c->pending_count])
		return;
	if (++c->pending_count == PAIRS_MAX)
		send_pending(c);
	loop_again(pool->loop);
}
