/* limit_shared.c - requests at a time and a second, counted in Redis over all processes (docs/wire.md, "Limits").
 *
 * A request that is counted has a `hold`, with a place in the `holding` of its client and in that of its host. A
 * holding is what this process has under one key; it renews it, and gathers what is to be given back. What cannot be
 * said to Redis in time runs out there by itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "pool/limit_parts.h"

#define RENEW_MS 10000 /* of 30,000 in limit.lua */
#define IDS_MAX ((size_t)128)
#define RENEWALS_MAX 256 /* calls in one go; then others have their turn */
#define RENEW_PAUSE_MS 100

struct place {
	TAILQ_ENTRY(place) link;
	struct holding *holding; /* NULL: stands nowhere */
	struct hold *hold;
};
TAILQ_HEAD(places, place);

struct hold {
	struct limits *limits;
	struct ticket *ticket; /* waits for the answer; NULL once it has it, or has gone */
	bool is_answered;
	struct place places[LIMIT_KINDS];
	char id[40];
};

struct holding {
	UT_hash_handle hh;
	TAILQ_ENTRY(holding) order, returning;
	struct places held, returned; /* the second is not empty while it stands in `returning` */
	int64_t renewed_ms;
	char key[];
};

/* --- holdings ----------------------------------------------------------------------------------------------------- */

static struct holding *holding_find(struct limits *limits, const char *key)
{
	size_t len = strlen(key);
	unsigned hash = limit_hash(limits, key, len);
	struct shared *shared = &limits->shared;
	struct holding *holding;

	HASH_FIND_BYHASHVALUE(hh, shared->index, key, (unsigned)len, hash, holding);
	if (holding)
		return holding;
	holding = calloc(1, sizeof *holding + len + 1);
	if (!holding)
		return NULL;
	memcpy(holding->key, key, len + 1);
	TAILQ_INIT(&holding->held);
	TAILQ_INIT(&holding->returned);
	holding->renewed_ms = clock_ms();
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, shared->index, holding->key, (unsigned)len, hash, holding);
	if (TAILQ_EMPTY(&shared->order))
		alarm_set(&shared->renewal, holding->renewed_ms + RENEW_MS);
	TAILQ_INSERT_TAIL(&shared->order, holding, order);
	return holding;
}

/* It goes when nothing stands in it. */
static void holding_settle(struct shared *shared, struct holding *holding)
{
	if (!TAILQ_EMPTY(&holding->held) || !TAILQ_EMPTY(&holding->returned))
		return;
	/* It stands in the index. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DEL(shared->index, holding);
	TAILQ_REMOVE(&shared->order, holding, order);
	free(holding);
}

/* 0 or -ENOMEM. */
static int place_join(struct hold *hold, enum limit_kind kind, const char *key)
{
	struct place *place = &hold->places[kind];
	struct holding *holding = holding_find(hold->limits, key);

	if (!holding)
		return -ENOMEM;
	*place = (struct place){.holding = holding, .hold = hold};
	TAILQ_INSERT_TAIL(&holding->held, place, link);
	return 0;
}

static void hold_free_if_placeless(struct hold *hold)
{
	if (!hold->places[LIMIT_CLIENT].holding && !hold->places[LIMIT_HOST].holding)
		free(hold);
}

/* What Redis may have of it runs out there. */
static void hold_drop(struct hold *hold)
{
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		struct holding *holding = hold->places[kind].holding;

		if (!holding)
			continue;
		TAILQ_REMOVE(&holding->held, &hold->places[kind], link);
		holding_settle(&hold->limits->shared, holding);
	}
	free(hold);
}

static void hold_give_back(struct hold *hold)
{
	struct shared *shared = &hold->limits->shared;

	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		struct place *place = &hold->places[kind];

		if (!place->holding)
			continue;
		if (TAILQ_EMPTY(&place->holding->returned))
			TAILQ_INSERT_TAIL(&shared->returning, place->holding, returning);
		TAILQ_REMOVE(&place->holding->held, place, link);
		TAILQ_INSERT_TAIL(&place->holding->returned, place, link);
	}
	loop_again(hold->limits->loop);
	hold_free_if_placeless(hold);
}

/* Sends a script, or a command (`script` is -1). Nobody waits: what cannot be sent runs out, or is renewed next time. */
static void say(struct limits *limits, int script, const struct word *words, size_t count)
{
	struct store *store = pool_store(limits->pool);
	int r = -EPERM;

	if (!pool_is_newer(limits->pool))
		r = script < 0 ? store_command(store, STORE_IDEMPOTENT, words, count, NULL, NULL)
			       : store_script(store, (enum script_id)script, STORE_IDEMPOTENT,
					      words, count, NULL, NULL);
	if (r)
		log_debug("held requests run out in the store", LOG_TEXT("why", result_word(r)));
}

/* --- giving back -------------------------------------------------------------------------------------------------- */

static void place_leave(struct place *place)
{
	TAILQ_REMOVE(&place->holding->returned, place, link);
	place->holding = NULL;
	/* It left the list before it was freed. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	hold_free_if_placeless(place->hold);
}

/* One call for the first of those that are to be given back. */
static void return_some(struct limits *limits, struct holding *holding)
{
	struct word words[2 + IDS_MAX] = {WORD("ZREM"), WORD(holding->key)};
	struct place *place;
	size_t count = 2;

	TAILQ_FOREACH (place, &holding->returned, link) {
		words[count++] = WORD(place->hold->id);
		if (count == 2 + IDS_MAX)
			break;
	}
	say(limits, -1, words, count);
	while (count-- > 2)
		place_leave(TAILQ_FIRST(&holding->returned));
}

/* At the end of each turn. */
static void return_all(void *arg)
{
	struct limits *limits = arg;
	struct shared *shared = &limits->shared;
	struct holding *holding;

	while ((holding = TAILQ_FIRST(&shared->returning))) {
		while (!TAILQ_EMPTY(&holding->returned))
			return_some(limits, holding);
		TAILQ_REMOVE(&shared->returning, holding, returning);
		holding_settle(shared, holding);
	}
}

/* --- renewing ----------------------------------------------------------------------------------------------------- */

/* Returns how many calls it took. */
static int renew(struct limits *limits, struct holding *holding)
{
	struct word words[2 + IDS_MAX] = {WORD(holding->key), WORD("")};
	struct place *place;
	size_t count = 2;
	int calls = 0;

	TAILQ_FOREACH (place, &holding->held, link) {
		words[count++] = WORD(place->hold->id);
		if (count < 2 + IDS_MAX && TAILQ_NEXT(place, link))
			continue;
		say(limits, SCRIPT_LIMIT_RENEW, words, count);
		count = 2;
		calls++;
	}
	return calls;
}

static void on_renewal(void *arg)
{
	struct limits *limits = arg;
	struct shared *shared = &limits->shared;
	int64_t now_ms = clock_ms();
	struct holding *holding;
	int calls = 0;

	while ((holding = TAILQ_FIRST(&shared->order)) && calls < RENEWALS_MAX &&
	       holding->renewed_ms + RENEW_MS <= now_ms) {
		calls += renew(limits, holding);
		holding->renewed_ms = now_ms;
		TAILQ_REMOVE(&shared->order, holding, order);
		TAILQ_INSERT_TAIL(&shared->order, holding, order);
	}
	if (holding && holding->renewed_ms + RENEW_MS > now_ms)
		alarm_set(&shared->renewal, holding->renewed_ms + RENEW_MS);
	else if (holding)
		alarm_set(&shared->renewal, now_ms + RENEW_PAUSE_MS);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct hold *hold = arg;
	struct ticket *ticket = hold->ticket;
	int64_t code = reply_integer(reply_at(reply, 0), -1);
	int64_t wait_ms = reply_integer(reply_at(reply, 1), 0);

	if (!result)
		result = limit_reason(code);
	hold->ticket = NULL;
	hold->is_answered = true;
	if (result)
		hold_drop(hold);
	else if (!ticket)
		hold_give_back(hold);
	if (ticket)
		ticket_answer(ticket, result, result && wait_ms == 0 ? LIMIT_RETRY_MS : wait_ms);
}

/* '#' stands in no encoded name. 0 or -EIO. */
static int print_digest(const char *name, char ret[static KEY_PART_SIZE])
{
	uint8_t digest[DIGEST_BYTES];
	int r = digest_hmac(digest, "limit", strlen("limit"), name, strlen(name));

	if (r)
		return r;
	ret[0] = '#';
	hex_print(digest, sizeof digest, ret + 1);
	return 0;
}

int limit_keys(const struct pool_keys *keys, enum limit_kind kind, const char *name,
	       char ret_held[static LIMIT_KEY_SIZE], char ret_due[static LIMIT_KEY_SIZE])
{
	static const char *const words[LIMIT_KINDS] = {"client", "host"};
	char part[KEY_PART_SIZE];
	int r = 0;

	if (strlen(name) > KEY_PART_MAX)
		r = print_digest(name, part);
	else
		key_part(name, part);
	if (r)
		return r;
	snprintf(ret_held, LIMIT_KEY_SIZE, "%s:pool:limit:%s:%s", keys->tag, words[kind], part);
	snprintf(ret_due, LIMIT_KEY_SIZE, "%s:rate", ret_held);
	return 0;
}

/* The keys of limit.lua into `keys`, and a place where something is held at a time. 0 or -errno. */
static int make_keys(struct hold *hold, char keys[2 * LIMIT_KINDS][LIMIT_KEY_SIZE],
		     const char *const names[LIMIT_KINDS])
{
	const struct limits *limits = hold->limits;

	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		int r = limit_keys(pool_keys(limits->pool), kind, names[kind], keys[2 * kind],
				   keys[2 * kind + 1]);

		if (!r && limits->limits[kind].concurrent > 0)
			r = place_join(hold, kind, keys[2 * kind]);
		if (r)
			return r;
	}
	return 0;
}

/* 0 or -errno. */
static int ask(struct hold *hold, const char *const names[LIMIT_KINDS])
{
	struct limits *limits = hold->limits;
	char keys[2 * LIMIT_KINDS][LIMIT_KEY_SIZE], numbers[2 * LIMIT_KINDS][24];
	int r = make_keys(hold, keys, names);

	if (r)
		return r;
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		snprintf(numbers[2 * kind], 24, "%" PRId64, limits->limits[kind].concurrent);
		snprintf(numbers[2 * kind + 1], 24, "%" PRId64, limits->limits[kind].rate);
	}
	return store_script(pool_store(limits->pool), SCRIPT_LIMIT, 0,
			    (struct word[]){WORD(keys[0]), WORD(keys[1]), WORD(keys[2]),
					    WORD(keys[3]), WORD(""), WORD(hold->id),
					    WORD(numbers[0]), WORD(numbers[1]), WORD(numbers[2]),
					    WORD(numbers[3])},
			    10, on_answer, hold);
}

int shared_take(struct limits *limits, struct ticket *ticket, const char *const names[LIMIT_KINDS])
{
	struct shared *shared = &limits->shared;
	struct hold *hold;
	int r;

	if (pool_is_newer(limits->pool))
		return REASON_STORE_NEWER;
	hold = calloc(1, sizeof *hold);
	if (!hold)
		return -ENOMEM;
	hold->limits = limits;
	hold->ticket = ticket;
	snprintf(hold->id, sizeof hold->id, "%s-%" PRIu64, shared->holder, ++shared->holders);
	r = ask(hold, names);
	if (r) {
		hold_drop(hold);
		return r == -ENOBUFS ? REASON_STORE_NOT_DONE : r;
	}
	ticket->call = hold;
	return -EINPROGRESS;
}

void shared_return(struct limits *limits, void *call)
{
	struct hold *hold = call;

	if (limits->is_over)
		free(hold);
	else if (hold->is_answered)
		hold_give_back(hold);
	else
		hold->ticket = NULL;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int shared_init(struct limits *limits)
{
	struct shared *shared = &limits->shared;
	uint8_t random[8];
	int r = random_bytes(random, sizeof random);

	if (r || !limits->pool)
		return r;
	hex_print(random, sizeof random, shared->holder);
	TAILQ_INIT(&shared->order);
	TAILQ_INIT(&shared->returning);
	alarm_init(&shared->renewal, limits->loop, on_renewal, limits);
	shared->hook = (struct turn_hook){.run = return_all, .arg = limits};
	loop_hook(limits->loop, &shared->hook);
	return 0;
}

void shared_fini(struct limits *limits)
{
	struct shared *shared = &limits->shared;
	struct holding *holding, *next;

	if (!limits->pool)
		return;
	loop_unhook(limits->loop, &shared->hook);
	alarm_fini(&shared->renewal);
	holding = shared->index;
	HASH_CLEAR(hh, shared->index);
	for (; holding; holding = next) {
		next = holding->hh.next;
		while (!TAILQ_EMPTY(&holding->returned))
			place_leave(TAILQ_FIRST(&holding->returned));
		free(holding);
	}
}
