/* report.c - one call of lua/report.lua, then one of place.lua for the members whose standing no longer fits. */
#include "pool/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "pool/change.h"
#include "pool/report_call.h"

#define KEYS 10
#define WORDS_OF_ONE 8
#define NUMBER_SIZE 24
#define CHANCE_END 1000000u

/* Of lua/report.lua. */
enum { MUST_PLACE = 1, HELD = 2 };

struct call {
	struct pool *pool;
	report_cb *cb;
	void *arg;
	size_t count;
	const char *members[REPORT_MAX];
	struct report_result results[REPORT_MAX];
	size_t moving_count;
	size_t moving[REPORT_MAX]; /* whose standing is to change: indexes */
	char texts[];              /* what `members` points at */
};

/* The words of one report; what they point at lives until the store has taken them. */
struct spelling {
	char age[NUMBER_SIZE], latency[NUMBER_SIZE], chance[NUMBER_SIZE];
};

static void finish(struct call *call, int result, const char *error)
{
	call->cb(result, error, call->results, result ? 0 : call->count, call->arg);
	free(call);
}

static void on_placed(int result, const char *error, const enum placed *placed, size_t count,
		      void *arg)
{
	struct call *call = arg;

	for (size_t i = 0; i < count && !result; i++)
		call->results[call->moving[i]].placed = (int)placed[i];
	finish(call, result, error);
}

/* Who dies before this is sent leaves members that their next report puts right. */
static void place(struct call *call)
{
	struct change_item items[REPORT_MAX];
	int r;

	for (size_t i = 0; i < call->moving_count; i++)
		items[i] = (struct change_item){.id = call->members[call->moving[i]]};
	r = pool_change(call->pool, CHANGE_PLACE, NULL, items, call->moving_count, on_placed, call);
	if (r)
		finish(call, r == -EPERM ? REASON_STORE_NEWER : REASON_STORE_NOT_DONE, "");
}

static void on_reported(int result, const struct reply *reply, void *arg)
{
	struct call *call = arg;

	if (result) {
		finish(call, result, reply_text(reply, NULL));
		return;
	}
	for (size_t i = 0; i < call->count; i++) {
		int64_t standing = reply_integer(reply_at(reply, 2 * i), PLACED_UNKNOWN);
		int64_t flags = reply_integer(reply_at(reply, 2 * i + 1), 0);

		call->results[i] =
		    (struct report_result){.placed = (int)standing, .is_held = (flags & HELD) != 0};
		if (flags & MUST_PLACE)
			call->moving[call->moving_count++] = i;
	}
	if (call->moving_count)
		place(call);
	else
		finish(call, 0, "");
}

static const char *outcome_word(const struct probe_report *report)
{
	if (report->is_inconclusive)
		return "inconclusive";
	if (report->reason == REASON_OK)
		return "pass";
	return reason_row(report->reason)->health == HEALTH_AUTH ? "auth" : "fail";
}

static void spell(struct word *words, struct spelling *spelling, const struct probe_report *report,
		  const char *source, uint32_t random)
{
	bool has_latency = report->reason == REASON_OK && report->latency_ms >= 0;

	snprintf(spelling->age, NUMBER_SIZE, "%" PRId64, report->age_ms > 0 ? report->age_ms : 0);
	snprintf(spelling->latency, NUMBER_SIZE, "%" PRId64, report->latency_ms);
	snprintf(spelling->chance, NUMBER_SIZE, "%" PRIu32, random % CHANCE_END);
	words[0] = WORD(report->member);
	words[1] = WORD(outcome_word(report));
	words[2] = WORD(source);
	words[3] = WORD(spelling->age);
	words[4] = WORD(has_latency ? spelling->latency : "");
	words[5] = WORD(result_word(report->reason));
	words[6] = WORD(report->facts ? report->facts : "");
	words[7] = WORD(spelling->chance);
}

static int send(struct call *call, const struct probe_report *reports, const char *source)
{
	static const enum pool_key keys[KEYS] = {KEY_POOL,    KEY_PARKED, KEY_ADMIN, KEY_HEALTH,
						 KEY_STREAKS, KEY_RULES,  KEY_DUE,   KEY_FAILING,
						 KEY_FALLEN,  KEY_ALARM};
	struct word words[KEYS + 1 + WORDS_OF_ONE * REPORT_MAX];
	struct spelling spellings[REPORT_MAX];
	uint32_t randoms[REPORT_MAX];
	int r = random_bytes(randoms, sizeof randoms);

	if (r)
		return r;
	for (size_t i = 0; i < KEYS; i++)
		words[i] = pool_key(pool_keys(call->pool), keys[i]);
	words[KEYS] = WORD("");
	for (size_t i = 0; i < call->count; i++)
		spell(&words[KEYS + 1 + WORDS_OF_ONE * i], &spellings[i], &reports[i], source,
		      randoms[i]);
	/* Not idempotent: a pass would count twice. */
	return store_script(pool_store(call->pool), SCRIPT_REPORT, 0, words,
			    KEYS + 1 + WORDS_OF_ONE * call->count, on_reported, call);
}

int report_call(struct pool *pool, const struct probe_report *reports, size_t count,
		const char *source, report_cb *cb, void *arg)
{
	struct call *call;
	size_t size = 0;
	char *at;
	int r;

	if (count == 0 || count > REPORT_MAX)
		return -EINVAL;
	if (pool_is_newer(pool))
		return -EPERM;
	for (size_t i = 0; i < count; i++)
		size += strlen(reports[i].member) + 1;
	call = calloc(1, sizeof *call + size);
	if (!call)
		return -ENOMEM;
	*call = (struct call){.pool = pool, .cb = cb, .arg = arg, .count = count};
	at = call->texts;
	for (size_t i = 0; i < count; i++) {
		call->members[i] = at;
		at = stpcpy(at, reports[i].member) + 1;
	}
	r = send(call, reports, source);
	if (r)
		free(call);
	return r;
}

int pool_report_probes(struct pool *pool, const struct probe_report *reports, size_t count,
		       report_cb *cb, void *arg)
{
	return report_call(pool, reports, count, "probe", cb, arg);
}
