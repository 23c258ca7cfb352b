/* doctor_orphans.c - what belongs together and does not stand together: after keys were restored or deleted one by
 * one. Scripts write both or none. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "queue/claim.h"

/* Looked at in pages, and no more than this of each kind. */
#define LOOKED_MAX ((size_t)100000)
#define PAGE_MAX ((size_t)1024) /* a small hash answers whole, whatever COUNT says */
#define MEND_MAX ((size_t)128)

enum kind { CLAIMS, LEASES, LATER, KINDS };

static const struct {
	const char *word;        /* for queue_mend.lua */
	const char *scan, *page; /* what is walked through; pages of claims carry payloads */
	enum queue_key key;
	const char *asks; /* for one of them in its own key, and for its counterpart */
	const char *asks_other;
	enum queue_key other;
	const char *finding, *cure;
} kinds[KINDS] = {
    [CLAIMS] = {"claims", "HSCAN", "16", QUEUE_CLAIMS, "HEXISTS", "ZSCORE", QUEUE_LEASES,
		"claims without a lease: nobody would collect them",
		"given a lease that has ended"},
    [LEASES] = {"leases", "ZSCAN", "256", QUEUE_LEASES, "ZSCORE", "HEXISTS", QUEUE_CLAIMS,
		"leases without a claim", "removed"},
    [LATER] = {"later", "ZSCAN", "256", QUEUE_LATER, "ZSCORE", "HEXISTS", QUEUE_HELD,
	       "due times without a task", "removed"},
};

struct orphan {
	struct orphans *orphans;
	char name[CLAIM_NAME_MAX + 1]; /* or id */
	bool is_there, has_other;
};

/* One walk. */
struct orphans {
	struct doctor *d;
	enum kind kind;
	char cursor[24];
	struct orphan page[PAGE_MAX];
	size_t count; /* of the page */
	size_t asked; /* and not answered */
	size_t looked, found;
	int64_t mended;
	int result;
};

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void take_page(struct orphans *o, const struct reply *reply)
{
	const struct reply *elements = reply_at(reply, 1);
	size_t len;

	snprintf(o->cursor, sizeof o->cursor, "%s", reply_text(reply_at(reply, 0), NULL));
	o->count = 0;
	for (size_t i = 0; i < reply_count(elements) && o->count < PAGE_MAX; i += 2) {
		const char *name = reply_text(reply_at(elements, i), &len);

		if (len > CLAIM_NAME_MAX || strlen(name) != len)
			continue; /* none of ours: a foreign hand's, which stays */
		o->page[o->count] = (struct orphan){.orphans = o};
		memcpy(o->page[o->count++].name, name, len + 1);
	}
	o->looked += reply_count(elements) / 2;
}

static void on_page(int result, const struct reply *reply, void *arg)
{
	struct orphans *o = arg;

	if (!result)
		take_page(o, reply);
	session_answered(&o->d->session, result, result ? reply_text(reply, NULL) : "");
}

static int read_page(struct orphans *o)
{
	const struct queue_keys *keys = queue_keys(o->d->session.queue);
	const struct word words[] = {WORD(kinds[o->kind].scan), queue_key(keys, kinds[o->kind].key),
				     WORD(o->cursor), WORD("COUNT"), WORD(kinds[o->kind].page)};
	int r = store_command(o->d->session.store, STORE_IDEMPOTENT, words, 5, on_page, o);

	return r ? r : session_wait(&o->d->session);
}

static bool says_yes(const struct reply *reply)
{
	return reply_kind(reply) == REPLY_TEXT || reply_integer(reply, 0) == 1;
}

static void answered(struct orphans *o, int result, const struct reply *reply)
{
	if (result && !o->result)
		o->result = result;
	if (--o->asked == 0)
		session_answered(&o->d->session, o->result,
				 o->result ? reply_text(reply, NULL) : "");
}

static void on_there(int result, const struct reply *reply, void *arg)
{
	struct orphan *orphan = arg;

	orphan->is_there = says_yes(reply);
	answered(orphan->orphans, result, reply);
}

static void on_other(int result, const struct reply *reply, void *arg)
{
	struct orphan *orphan = arg;

	orphan->has_other = says_yes(reply);
	answered(orphan->orphans, result, reply);
}

static int ask_one(struct orphans *o, struct orphan *orphan)
{
	const struct queue_keys *keys = queue_keys(o->d->session.queue);
	const struct word there[] = {WORD(kinds[o->kind].asks), queue_key(keys, kinds[o->kind].key),
				     WORD(orphan->name)};
	const struct word other[] = {WORD(kinds[o->kind].asks_other),
				     queue_key(keys, kinds[o->kind].other), WORD(orphan->name)};
	int r = store_command(o->d->session.store, STORE_IDEMPOTENT, there, 3, on_there, orphan);

	o->asked += !r;
	if (!r) {
		r = store_command(o->d->session.store, STORE_IDEMPOTENT, other, 3, on_other,
				  orphan);
		o->asked += !r;
	}
	return r;
}

/* Keeps those of the page that have no counterpart. */
static int sift(struct orphans *o)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < o->count && !r; i++)
		r = ask_one(o, &o->page[i]);
	if (o->asked) {
		int answer = session_wait(&o->d->session);

		r = r ? r : answer;
	}
	for (size_t i = 0; i < o->count && !r; i++)
		if (o->page[i].is_there && !o->page[i].has_other)
			o->page[kept++] = o->page[i];
	o->count = kept;
	return r;
}

/* --- mending ------------------------------------------------------------------------------------------------------ */

static void on_mended(int result, const struct reply *reply, void *arg)
{
	struct orphans *o = arg;

	o->mended += result ? 0 : reply_integer(reply, 0);
	session_answered(&o->d->session, result, result ? reply_text(reply, NULL) : "");
}

/* The script looks itself once more: what was settled meanwhile is no orphan. */
static int mend(struct orphans *o)
{
	const struct queue_keys *keys = queue_keys(o->d->session.queue);
	struct word words[6 + MEND_MAX] = {
	    queue_key(keys, QUEUE_CLAIMS), queue_key(keys, QUEUE_LEASES),
	    queue_key(keys, QUEUE_HELD),   queue_key(keys, QUEUE_LATER),
	    queue_key(keys, QUEUE_STATS),  WORD(kinds[o->kind].word)};
	int r = 0;

	for (size_t at = 0; at < o->count && !r; at += MEND_MAX) {
		size_t count = 0;

		for (; count < MEND_MAX && at + count < o->count; count++)
			words[6 + count] = WORD(o->page[at + count].name);
		r = store_script(o->d->session.store, SCRIPT_QUEUE_MEND, STORE_IDEMPOTENT, words,
				 6 + count, on_mended, o);
		if (!r)
			r = session_wait(&o->d->session);
	}
	return r;
}

/* --- a kind ------------------------------------------------------------------------------------------------------- */

/* Between two questions a claim may end, or begin: only who has no counterpart twice is an orphan. */
static int judge_page(struct orphans *o, bool is_fixing)
{
	int r = sift(o);

	if (!r && o->count)
		r = sift(o);
	o->found += r ? 0 : o->count;
	return r || !is_fixing ? r : mend(o);
}

static void tell(struct orphans *o, int r, bool is_fixing)
{
	bool is_whole = !strcmp(o->cursor, "0");
	char part[64] = "";

	if (!is_whole)
		snprintf(part, sizeof part, " (the first %zu were looked at)", o->looked);
	if (r)
		doctor_say(o->d, FINDING_ERROR, "queue-orphans", "%s cannot be looked at: %s",
			   kinds[o->kind].word,
			   *o->d->session.error ? o->d->session.error : result_word(r));
	else if (!o->found)
		doctor_say(o->d, FINDING_OK, "queue-orphans", "no %s%s", kinds[o->kind].finding,
			   part);
	else if (is_fixing)
		doctor_say(o->d, FINDING_OK, "queue-orphans", "%zu %s; %" PRId64 " were %s%s",
			   o->found, kinds[o->kind].finding, o->mended, kinds[o->kind].cure, part);
	else
		doctor_say(o->d, FINDING_WARNING, "queue-orphans",
			   "%zu %s%s; 'fairlead doctor --fix' mends them", o->found,
			   kinds[o->kind].finding, part);
}

static void check_kind(struct doctor *d, enum kind kind)
{
	static struct orphans o; /* large */
	bool is_fixing = conf_bool(&d->session.cli->conf, CONF_FIX);
	int r;

	o = (struct orphans){.d = d, .kind = kind, .cursor = "0"};
	do {
		r = read_page(&o);
		if (!r)
			r = judge_page(&o, is_fixing);
	} while (!r && strcmp(o.cursor, "0") != 0 && o.looked < LOOKED_MAX);
	tell(&o, r, is_fixing);
}

void doctor_orphans(struct doctor *d)
{
	for (int kind = 0; kind < KINDS; kind++)
		check_kind(d, (enum kind)kind);
}
