/* change.c - add, remove, pause, restore ...: a chain of idempotent steps for one batch of members. */
#include "pool/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/traffic.h"

#define STEPS_MAX 8
#define NEWCOMER_MS 10 /* between the first checks of two newcomers */
#define WORDS_MAX (16 + 2 * CHANGE_MAX)

struct job;

/* A step sends one command about the members that are still in question, or finds that there is nothing to send. */
struct step {
	int (*send)(struct job *job);
	void (*take)(struct job *job, const struct reply *reply); /* NULL: the reply says nothing */
};

struct job {
	struct pool *pool;
	const struct step *step; /* under way; a row without `send` is the end */
	const char *source;
	change_cb *cb;
	void *arg;
	size_t count;
	struct change_item items[CHANGE_MAX];
	enum placed placed[CHANGE_MAX];
	bool is_skipped[CHANGE_MAX]; /* done with, or unknown to the pool */
	size_t word_count;
	struct word words[WORDS_MAX];
	size_t texts_size;
	char texts[]; /* what the items and the source point at */
};

static int nothing_to_send(void)
{
	return 1;
}

static void begin(struct job *job)
{
	job->word_count = 0;
}

static void add(struct job *job, struct word word)
{
	job->words[job->word_count++] = word;
}

static void on_step(int result, const struct reply *reply, void *arg);

static int send_command(struct job *job)
{
	return store_command(pool_store(job->pool), STORE_IDEMPOTENT, job->words, job->word_count,
			     on_step, job);
}

static int send_script(struct job *job, enum script_id id)
{
	return store_script(pool_store(job->pool), id, STORE_IDEMPOTENT, job->words,
			    job->word_count, on_step, job);
}

static void add_ids(struct job *job)
{
	for (size_t i = 0; i < job->count; i++)
		if (!job->is_skipped[i])
			add(job, WORD(job->items[i].id));
}

/* --- the steps ---------------------------------------------------------------------------------------------------- */

static int save_secrets(struct job *job)
{
	begin(job);
	add(job, WORD("HSET"));
	add(job, pool_key(pool_keys(job->pool), KEY_SECRETS));
	for (size_t i = 0; i < job->count; i++) {
		if (!job->items[i].secret)
			continue;
		add(job, WORD(job->items[i].id));
		add(job, WORD(job->items[i].secret));
	}
	return job->word_count > 2 ? send_command(job) : nothing_to_send();
}

static int drop_secrets(struct job *job)
{
	begin(job);
	add(job, WORD("HDEL"));
	add(job, pool_key(pool_keys(job->pool), KEY_SECRETS));
	add_ids(job);
	return send_command(job);
}

/* Edits one field of each member's packed value. `how`: as lua/field.lua has it. */
static int edit(struct job *job, enum pool_key hash, const char *how, const char *field,
		const char *value)
{
	begin(job);
	add(job, pool_key(pool_keys(job->pool), hash));
	add(job, WORD(how));
	add(job, WORD(field));
	for (size_t i = 0; i < job->count; i++) {
		if (job->is_skipped[i])
			continue;
		add(job, WORD(job->items[i].id));
		add(job, WORD(value));
	}
	return job->word_count > 3 ? send_script(job, SCRIPT_FIELD) : nothing_to_send();
}

static int leave_source(struct job *job)
{
	return edit(job, KEY_PROXIES, "leave", "sources", job->source);
}

static int name_source(struct job *job)
{
	return edit(job, KEY_PROXIES, "join", "sources", job->source);
}

static int mark_up(struct job *job)
{
	return edit(job, KEY_HEALTH, "set", "state", "up");
}

/* Enabled is what a member without a word about it is, too. */
static int lift_enabled(struct job *job)
{
	return edit(job, KEY_ADMIN, "lift", "state", "enabled");
}

static int mark_paused(struct job *job)
{
	return edit(job, KEY_ADMIN, "offer", "state", "paused");
}

static int lift_paused(struct job *job)
{
	return edit(job, KEY_ADMIN, "lift", "state", "paused");
}

static int mark_disabled(struct job *job)
{
	return edit(job, KEY_ADMIN, "set", "state", "disabled");
}

static int mark_expiry(struct job *job)
{
	return edit(job, KEY_ADMIN, "set", "expires_at", job->source);
}

static int mark_cap(struct job *job)
{
	return edit(job, KEY_ADMIN, "set", "max_concurrent", job->source ? job->source : "");
}

/* Nobody dated the move by hand; the next verdict counts from nothing. */
static int forget_since(struct job *job)
{
	return edit(job, KEY_HEALTH, "set", "since", "");
}

static int forget(struct job *job, const char *command, enum pool_key key)
{
	begin(job);
	add(job, WORD(command));
	add(job, pool_key(pool_keys(job->pool), key));
	add_ids(job);
	return job->word_count > 2 ? send_command(job) : nothing_to_send();
}

static int forget_streaks(struct job *job)
{
	return forget(job, "HDEL", KEY_STREAKS);
}

static int forget_failing(struct job *job)
{
	return forget(job, "ZREM", KEY_FAILING);
}

static int mark_enabled(struct job *job)
{
	return edit(job, KEY_ADMIN, "set", "state", "");
}

/* Newcomers in one call; whoever is known is left to the steps behind. */
static int enter(struct job *job, const char *admit)
{
	static const enum pool_key keys[] = {KEY_POOL,   KEY_PARKED, KEY_OFFSET, KEY_PROXIES,
					     KEY_HEALTH, KEY_RULES,  KEY_LIVE,   KEY_BUSY};

	begin(job);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		add(job, pool_key(pool_keys(job->pool), keys[i]));
	add(job, WORD(admit));
	add(job, WORD(job->source));
	for (size_t i = 0; i < job->count; i++) {
		add(job, WORD(job->items[i].id));
		add(job, WORD(job->items[i].tags ? job->items[i].tags : ""));
	}
	return send_script(job, SCRIPT_ENTER);
}

static int enter_eligible(struct job *job)
{
	return enter(job, "1");
}

static int enter_candidate(struct job *job)
{
	return enter(job, "0");
}

static void take_entries(struct job *job, const struct reply *reply)
{
	for (size_t i = 0; i < job->count; i++) {
		job->placed[i] = (enum placed)reply_integer(reply_at(reply, i), PLACED_UNKNOWN);
		job->is_skipped[i] = job->placed[i] != PLACED_UNKNOWN;
	}
}

/* Newcomers are checked soon, but not all at once. */
static int schedule(struct job *job)
{
	char delays[CHANGE_MAX][12];
	int newcomers = 0;

	begin(job);
	add(job, pool_key(pool_keys(job->pool), KEY_POOL));
	add(job, pool_key(pool_keys(job->pool), KEY_PARKED));
	add(job, pool_key(pool_keys(job->pool), KEY_ADMIN));
	add(job, pool_key(pool_keys(job->pool), KEY_DUE));
	add(job, WORD(""));
	add(job, WORD("0"));
	for (size_t i = 0; i < job->count; i++) {
		if (job->placed[i] != PLACED_JOINED && job->placed[i] != PLACED_CANDIDATE)
			continue;
		snprintf(delays[i], sizeof delays[i], "%d", NEWCOMER_MS * newcomers++);
		add(job, WORD(job->items[i].id));
		add(job, WORD(delays[i]));
	}
	return newcomers ? send_script(job, SCRIPT_DUE_MEND) : nothing_to_send();
}

/* Whoever is eligible stays so. */
static int pause_parked(struct job *job)
{
	for (size_t i = 0; i < job->count; i++)
		job->is_skipped[i] = job->placed[i] != PLACED_CANDIDATE &&
				     job->placed[i] != PLACED_PARKED &&
				     job->placed[i] != PLACED_LEFT;
	return mark_paused(job);
}

static int place(struct job *job)
{
	static const enum pool_key keys[] = {KEY_POOL,    KEY_PARKED, KEY_OFFSET,
					     KEY_PROXIES, KEY_ADMIN,  KEY_HEALTH,
					     KEY_RULES,   KEY_LIVE,   KEY_BUSY};
	size_t before;

	begin(job);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		add(job, pool_key(pool_keys(job->pool), keys[i]));
	add(job, WORD(""));
	before = job->word_count;
	add_ids(job);
	return job->word_count > before ? send_script(job, SCRIPT_PLACE) : nothing_to_send();
}

static void take_places(struct job *job, const struct reply *reply)
{
	size_t answer = 0;

	for (size_t i = 0; i < job->count; i++) {
		if (job->is_skipped[i])
			continue;
		job->placed[i] =
		    (enum placed)reply_integer(reply_at(reply, answer++), PLACED_UNKNOWN);
		job->is_skipped[i] = job->placed[i] == PLACED_UNKNOWN;
	}
}

static int remove_members(struct job *job)
{
	static const enum pool_key keys[] = {KEY_POOL,    KEY_PARKED, KEY_OFFSET,
					     KEY_PROXIES, KEY_ADMIN,  KEY_HEALTH,
					     KEY_STREAKS, KEY_DUE,    KEY_BUSY};

	begin(job);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		add(job, pool_key(pool_keys(job->pool), keys[i]));
	add_ids(job);
	return send_script(job, SCRIPT_REMOVE);
}

/* What is under way through a member adds to it once more when it ends. */
static int drop_traffic(struct job *job)
{
	char *fields, *at;
	size_t size = 0;
	int r;

	for (size_t i = 0; i < job->count; i++)
		size += 2 * strlen(job->items[i].id) + sizeof TRAFFIC_IN + sizeof TRAFFIC_OUT;
	fields = at = malloc(size);
	if (!fields)
		return -ENOMEM;
	begin(job);
	add(job, WORD("HDEL"));
	add(job, pool_key(pool_keys(job->pool), KEY_TRAFFIC));
	for (size_t i = 0; i < 2 * job->count; i++) {
		char *field = at;

		at = stpcpy(at, i % 2 ? TRAFFIC_OUT : TRAFFIC_IN);
		at = stpcpy(at, job->items[i / 2].id) + 1;
		add(job, WORD(field));
	}
	r = send_command(job);
	free(fields);
	return r;
}

static void take_removals(struct job *job, const struct reply *reply)
{
	for (size_t i = 0; i < job->count; i++)
		job->placed[i] =
		    reply_integer(reply_at(reply, i), 0) ? PLACED_REMOVED : PLACED_UNKNOWN;
}

/* Credentials stand before the member that needs them and go after it. A member that the pool does not know gets no field:
 * the first placing of what the operator says only asks. */
static const struct step plans[CHANGE_COUNT][STEPS_MAX] = {
    [CHANGE_ADD] = {{save_secrets, NULL},
		    {enter_eligible, take_entries},
		    {schedule, NULL},
		    {name_source, NULL},
		    {mark_up, NULL},
		    {forget_streaks, NULL},
		    {place, take_places}},
    [CHANGE_CANDIDATE] = {{save_secrets, NULL},
			  {enter_candidate, take_entries},
			  {schedule, NULL},
			  {name_source, NULL},
			  {place, take_places}},
    [CHANGE_SHELVE] = {{save_secrets, NULL},
		       {enter_candidate, take_entries},
		       {name_source, NULL},
		       {place, take_places},
		       {pause_parked, NULL},
		       {place, take_places}},
    [CHANGE_SUPPLY] = {{save_secrets, NULL},
		       {enter_eligible, take_entries},
		       {schedule, NULL},
		       {name_source, NULL},
		       {place, take_places}},
    [CHANGE_LEAVE] = {{leave_source, NULL}, {place, take_places}},
    [CHANGE_PAUSE] = {{place, take_places},
		      {lift_enabled, NULL},
		      {mark_paused, NULL},
		      {place, take_places}},
    [CHANGE_RESUME] = {{place, take_places}, {lift_paused, NULL}, {place, take_places}},
    [CHANGE_DISABLE] = {{place, take_places}, {mark_disabled, NULL}, {place, take_places}},
    [CHANGE_ENABLE] = {{place, take_places}, {mark_enabled, NULL}, {place, take_places}},
    [CHANGE_RESTORE] = {{place, take_places},
			{mark_enabled, NULL},
			{mark_up, NULL},
			{forget_since, NULL},
			{forget_streaks, NULL},
			{forget_failing, NULL},
			{place, take_places}},
    [CHANGE_EXPIRE] = {{place, take_places}, {mark_expiry, NULL}, {place, take_places}},
    [CHANGE_CAP] = {{place, take_places}, {mark_cap, NULL}},
    [CHANGE_PLACE] = {{place, take_places}},
    [CHANGE_REMOVE] = {{remove_members, take_removals}, {drop_traffic, NULL}, {drop_secrets, NULL}},
};

/* --- the chain ---------------------------------------------------------------------------------------------------- */

/* The texts hold credentials. */
static void job_free(struct job *job)
{
	explicit_bzero(job->texts, job->texts_size);
	free(job);
}

static void finish(struct job *job, int result, const char *error)
{
	job->cb(result, error, job->placed, job->count, job->arg);
	job_free(job);
}

/* Sends the step under way or the first behind it that has something to send. 0, 1 at the end, or -errno. */
static int advance(struct job *job)
{
	int r = nothing_to_send();

	while (job->step->send && (r = job->step->send(job)) > 0)
		job->step++;
	return r;
}

static void on_step(int result, const struct reply *reply, void *arg)
{
	struct job *job = arg;
	int r;

	if (result) {
		finish(job, result, reply_text(reply, NULL));
		return;
	}
	if (job->step->take)
		job->step->take(job, reply);
	job->step++;
	r = job->step->send ? advance(job) : nothing_to_send();
	if (r)
		finish(job, r > 0 ? 0 : REASON_STORE_NOT_DONE, "");
}

static char *keep(char **at, const char *text)
{
	char *copy = *at;

	if (!text)
		return NULL;
	*at = stpcpy(copy, text) + 1;
	return copy;
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

int pool_change(struct pool *pool, enum change change, const char *source,
		const struct change_item *items, size_t count, change_cb *cb, void *arg)
{
	size_t size = size_of(source);
	struct job *job;
	char *at;
	int r;

	if (count == 0 || count > CHANGE_MAX)
		return -EINVAL;
	if (pool_is_newer(pool))
		return -EPERM;
	for (size_t i = 0; i < count; i++)
		size += size_of(items[i].id) + size_of(items[i].secret) + size_of(items[i].tags);
	job = calloc(1, sizeof *job + size);
	if (!job)
		return -ENOMEM;
	*job = (struct job){.pool = pool,
			    .step = plans[change],
			    .cb = cb,
			    .arg = arg,
			    .count = count,
			    .texts_size = size};
	at = job->texts;
	job->source = keep(&at, source);
	for (size_t i = 0; i < count; i++) {
		job->items[i].id = keep(&at, items[i].id);
		job->items[i].secret = keep(&at, items[i].secret);
		job->items[i].tags = keep(&at, items[i].tags);
	}
	r = advance(job);
	if (r)
		job_free(job);
	return r < 0 ? r : 0;
}
