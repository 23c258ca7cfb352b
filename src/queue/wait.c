/* wait.c - claims as soon as there is a task: who waits, when to claim, when to arm, when to sleep.
 *
 * A process sleeps only when a claim that was sent while the keys were armed has found nothing, or when the reading
 * that armed them did: whatever is pushed behind it wakes. A level that is paused, and so stays non-empty, costs one
 * such claim. */
#include "queue/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "queue/internal.h"

#define LOSSES_MAX 6
#define LOSS_DELAY_MAX_MS 50
#define LOSS_FORGET_MS 1000
#define POLL_FIRST_MS 5
#define POLL_MAX_MS 500
#define SLEEP_MAX_MS 3600000

/* One claim for all who wait. */
struct waits_call {
	struct waits *waits; /* NULL: gone meanwhile */
	struct queue *queue;
	size_t asked;
	bool is_race; /* others were woken, too */
};

struct waits {
	struct loop *loop;
	struct queue *queue;
	struct watch *watch;
	TAILQ_HEAD(, wait) waiting;
	struct waits_call *call; /* under way; NULL: none */
	struct turn_hook hook;
	struct alarm alarm;
	bool has_news; /* there may be a task: claim, but not before `claim_at_ms` */
	bool is_race;  /* the news came to all who watch */
	bool is_arming, is_armed;
	int64_t claim_at_ms;
	int64_t
	    due_ms; /* when Redis will have something that is not there yet; INT64_MAX: not known */
	int64_t pause_ms; /* of asking from time to time */
	int losses;       /* races in a row, 0 to LOSSES_MAX */
	int64_t lost_at_ms;
	struct word keys[2 * QUEUE_LEVELS_MAX + 2];
	size_t key_count;
};

/* --- when ------------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Nobody will wake us: asks again after a while that doubles, anything from half of it to the whole. */
static void claim_later(struct waits *waits)
{
	int64_t pause = waits->pause_ms ? earlier(2 * waits->pause_ms, POLL_MAX_MS) : POLL_FIRST_MS;

	waits->pause_ms = pause;
	waits->has_news = true;
	waits->is_race = false;
	waits->claim_at_ms =
	    clock_ms() + pause / 2 + arc4random_uniform((uint32_t)(pause - pause / 2) + 1);
}

/* After k lost races in a row 0 to 2^k ms, so that a crowd spreads. A second without a race takes one off: where
 * tasks are rare, or those who won are still busy, there is no crowd to spread, and a task need not wait for anybody. */
static int64_t loss_delay_ms(struct waits *waits)
{
	int64_t calm = (clock_ms() - waits->lost_at_ms) / LOSS_FORGET_MS, bound;

	waits->losses -= calm < waits->losses ? (int)calm : waits->losses;
	if (!waits->losses)
		return 0;
	bound = earlier(INT64_C(1) << waits->losses, LOSS_DELAY_MAX_MS);
	return arc4random_uniform((uint32_t)bound + 1);
}

/* --- claiming -------------------------------------------------------------------------------------------------------- */

static void give_back(struct queue *queue, struct claim *claim)
{
	struct settlement release = {
	    .verb = SETTLE_RELEASE, .id = claim->id, .token = claim->token};

	/* If not even that can be asked for, it comes back when its lease has ended. */
	(void)!queue_settle(queue, &release, NULL, NULL);
	free(claim);
}

/* A callback may begin and cancel waits, and end all of them. */
static void hand_out(struct waits_call *call, struct claim **claims, size_t count,
		     int64_t next_due_ms)
{
	size_t given = 0;

	while (given < count && call->waits && !TAILQ_EMPTY(&call->waits->waiting)) {
		struct wait *wait = TAILQ_FIRST(&call->waits->waiting);
		size_t share = wait->count < count - given ? wait->count : count - given;

		wait_cancel(wait);
		wait->cb(0, "", claims + given, share, next_due_ms, wait->arg);
		given += share;
	}
	while (given < count)
		give_back(call->queue, claims[given++]);
}

static void refuse_all(struct waits_call *call, int result, const char *error)
{
	struct wait *wait;
	size_t count = 0;

	TAILQ_FOREACH (wait, &call->waits->waiting, link)
		count++;
	/* Counted, because a callback may wait again. */
	while (count-- && call->waits && (wait = TAILQ_FIRST(&call->waits->waiting))) {
		wait_cancel(wait);
		wait->cb(result, error, NULL, 0, -1, wait->arg);
	}
}

static void note_result(struct waits_call *call, size_t count, int64_t next_due_ms)
{
	struct waits *waits = call->waits;

	/* At least a moment: what is due already is more than one claim takes care of. */
	waits->due_ms = INT64_MAX;
	if (next_due_ms >= 0)
		waits->due_ms = clock_ms() + (next_due_ms ? next_due_ms : 1);
	if (count) {
		waits->losses = 0;
		waits->pause_ms = 0;
		waits->claim_at_ms = 0;
		waits->has_news = waits->has_news || count == call->asked;
		waits->is_armed =
		    false; /* there may be more of what is armed: one answer takes so many bytes */
	} else if (call->is_race) {
		waits->losses += waits->losses < LOSSES_MAX;
		waits->lost_at_ms = clock_ms();
	}
}

static void on_claimed(int result, const char *error, struct claim **claims, size_t count,
		       int64_t next_due_ms, void *arg)
{
	struct waits_call *call = arg;

	if (!call->waits || result == 0) {
		if (call->waits)
			note_result(call, count, next_due_ms);
		hand_out(call, claims, count, next_due_ms);
	} else {
		claim_later(call->waits);
		if (result > 0 && result != REASON_STORE_NOT_DONE && result != REASON_STORE_UNKNOWN)
			refuse_all(call, result, error);
	}
	if (call->waits) {
		call->waits->call = NULL;
		loop_again(call->waits->loop);
	}
	free(call);
}

static int call_claim(struct waits *waits, struct waits_call *call)
{
	struct wait *wait;
	int r;

	*call =
	    (struct waits_call){.waits = waits, .queue = waits->queue, .is_race = waits->is_race};
	TAILQ_FOREACH (wait, &waits->waiting, link) {
		call->asked += wait->count;
		if (call->asked >= CLAIM_MAX)
			break;
	}
	call->asked = call->asked < CLAIM_MAX ? call->asked : CLAIM_MAX;
	r = queue_claim(waits->queue, call->asked, on_claimed, call);
	if (!r)
		waits->call = call;
	return r;
}

static void claim(struct waits *waits)
{
	struct waits_call *call = malloc(sizeof *call);

	waits->has_news = false;
	if (!call || call_claim(waits, call)) {
		free(call);
		claim_later(waits);
	}
	waits->is_race = false;
}

/* --- waiting --------------------------------------------------------------------------------------------------------- */

static void arm_or_poll(struct waits *waits)
{
	if (watch_arm(waits->watch, waits->keys, waits->key_count)) {
		claim_later(waits);
		waits->claim_at_ms = earlier(waits->claim_at_ms, waits->due_ms);
	} else {
		waits->is_arming = true;
	}
}

static void on_turn(void *arg)
{
	struct waits *waits = arg;
	int64_t now = clock_ms();

	if (waits->call || TAILQ_EMPTY(&waits->waiting))
		return;
	if (waits->due_ms <= now) {
		waits->due_ms = INT64_MAX;
		waits->claim_at_ms = 0;
		waits->has_news = true;
	}
	if (waits->has_news && waits->claim_at_ms <= now)
		claim(waits);
	else if (!waits->has_news && !waits->is_armed && !waits->is_arming)
		arm_or_poll(waits);
	if (waits->has_news)
		alarm_set(&waits->alarm, waits->claim_at_ms);
	else
		alarm_set(&waits->alarm, earlier(waits->due_ms, now + SLEEP_MAX_MS));
}

static void on_woken(void *arg)
{
	struct waits *waits = arg;

	waits->is_armed = false;
	waits->has_news = waits->is_race = true;
	waits->claim_at_ms = clock_ms() + loss_delay_ms(waits);
	loop_again(waits->loop);
}

static void on_armed(int result, const struct watch_state *state, void *arg)
{
	struct waits *waits = arg;
	int64_t first = state->first_score;

	waits->is_arming = false;
	waits->is_armed = !result;
	if (result) {
		claim_later(waits);
	} else {
		waits->pause_ms = 0;
		if (state->existing && !waits->has_news) {
			waits->has_news = true;
			waits->claim_at_ms = 0;
		}
		if (first >= 0 && first < SCORE_ASIDE)
			waits->due_ms = earlier(waits->due_ms, clock_ms() + first - state->now_ms);
	}
	loop_again(waits->loop);
}

/* A turn ends, and that is all. */
static void on_alarm(void *arg)
{
	(void)arg;
}

void wait_begin(struct waits *waits, struct wait *wait, size_t count, claim_cb *cb, void *arg)
{
	*wait = (struct wait){.waits = waits, .count = count, .cb = cb, .arg = arg};
	if (TAILQ_EMPTY(&waits->waiting)) {
		waits->claim_at_ms = waits->pause_ms = 0;
		waits->is_race = false;
	}
	/* Where something is under way already, its answer decides. */
	if (!waits->is_armed && !waits->is_arming && !waits->call)
		waits->has_news = true;
	TAILQ_INSERT_TAIL(&waits->waiting, wait, link);
	loop_again(waits->loop);
}

void wait_cancel(struct wait *wait)
{
	if (!wait->waits)
		return;
	TAILQ_REMOVE(&wait->waits->waiting, wait, link);
	wait->waits = NULL;
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

static void list_keys(struct waits *waits)
{
	const struct queue_keys *keys = queue_keys(waits->queue);

	waits->keys[waits->key_count++] = queue_key(keys, QUEUE_LATER);
	waits->keys[waits->key_count++] = queue_key(keys, QUEUE_PAUSED);
	for (size_t i = 0; i < keys->level_count; i++) {
		waits->keys[waits->key_count++] = WORD(keys->levels[i].list);
		waits->keys[waits->key_count++] = WORD(keys->levels[i].retry);
	}
}

int waits_new(struct waits **ret, struct loop *loop, struct queue *queue,
	      const struct store_config *config)
{
	struct waits *waits = calloc(1, sizeof *waits);
	struct watch_callbacks callbacks = {.woken = on_woken, .armed = on_armed, .arg = waits};
	int r;

	if (!waits)
		return -ENOMEM;
	waits->loop = loop;
	waits->queue = queue;
	waits->due_ms = INT64_MAX;
	TAILQ_INIT(&waits->waiting);
	list_keys(waits);
	r = watch_new(&waits->watch, loop, config, WATCH_BEAT_MS, &callbacks);
	if (r) {
		free(waits);
		return r;
	}
	alarm_init(&waits->alarm, loop, on_alarm, waits);
	waits->hook = (struct turn_hook){.run = on_turn, .arg = waits};
	loop_hook(loop, &waits->hook);
	*ret = waits;
	return 0;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	while (!TAILQ_EMPTY(&waits->waiting))
		wait_cancel(TAILQ_FIRST(&waits->waiting));
	if (waits->call)
		waits->call->waits = NULL;
	loop_unhook(waits->loop, &waits->hook);
	alarm_fini(&waits->alarm);
	watch_free(waits->watch);
	free(waits);
}

enum watch_mode waits_mode(const struct waits *waits)
{
	return watch_mode(waits->watch);
}
