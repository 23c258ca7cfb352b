/* watch.h - to be woken when keys change, without polling: client-side caching of Redis (CLIENT TRACKING, OPTIN,
 * RESP2).
 *
 * Two connections of its own: one that arms, one that is told (REDIRECT; subscribed to __redis__:invalidate). RESP2
 * does not tell when the second has died: if either ends, both are made anew, and `woken` runs, since something may
 * have been missed. Both are asked for a sign of life with a deadline, the first by reading again whether the armed
 * keys exist. */
#ifndef FAIRLEAD_STORE_WATCH_H
#define FAIRLEAD_STORE_WATCH_H

#include "store/store.h"

struct watch;

enum watch_mode {
	WATCH_CONNECTING,
	WATCH_TRACKING, /* a change wakes at once */
	WATCH_POLLING, /* the server has no tracking, or does not allow it: ask again from time to time */
};

/* What the reading that armed has found. */
struct watch_state {
	int64_t existing;    /* how many of the keys exist, but for the first */
	int64_t first_score; /* the lowest of the first key, a sorted set; -1: it is empty */
	int64_t now_ms;      /* the time of Redis, since 1970 */
};

/* None of them may end the watch. */
struct watch_callbacks {
	/* An armed key may have changed, or a connection was lost, or the pair is there (anew), or the mode is another. Nothing is
	 * armed any more. */
	void (*woken)(void *arg);

	/* `result` other than 0: not armed (REASON_STORE_*). `state` is valid until it returns. */
	void (*armed)(int result, const struct watch_state *state, void *arg);
	void *arg;
};

#define WATCH_BEAT_MS 5000

/* `config` is copied. Both connections are asked for a sign of life every `beat_ms`, or up to half as long again. 0
 * or -errno. */
MUST_USE int watch_new(struct watch **ret, struct loop *loop, const struct store_config *config,
		       int64_t beat_ms, const struct watch_callbacks *callbacks);

/* No callback runs any more. Accepts NULL. */
void watch_free(struct watch *watch);

enum watch_mode watch_mode(const struct watch *watch);

#define WATCH_KEYS_MAX ((size_t)64)

/* Arms 2 to WATCH_KEYS_MAX keys, the first of which is a sorted set whose head is read: CLIENT CACHING YES, MULTI,
 * EXISTS of all but the first, ZRANGE 0 0 WITHSCORES of the first, TIME, EXEC, with nothing between. The bytes of the
 * keys stay the caller's and must stay until watch_free(). One arming at a time; `armed` runs once for each, never
 * before this returns. 0 if queued, -EAGAIN while there is no pair, -EBUSY while one is under way, else -errno. */
MUST_USE int watch_arm(struct watch *watch, const struct word *keys, size_t count);

#endif
