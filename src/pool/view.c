/* view.c - what a pool holds, for people. */
#include "pool/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/packed.h"
#include "pool/traffic.h"

#define PAGE "1000"
#define SLICE ((size_t)512)   /* the words of one command are bounded */
#define COOLDOWNS_READ "9999" /* all, as lua/cooldown.lua bounds them */

/* --- all members -------------------------------------------------------------------------------------------------- */

struct scan {
	struct pool *pool;
	view_cb *cb;
	void *arg;
	enum pool_key set; /* KEY_POOL, then KEY_PARKED */
	char cursor[24];
	size_t count, size, page; /* views[page..count) wait for their offsets, health and leases */
	struct member_view *views;
};

static void scan_free(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free(scan->views[i].id);
	free(scan->views);
	free(scan);
}

static int by_id(const void *a, const void *b)
{
	const struct member_view *x = a, *y = b;
	size_t len = x->id_len < y->id_len ? x->id_len : y->id_len;
	int order = memcmp(x->id, y->id, len);

	if (order)
		return order;
	if (x->id_len != y->id_len)
		return x->id_len < y->id_len ? -1 : 1;
	return y->is_eligible - x->is_eligible;
}

static int by_turn(const void *a, const void *b)
{
	const struct member_view *x = a, *y = b;

	if (x->is_eligible != y->is_eligible)
		return y->is_eligible - x->is_eligible;
	if (x->score < y->score || x->score > y->score)
		return x->score < y->score ? -1 : 1;
	return by_id(a, b);
}

/* ZSCAN may show a member twice, and a move between the two sets once in each. */
static void drop_repeats(struct scan *scan)
{
	size_t kept = 0;

	qsort(scan->views, scan->count, sizeof *scan->views, by_id);
	for (size_t i = 0; i < scan->count; i++) {
		struct member_view *last = kept ? &scan->views[kept - 1] : NULL;

		if (last && last->id_len == scan->views[i].id_len &&
		    !memcmp(last->id, scan->views[i].id, last->id_len))
			free(scan->views[i].id);
		else
			scan->views[kept++] = scan->views[i];
	}
	scan->count = kept;
}

static void scan_end(struct scan *scan, int result, const char *error)
{
	if (!result && scan->count) {
		drop_repeats(scan);
		qsort(scan->views, scan->count, sizeof *scan->views, by_turn);
	}
	scan->cb(result, error, scan->views, result ? 0 : scan->count, scan->arg);
	scan_free(scan);
}

static int keep_member(struct scan *scan, const struct reply *id, const struct reply *score)
{
	struct member_view view = {.is_eligible = scan->set == KEY_POOL};
	const char *text = reply_text(id, &view.id_len);

	if (reply_double(score, &view.score))
		return 0;
	if (scan->count == scan->size) {
		size_t size = scan->size ? 2 * scan->size : 1024;
		struct member_view *views = realloc(scan->views, size * sizeof *views);

		if (!views)
			return -ENOMEM;
		scan->views = views;
		scan->size = size;
	}
	view.id = malloc(view.id_len + 1);
	if (!view.id)
		return -ENOMEM;
	memcpy(view.id, text, view.id_len + 1);
	view.allocations = view.score;
	view.reason = -1;
	scan->views[scan->count++] = view;
	return 0;
}

static void next_page(struct scan *scan);

/* Asks for one field of each member of the slice. */
static int read_slice(struct scan *scan, enum pool_key hash, store_cb *cb)
{
	struct word words[2 + SLICE];
	size_t n = scan->count - scan->page;

	n = n < SLICE ? n : SLICE;
	words[0] = WORD("HMGET");
	words[1] = pool_key(pool_keys(scan->pool), hash);
	for (size_t i = 0; i < n; i++)
		words[2 + i] = (struct word){scan->views[scan->page + i].id,
					     scan->views[scan->page + i].id_len};
	return store_command(pool_store(scan->pool), STORE_IDEMPOTENT, words, 2 + n, cb, scan);
}

/* The result of a slice that was asked for, the failure told. */
static int slice_result(struct scan *scan, int result, const struct reply *reply)
{
	if (!result && !reply_count(reply))
		result = REASON_STORE_REFUSED; /* no server answers HMGET so */
	if (result)
		scan_end(scan, result, reply_text(reply, NULL));
	return result;
}

static int reason_of(const char *health)
{
	char word[40];

	packed_copy(health, "reason", word, sizeof word);
	for (int reason = 0; *word && reason < REASON_COUNT; reason++)
		if (!strcmp(reason_row(reason)->word, word))
			return reason;
	return -1;
}

static enum view_health health_of(const char *health)
{
	char state[8];

	packed_copy(health, "state", state, sizeof state);
	if (!*state)
		return VIEW_UNJUDGED;
	return strcmp(state, "up") ? VIEW_DOWN : VIEW_UP;
}

static void on_lives(int result, const struct reply *reply, void *arg)
{
	struct scan *scan = arg;

	if (slice_result(scan, result, reply))
		return;
	for (size_t i = 0; i < reply_count(reply); i++)
		scan->views[scan->page + i].leases = reply_integer(reply_at(reply, i), 0);
	scan->page += reply_count(reply);
	next_page(scan);
}

static void on_healths(int result, const struct reply *reply, void *arg)
{
	struct scan *scan = arg;

	if (slice_result(scan, result, reply))
		return;
	for (size_t i = 0; i < reply_count(reply); i++) {
		struct member_view *view = &scan->views[scan->page + i];
		const char *health = reply_text(reply_at(reply, i), NULL);

		view->health = health_of(health);
		view->reason = reason_of(health);
	}
	if (read_slice(scan, KEY_LIVE, on_lives))
		scan_end(scan, REASON_STORE_NOT_DONE, "");
}

static void on_offsets(int result, const struct reply *reply, void *arg)
{
	struct scan *scan = arg;

	if (slice_result(scan, result, reply))
		return;
	for (size_t i = 0; i < reply_count(reply); i++) {
		struct member_view *view = &scan->views[scan->page + i];
		double offset;

		if (!reply_double(reply_at(reply, i), &offset))
			view->allocations = view->score - offset;
	}
	if (read_slice(scan, KEY_HEALTH, on_healths))
		scan_end(scan, REASON_STORE_NOT_DONE, "");
}

static void on_page(int result, const struct reply *reply, void *arg)
{
	struct scan *scan = arg;
	const struct reply *items = reply_at(reply, 1);

	if (result) {
		scan_end(scan, result, reply_text(reply, NULL));
		return;
	}
	snprintf(scan->cursor, sizeof scan->cursor, "%s", reply_text(reply_at(reply, 0), NULL));
	for (size_t i = 0; i + 1 < reply_count(items); i += 2) {
		if (keep_member(scan, reply_at(items, i), reply_at(items, i + 1))) {
			scan_end(scan, REASON_INTERNAL, "out of memory");
			return;
		}
	}
	next_page(scan);
}

static int read_page(struct scan *scan)
{
	struct word words[] = {WORD("ZSCAN"), pool_key(pool_keys(scan->pool), scan->set),
			       WORD(scan->cursor), WORD("COUNT"), WORD(PAGE)};

	return store_command(pool_store(scan->pool), STORE_IDEMPOTENT, words, 5, on_page, scan);
}

static void next_page(struct scan *scan)
{
	int r;

	if (scan->page < scan->count) {
		r = read_slice(scan, KEY_OFFSET, on_offsets);
	} else if (strcmp(scan->cursor, "0") || scan->set == KEY_POOL) {
		if (!strcmp(scan->cursor, "0"))
			scan->set = KEY_PARKED;
		r = read_page(scan);
	} else {
		scan_end(scan, 0, "");
		return;
	}
	if (r)
		scan_end(scan, REASON_STORE_NOT_DONE, "");
}

int pool_view(struct pool *pool, view_cb *cb, void *arg)
{
	struct scan *scan = calloc(1, sizeof *scan);
	int r;

	if (!scan)
		return -ENOMEM;
	*scan = (struct scan){.pool = pool, .cb = cb, .arg = arg, .set = KEY_POOL, .cursor = "0"};
	r = read_page(scan);
	if (r)
		free(scan);
	return r;
}

/* --- one member --------------------------------------------------------------------------------------------------- */

struct telling {
	struct pool *pool;
	story_cb *cb;
	void *arg;
	struct member_story story;
	int step;
	char texts[3][4096];
	char hosts[COOLDOWNS_TOLD][256];
	char *field; /* room for a prefix and the id */
	char id[];
};

enum {
	ASK_SCORE,
	ASK_PARKED,
	ASK_OFFSET,
	ASK_PROXIES,
	ASK_ADMIN,
	ASK_HEALTH,
	ASK_SECRET,
	ASK_LIVE,
	ASK_IN,
	ASK_OUT,
	ASK_STREAK,
	ASK_DUE,
	ASK_TIME,
	ASK_COOLDOWNS,
	ASK_END
};

static const struct {
	const char *command;
	enum pool_key key;
	const char *prefix;
} questions[ASK_END] = {
    [ASK_SCORE] = {"ZSCORE", KEY_POOL, ""},       [ASK_PARKED] = {"ZSCORE", KEY_PARKED, ""},
    [ASK_OFFSET] = {"HGET", KEY_OFFSET, ""},      [ASK_PROXIES] = {"HGET", KEY_PROXIES, ""},
    [ASK_ADMIN] = {"HGET", KEY_ADMIN, ""},        [ASK_HEALTH] = {"HGET", KEY_HEALTH, ""},
    [ASK_SECRET] = {"HEXISTS", KEY_SECRETS, ""},  [ASK_LIVE] = {"HGET", KEY_LIVE, ""},
    [ASK_IN] = {"HGET", KEY_TRAFFIC, TRAFFIC_IN}, [ASK_OUT] = {"HGET", KEY_TRAFFIC, TRAFFIC_OUT},
    [ASK_STREAK] = {"HGET", KEY_STREAKS, ""},     [ASK_DUE] = {"ZSCORE", KEY_DUE, ""},
};

static void take_score(struct member_story *story, const struct reply *reply, bool is_eligible)
{
	double score;

	if (story->has_score || reply_double(reply, &score))
		return;
	story->has_score = story->is_known = true;
	story->view.is_eligible = is_eligible;
	story->view.score = story->view.allocations = score;
}

/* Entries are "host TAB member", those that end last first. */
static void take_cooldowns(struct telling *telling, const struct reply *reply)
{
	struct member_story *story = &telling->story;
	double until;

	for (size_t i = 0; i + 1 < reply_count(reply); i += 2) {
		const char *entry = reply_text(reply_at(reply, i), NULL);
		size_t host_len = strcspn(entry, "\t");
		char *host = telling->hosts[story->cooldown_count];

		if (!entry[host_len] || strcmp(entry + host_len + 1, telling->id) ||
		    host_len >= sizeof telling->hosts[0] ||
		    reply_double(reply_at(reply, i + 1), &until) || until <= (double)story->now_ms)
			continue;
		memcpy(host, entry, host_len);
		host[host_len] = '\0';
		story->cooldowns[story->cooldown_count].host = host;
		story->cooldowns[story->cooldown_count].until_ms = (int64_t)until;
		if (++story->cooldown_count == COOLDOWNS_TOLD)
			return;
	}
}

static void take_text(struct telling *telling, const struct reply *reply)
{
	struct member_story *story = &telling->story;

	snprintf(telling->texts[telling->step - ASK_PROXIES], sizeof telling->texts[0], "%s",
		 reply_text(reply, NULL));
	story->is_known =
	    story->is_known || (telling->step == ASK_PROXIES && reply_kind(reply) == REPLY_TEXT);
	if (telling->step == ASK_HEALTH) {
		story->view.health = health_of(story->health);
		story->view.reason = reason_of(story->health);
	}
}

static void take_answer(struct telling *telling, const struct reply *reply)
{
	struct member_story *story = &telling->story;
	double offset, due;

	switch (telling->step) {
	case ASK_SCORE:
	case ASK_PARKED:
		take_score(story, reply, telling->step == ASK_SCORE);
		break;
	case ASK_OFFSET:
		if (!reply_double(reply, &offset))
			story->view.allocations -= offset;
		break;
	case ASK_SECRET:
		story->has_secret = reply_integer(reply, 0) == 1;
		break;
	case ASK_LIVE:
		story->view.leases = reply_integer(reply, 0);
		break;
	case ASK_IN:
		story->bytes_in = reply_integer(reply, 0);
		break;
	case ASK_OUT:
		story->bytes_out = reply_integer(reply, 0);
		break;
	case ASK_STREAK:
		story->streak = reply_integer(reply, 0);
		break;
	case ASK_DUE:
		story->due_ms = reply_double(reply, &due) ? -1 : (int64_t)due;
		break;
	case ASK_TIME:
		story->now_ms = reply_integer(reply_at(reply, 0), 0) * 1000 +
				reply_integer(reply_at(reply, 1), 0) / 1000;
		break;
	case ASK_COOLDOWNS:
		take_cooldowns(telling, reply);
		break;
	default:
		take_text(telling, reply);
	}
}

static int ask(struct telling *telling);

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct telling *telling = arg;

	if (!result) {
		take_answer(telling, reply);
		if (++telling->step < ASK_END) {
			if (!ask(telling))
				return;
			result = REASON_STORE_NOT_DONE;
		}
	}
	telling->cb(result, reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "",
		    &telling->story, telling->arg);
	free(telling);
}

/* A question about one field of the member. */
static int ask_field(struct telling *telling)
{
	const char *prefix = questions[telling->step].prefix;
	struct word words[] = {WORD(questions[telling->step].command),
			       pool_key(pool_keys(telling->pool), questions[telling->step].key),
			       {telling->field, strlen(prefix) + strlen(telling->id)}};

	stpcpy(stpcpy(telling->field, prefix), telling->id);
	return store_command(pool_store(telling->pool), STORE_IDEMPOTENT, words, 3, on_answer,
			     telling);
}

static int ask(struct telling *telling)
{
	const struct word cooldowns[] = {
	    WORD("ZRANGE"), pool_key(pool_keys(telling->pool), KEY_COOLDOWN),
	    WORD("0"),      WORD(COOLDOWNS_READ),
	    WORD("REV"),    WORD("WITHSCORES")};
	const struct word now[] = {WORD("TIME")};

	if (telling->step == ASK_COOLDOWNS)
		return store_command(pool_store(telling->pool), STORE_IDEMPOTENT, cooldowns, 6,
				     on_answer, telling);
	if (telling->step == ASK_TIME)
		return store_command(pool_store(telling->pool), STORE_IDEMPOTENT, now, 1, on_answer,
				     telling);
	return ask_field(telling);
}

int pool_story(struct pool *pool, const char *id, story_cb *cb, void *arg)
{
	const size_t size = strlen(id) + 1;
	struct telling *telling = calloc(1, sizeof *telling + 2 * size + sizeof TRAFFIC_OUT);
	int r;

	if (!telling)
		return -ENOMEM;
	*telling = (struct telling){.pool = pool, .cb = cb, .arg = arg};
	strcpy(telling->id, id);
	telling->field = telling->id + size;
	telling->story.view.id = telling->id;
	telling->story.view.id_len = strlen(id);
	telling->story.proxies = telling->texts[0];
	telling->story.admin = telling->texts[1];
	telling->story.health = telling->texts[2];
	r = ask(telling);
	if (r)
		free(telling);
	return r;
}
