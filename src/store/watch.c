/* watch.c - to be woken when keys change: a pair of connections, one that arms and one that is told. */
#include "store/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/internal.h"

#define CHANNEL "__redis__:invalidate"
#define BREAKS_MAX 3
#define SCORE_MAX 9e15

struct watch {
	struct store *arming, *told;
	struct store_observer arming_observer, told_observer;
	struct watch_callbacks callbacks;
	struct alarm beat;
	int64_t beat_ms;
	enum watch_mode mode;
	bool
	    is_begun; /* both were ready, so that what was agreed with the server ends with either */
	bool is_arming, is_armed;
	bool
	    is_told; /* a message came while the reading was under way: it may be about a change behind it */
	bool is_daemon;
	enum watch_mode logged_mode;
	unsigned breaks; /* connections lost in a row while the server was asked for tracking */
	char told_id[24];
	int64_t existing; /* of the reading that armed */
	struct word keys[WATCH_KEYS_MAX];
	size_t key_count;
};

static void set_mode(struct watch *watch, enum watch_mode mode)
{
	watch->mode = mode;
	metric_set(METRIC_WAIT_MODE, mode);
}

static void wake(struct watch *watch)
{
	watch->is_armed = false;
	watch->callbacks.woken(watch->callbacks.arg);
}

/* Once for each change between the two: a connection that comes and goes is none. */
static void log_mode(struct watch *watch, const char *error)
{
	bool is_tracking = watch->mode == WATCH_TRACKING;

	if (watch->logged_mode == watch->mode)
		return;
	watch->logged_mode = watch->mode;
	if (is_tracking && watch->is_daemon)
		log_info("Redis tells of tasks", LOG_TEXT("wait_mode", "tracking"));
	else if (!is_tracking)
		log_line(watch->is_daemon ? LOG_WARN : LOG_INFO,
			 "Redis does not tell of tasks: asks from time to time",
			 LOG_TEXT("wait_mode", "polling"), LOG_TEXT("error", error));
}

/* The server, or what stands before it, does not do it. The next pair of connections asks again. */
static void poll_instead(struct watch *watch, const char *error)
{
	if (watch->mode == WATCH_POLLING)
		return;
	set_mode(watch, WATCH_POLLING);
	log_mode(watch, error);
	wake(watch);
}

static MUST_USE int say(struct store *store, const char *const *texts, size_t count, store_cb *cb,
			struct watch *watch)
{
	struct word words[8];

	for (size_t i = 0; i < count; i++)
		words[i] = WORD(texts[i]);
	return store_command(store, 0, words, count, cb, watch);
}

#define SAY(store, cb, watch, ...)                                                                 \
	say((store), (const char *const[]){__VA_ARGS__},                                           \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (cb), (watch))

/* --- the pair ----------------------------------------------------------------------------------------------------- */

/* Both connections are given up: what the server knows of one is of no use without the other. */
static void drop_pair(struct watch *watch, const char *why)
{
	bool was_tracking = watch->mode == WATCH_TRACKING;

	if (!watch->is_begun)
		return;
	watch->is_begun = false;
	connection_lost(watch->arming, why);
	connection_lost(watch->told, why);
	if (was_tracking) {
		set_mode(watch, WATCH_CONNECTING);
		wake(watch);
	} else if (++watch->breaks == BREAKS_MAX) {
		poll_instead(watch, "the connection ends when asked for it");
	}
}

static void on_lost(void *arg)
{
	drop_pair(arg, "the other connection of the pair ended");
}

static void on_tracking(int result, const struct reply *reply, void *arg)
{
	struct watch *watch = arg;
	const char *error = reply_text(reply, NULL);

	if (result == REASON_STORE_REFUSED && strstr(error, "client ID")) {
		/* The other connection has just died, and we have not heard of it yet. */
		drop_pair(watch, error);
	} else if (result == REASON_STORE_REFUSED) {
		poll_instead(watch, error);
	} else if (result == 0) {
		watch->breaks = 0;
		set_mode(watch, WATCH_TRACKING);
		log_mode(watch, "");
		wake(watch);
	}
}

static void on_subscribed(int result, const struct reply *reply, void *arg)
{
	struct watch *watch = arg;

	if (result == REASON_STORE_REFUSED)
		poll_instead(watch, reply_text(reply, NULL));
	/* Without an identifier the server has refused already. */
	if (!result && watch->told_id[0] &&
	    SAY(watch->arming, on_tracking, watch, "CLIENT", "TRACKING", "ON", "REDIRECT",
		watch->told_id, "OPTIN"))
		drop_pair(watch, "out of memory");
}

static void on_id(int result, const struct reply *reply, void *arg)
{
	struct watch *watch = arg;

	if (result == REASON_STORE_REFUSED)
		poll_instead(watch, reply_text(reply, NULL));
	if (!result)
		snprintf(watch->told_id, sizeof watch->told_id, "%lld",
			 (long long)reply_integer(reply, 0));
}

static void on_ready(void *arg)
{
	struct watch *watch = arg;

	if (!store_is_ready(watch->arming) || !store_is_ready(watch->told))
		return;
	watch->is_begun = true;
	watch->told_id[0] = '\0';
	if (SAY(watch->told, on_id, watch, "CLIENT", "ID") ||
	    SAY(watch->told, on_subscribed, watch, "SUBSCRIBE", CHANNEL))
		drop_pair(watch, "out of memory");
}

/* Whatever keys it names (after FLUSHALL none), they are ours. */
static bool on_message(const struct reply *reply, void *arg)
{
	struct watch *watch = arg;

	if (reply_count(reply) != 3 || strcmp(reply_text(reply_at(reply, 0), NULL), "message") != 0)
		return false;
	watch->is_told = true;
	if (watch->is_armed)
		wake(watch);
	return true;
}

/* --- arming ------------------------------------------------------------------------------------------------------- */

/* A step that is refused: EXEC would not say why, or would read without arming. */
static void on_step(int result, const struct reply *reply, void *arg)
{
	if (result == REASON_STORE_REFUSED)
		poll_instead(arg, reply_text(reply, NULL));
}

/* The answer to EXEC: how many exist, [member, score] or nothing, [seconds, microseconds]. */
static int read_state(const struct reply *reply, struct watch_state *ret)
{
	const struct reply *head = reply_at(reply, 1), *now = reply_at(reply, 2);
	double score;

	if (reply_count(reply) != 3 || reply_kind(reply_at(reply, 0)) != REPLY_INTEGER ||
	    reply_count(now) != 2)
		return REASON_STORE_REFUSED;
	ret->existing = reply_integer(reply_at(reply, 0), 0);
	ret->first_score = -1;
	if (reply_count(head) == 2 && !reply_double(reply_at(head, 1), &score))
		ret->first_score = score < 0 ? 0 : (int64_t)(score < SCORE_MAX ? score : SCORE_MAX);
	ret->now_ms =
	    reply_integer(reply_at(now, 0), 0) * 1000 + reply_integer(reply_at(now, 1), 0) / 1000;
	return 0;
}

static void on_armed(int result, const struct reply *reply, void *arg)
{
	struct watch *watch = arg;
	struct watch_state state = {.first_score = -1};

	if (result == -ECANCELED)
		return;
	watch->is_arming = false;
	if (result == REASON_STORE_REFUSED)
		poll_instead(watch, reply_text(reply, NULL));
	else if (!result && watch->mode != WATCH_TRACKING)
		result = REASON_STORE_NOT_DONE;
	else if (!result)
		result = read_state(reply, &state);
	watch->is_armed = !result;
	watch->existing = state.existing;
	watch->callbacks.armed(result, &state, watch->callbacks.arg);
	/* The two connections know no order between them: the message may be about a change behind the reading. */
	if (watch->is_armed && watch->is_told)
		wake(watch);
}

/* Queued in one go, so that nothing of ours comes between. */
static int ask_for_state(struct watch *watch)
{
	struct word exists[WATCH_KEYS_MAX] = {WORD("EXISTS")};
	struct word range[] = {WORD("ZRANGE"), watch->keys[0], WORD("0"), WORD("0"),
			       WORD("WITHSCORES")};
	int r = SAY(watch->arming, on_step, watch, "CLIENT", "CACHING", "YES");

	memcpy(exists + 1, watch->keys + 1, (watch->key_count - 1) * sizeof *exists);
	if (!r)
		r = SAY(watch->arming, on_step, watch, "MULTI");
	if (!r)
		r = store_command(watch->arming, 0, exists, watch->key_count, on_step, watch);
	if (!r)
		r = store_command(watch->arming, 0, range, sizeof range / sizeof *range, on_step,
				  watch);
	if (!r)
		r = SAY(watch->arming, on_step, watch, "TIME");
	return r ? r : SAY(watch->arming, on_armed, watch, "EXEC");
}

int watch_arm(struct watch *watch, const struct word *keys, size_t count)
{
	int r;

	if (watch->mode != WATCH_TRACKING)
		return -EAGAIN;
	if (watch->is_arming)
		return -EBUSY;
	if (count < 2 || count > WATCH_KEYS_MAX)
		return -EINVAL;
	memcpy(watch->keys, keys, count * sizeof *keys);
	watch->key_count = count;
	watch->is_armed = watch->is_told = false;
	r = ask_for_state(watch);
	if (r)
		drop_pair(watch, "out of memory"); /* a part may stand in the queue */
	watch->is_arming = !r;
	return r;
}

/* --- signs of life ------------------------------------------------------------------------------------------------ */

/* Heals what no message told of: one that was lost on its way, or a slot of a Cluster that has moved. */
static void on_looked(int result, const struct reply *reply, void *arg)
{
	struct watch *watch = arg;

	if (watch->is_armed && (result == REASON_STORE_REFUSED ||
				(!result && reply_integer(reply, -1) != watch->existing)))
		wake(watch);
}

static MUST_USE int look_again(struct watch *watch)
{
	struct word exists[WATCH_KEYS_MAX] = {WORD("EXISTS")};

	memcpy(exists + 1, watch->keys + 1, (watch->key_count - 1) * sizeof *exists);
	return store_command(watch->arming, 0, exists, watch->key_count, on_looked, watch);
}

/* Up to half as long again, so that a fleet does not ask in step. */
static void schedule_beat(struct watch *watch)
{
	alarm_set(&watch->beat, clock_ms() + watch->beat_ms +
				    arc4random_uniform((uint32_t)watch->beat_ms / 2 + 1));
}

/* What gets no answer within the deadline of an operation ends the connection, and so a half-open one is found. */
static void on_beat(void *arg)
{
	struct watch *watch = arg;
	int r = 0;

	if (watch->mode == WATCH_TRACKING) {
		r = SAY(watch->told, NULL, NULL, "PING");
		if (!r && watch->is_armed)
			r = look_again(watch);
		else if (!r && !watch->is_arming)
			r = SAY(watch->arming, NULL, NULL, "PING");
	}
	if (r)
		drop_pair(watch, "out of memory");
	schedule_beat(watch);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

enum watch_mode watch_mode(const struct watch *watch)
{
	return watch->mode;
}

int watch_new(struct watch **ret, struct loop *loop, const struct store_config *config,
	      int64_t beat_ms, const struct watch_callbacks *callbacks)
{
	struct watch *watch = calloc(1, sizeof *watch);
	struct store_config own = *config;
	int r;

	if (!watch)
		return -ENOMEM;
	/* Nothing waits for the next connection, since it would not mean the same there. */
	own.wait_ms = 0;
	own.is_daemon = false;
	own.private = NULL;
	watch->callbacks = *callbacks;
	watch->beat_ms = beat_ms;
	watch->is_daemon = config->is_daemon;
	watch->arming_observer =
	    (struct store_observer){.ready = on_ready, .lost = on_lost, .arg = watch};
	watch->told_observer = watch->arming_observer;
	watch->told_observer.message = on_message;
	alarm_init(&watch->beat, loop, on_beat, watch);
	schedule_beat(watch);
	r = store_new(&watch->arming, loop, &own);
	if (!r)
		r = store_new(&watch->told, loop, &own);
	if (r) {
		watch_free(watch);
		return r;
	}
	watch->arming->observer = &watch->arming_observer;
	watch->told->observer = &watch->told_observer;
	*ret = watch;
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	alarm_fini(&watch->beat);
	store_free(watch->arming);
	store_free(watch->told);
	free(watch);
}
