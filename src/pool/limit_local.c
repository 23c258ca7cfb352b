/* limit_local.c - requests at a time and a second, counted in this process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/clock.h"
#include "pool/limit_parts.h"

#define SUBJECTS_MAX 65536
#define US_PER_SECOND ((int64_t)1000000)

/* A client or a host. It stands among the idle while it holds nothing. */
struct subject {
	UT_hash_handle hh;
	TAILQ_ENTRY(subject) link;
	int64_t held;
	int64_t due_us; /* when the next request is due, if they come evenly */
	char name[];
};

void local_init(struct limits *limits)
{
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++)
		TAILQ_INIT(&limits->local[kind].idle);
}

void local_fini(struct limits *limits)
{
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		struct subject *subject = limits->local[kind].index, *next;

		HASH_CLEAR(hh, limits->local[kind].index);
		for (; subject; subject = next) {
			next = subject->hh.next;
			free(subject);
		}
	}
}

static void drop(struct local *local, struct subject *subject)
{
	TAILQ_REMOVE(&local->idle, subject, link);
	/* It stands in the index. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DEL(local->index, subject);
	free(subject);
}

/* Lets go of idle ones that have nothing to remember: two for each that comes or goes, so that they become fewer. */
static void sweep(struct local *local, int64_t now_us)
{
	for (int i = 0; i < 2; i++) {
		struct subject *oldest = TAILQ_FIRST(&local->idle);

		/* The one before left the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (!oldest || oldest->due_us > now_us)
			return;
		drop(local, oldest);
	}
}

static struct subject *find(struct limits *limits, enum limit_kind kind, const char *name)
{
	size_t len = strlen(name);
	unsigned hash = limit_hash(limits, name, len);
	struct subject *subject;

	HASH_FIND_BYHASHVALUE(hh, limits->local[kind].index, name, (unsigned)len, hash, subject);
	return subject;
}

/* A new one, idle. When there are too many the oldest idle one goes, rate and all; those that hold are bounded by
 * whoever asks. */
static struct subject *add(struct limits *limits, enum limit_kind kind, const char *name)
{
	struct local *local = &limits->local[kind];
	size_t len = strlen(name);
	unsigned hash = limit_hash(limits, name, len);
	struct subject *subject = calloc(1, sizeof *subject + len + 1);

	if (!subject)
		return NULL;
	memcpy(subject->name, name, len + 1);
	sweep(local, clock_us());
	if (HASH_COUNT(local->index) >= SUBJECTS_MAX && !TAILQ_EMPTY(&local->idle))
		drop(local, TAILQ_FIRST(&local->idle));
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, local->index, subject->name, (unsigned)len, hash, subject);
	TAILQ_INSERT_TAIL(&local->idle, subject, link);
	return subject;
}

/* GCRA: returns when the request after this one is due, and how long this one has to wait. The same arithmetic as in
 * limit.lua. */
static int64_t schedule(int64_t rate, int64_t due_us, int64_t now_us, int64_t *ret_wait_us)
{
	int64_t interval = (US_PER_SECOND + rate - 1) / rate;
	int64_t ahead = rate * interval;

	if (due_us < now_us)
		due_us = now_us;
	/* The rate was raised: nobody waits for more than a full burst. */
	if (due_us > now_us + ahead)
		due_us = now_us + ahead;
	*ret_wait_us = due_us + interval - ahead - now_us;
	return due_us + interval;
}

/* 0, or 1 (too many at a time) or 2 (a second). `subject` is NULL for one that was not met yet. */
static int judge(const struct limit *limit, const struct subject *subject, int64_t now_us,
		 int64_t *ret_retry_after_ms)
{
	int64_t wait_us = 0;

	if (limit->concurrent > 0 && subject && subject->held >= limit->concurrent) {
		*ret_retry_after_ms = LIMIT_RETRY_MS;
		return 1;
	}
	if (limit->rate > 0)
		schedule(limit->rate, subject ? subject->due_us : 0, now_us, &wait_us);
	if (wait_us <= 0)
		return 0;
	*ret_retry_after_ms = (wait_us + 999) / 1000;
	return 2;
}

static void count(struct local *local, struct subject *subject, int64_t rate, int64_t now_us)
{
	int64_t wait_us;

	if (subject->held++ == 0)
		TAILQ_REMOVE(&local->idle, subject, link);
	if (rate > 0)
		subject->due_us = schedule(rate, subject->due_us, now_us, &wait_us);
}

int local_take(struct limits *limits, struct ticket *ticket, const char *const names[LIMIT_KINDS],
	       int64_t *ret_retry_after_ms)
{
	struct subject *subjects[LIMIT_KINDS] = {NULL};
	int64_t now_us = clock_us();

	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		int code;

		if (!limit_is_set(&limits->limits[kind]))
			continue;
		subjects[kind] = find(limits, kind, names[kind]);
		code = judge(&limits->limits[kind], subjects[kind], now_us, ret_retry_after_ms);
		if (code)
			return limit_reason(code + 2 * (int)kind);
	}
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		if (subjects[kind] || !limit_is_set(&limits->limits[kind]))
			continue;
		subjects[kind] = add(limits, kind, names[kind]);
		if (!subjects[kind])
			return -ENOMEM;
	}
	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++)
		if (subjects[kind])
			count(&limits->local[kind], subjects[kind], limits->limits[kind].rate,
			      now_us);
	ticket->client = subjects[LIMIT_CLIENT];
	ticket->host = subjects[LIMIT_HOST];
	return 0;
}

void local_return(struct limits *limits, struct subject *const held[LIMIT_KINDS])
{
	int64_t now_us = clock_us();

	for (enum limit_kind kind = LIMIT_CLIENT; kind < LIMIT_KINDS; kind++) {
		struct local *local = &limits->local[kind];

		if (!held[kind] || --held[kind]->held > 0)
			continue;
		TAILQ_INSERT_TAIL(&local->idle, held[kind], link);
		sweep(local, now_us);
	}
}
