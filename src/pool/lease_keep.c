/* lease_keep.c - the leases that this process holds, and their renewal: one timer, one call for many.
 *
 * lease->deadline_ms is what this process knows for sure; what Redis answers decides. A process that was stopped for
 * longer finds its deadline passed and asks once more before it gives the lease up. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/metric.h"
#include "pool/lease_parts.h"

#define RETRY_MS 100
#define NUMBER_SIZE 24

/* One call under way. */
struct renewal {
	struct leases *leases;
	int64_t asked_ms, ttl_ms;
	size_t count;
	struct lease *held[LEASE_PAIRS_MAX]; /* NULL: released meanwhile */
};

/* A third of its life before, it was granted or renewed. */
static int64_t due_ms(const struct lease *lease)
{
	return lease->deadline_ms - lease->ttl_ms + lease->ttl_ms / 3;
}

static void ring_at(struct leases *leases, int64_t due)
{
	if (!leases->renewal.due_ms || due < leases->renewal.due_ms)
		alarm_set(&leases->renewal, due);
}

void keep_add(struct leases *leases, struct lease *lease)
{
	lease->is_held = true;
	TAILQ_INSERT_TAIL(&leases->held, lease, link);
	leases->held_count++;
	metric_add(METRIC_LEASES, 0, 1);
	ring_at(leases, due_ms(lease));
}

static void count_out(struct leases *leases)
{
	leases->held_count--;
	metric_add(METRIC_LEASES, 0, -1);
}

void keep_remove(struct leases *leases, struct lease *lease)
{
	struct renewal *renewal = lease->call;

	for (size_t i = 0; renewal && i < renewal->count; i++)
		if (renewal->held[i] == lease)
			renewal->held[i] = NULL;
	if (leases->next == lease)
		leases->next = TAILQ_NEXT(lease, link);
	TAILQ_REMOVE(&leases->held, lease, link);
	if (!lease->is_lost)
		count_out(leases);
}

static void lose(struct leases *leases, struct lease *lease)
{
	lease->is_lost = true;
	count_out(leases);
	metric_add(METRIC_LEASES_LOST, 0, 1);
	if (lease->request.lost)
		lease->request.lost(lease, lease->request.arg);
}

/* --- renewing ----------------------------------------------------------------------------------------------------- */

static void take_answer(struct leases *leases, struct lease *lease, const struct renewal *renewal,
			int result, int64_t code)
{
	const int64_t deadline_ms = renewal->asked_ms + renewal->ttl_ms;

	if (!result && code == 0) {
		if (deadline_ms > lease->deadline_ms)
			lease->deadline_ms = deadline_ms;
		ring_at(leases, due_ms(lease));
	} else if (!result || (result > 0 && clock_ms() >= lease->deadline_ms)) {
		lose(leases, lease);
	}
}

static void put_off(struct leases *leases)
{
	leases->retry_ms = clock_ms() + RETRY_MS;
	ring_at(leases, leases->retry_ms);
}

static void on_renewed(int result, const struct reply *reply, void *arg)
{
	struct renewal *renewal = arg;
	struct leases *leases = renewal->leases;

	KILL_POINT("renew-answered");
	if (result > 0)
		put_off(leases);
	for (size_t i = 0; i < renewal->count; i++) {
		struct lease *lease = renewal->held[i];

		if (!lease)
			continue;
		lease->call = NULL;
		if (!lease->is_lost)
			take_answer(leases, lease, renewal, result,
				    reply_integer(reply_at(reply, i), -1));
	}
	free(renewal);
}

/* 0 or -errno. */
static int renewal_send(struct renewal *renewal)
{
	struct pool *pool = renewal->leases->pool;
	struct word words[4 + 2 * LEASE_PAIRS_MAX] = {pool_key(&pool->keys, KEY_LEASES),
						      pool_key(&pool->keys, KEY_HOLDERS), WORD("")};
	char ttl[NUMBER_SIZE];

	snprintf(ttl, sizeof ttl, "%" PRId64, renewal->ttl_ms);
	words[3] = WORD(ttl);
	for (size_t i = 0; i < renewal->count; i++) {
		words[4 + 2 * i] = WORD(renewal->held[i]->id);
		words[5 + 2 * i] = WORD(renewal->held[i]->token);
	}
	return store_script(pool->store, SCRIPT_RENEW, STORE_IDEMPOTENT, words,
			    4 + 2 * renewal->count, on_renewed, renewal);
}

/* A little early: whoever is due soon shares the call. */
static bool is_due(const struct leases *leases, const struct lease *lease, int64_t now_ms)
{
	return !lease->is_lost && !lease->call && now_ms >= leases->retry_ms &&
	       now_ms >= due_ms(lease) - lease->ttl_ms / 12;
}

/* One call for `first` and those behind it that are due and have the same ttl. */
static void renew(struct leases *leases, struct lease *first, int64_t now_ms)
{
	struct renewal *renewal = calloc(1, sizeof *renewal);

	if (!renewal || pool_is_newer(leases->pool)) {
		free(renewal);
		put_off(leases);
		return;
	}
	*renewal = (struct renewal){.leases = leases, .asked_ms = now_ms, .ttl_ms = first->ttl_ms};
	for (struct lease *lease = first; lease && renewal->count < LEASE_PAIRS_MAX;
	     lease = TAILQ_NEXT(lease, link))
		if (lease->ttl_ms == first->ttl_ms && is_due(leases, lease, now_ms))
			renewal->held[renewal->count++] = lease;
	if (renewal_send(renewal)) {
		free(renewal);
		put_off(leases);
		return;
	}
	KILL_POINT("renew-queued");
	for (size_t i = 0; i < renewal->count; i++)
		renewal->held[i]->call = renewal;
}

/* --- the timer ---------------------------------------------------------------------------------------------------- */

/* A renewal that was asked for in time has not been answered, or one has failed. */
static bool is_given_up(const struct leases *leases, const struct lease *lease, int64_t now_ms)
{
	const struct renewal *renewal = lease->call;

	if (lease->is_lost || now_ms < lease->deadline_ms)
		return false;
	return renewal ? renewal->asked_ms < lease->deadline_ms : now_ms < leases->retry_ms;
}

/* When something is to be done about it; INT64_MAX: when it is answered. */
static int64_t next_ms(const struct leases *leases, const struct lease *lease)
{
	const struct renewal *renewal = lease->call;
	int64_t next = due_ms(lease);

	if (lease->is_lost || (renewal && renewal->asked_ms >= lease->deadline_ms))
		return INT64_MAX;
	next = next > leases->retry_ms ? next : leases->retry_ms;
	return renewal || next > lease->deadline_ms ? lease->deadline_ms : next;
}

static void on_alarm(void *arg)
{
	struct leases *leases = arg;
	const int64_t now_ms = clock_ms();
	int64_t next = INT64_MAX;
	struct lease *lease;

	for (lease = TAILQ_FIRST(&leases->held); lease; lease = leases->next) {
		leases->next = TAILQ_NEXT(lease, link);
		if (is_given_up(leases, lease, now_ms))
			lose(leases, lease);
	}
	TAILQ_FOREACH (lease, &leases->held, link)
		if (is_due(leases, lease, now_ms))
			renew(leases, lease, now_ms);
	TAILQ_FOREACH (lease, &leases->held, link)
		next = next_ms(leases, lease) < next ? next_ms(leases, lease) : next;
	if (next < INT64_MAX)
		ring_at(leases, next);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void keep_init(struct leases *leases)
{
	TAILQ_INIT(&leases->held);
	alarm_init(&leases->renewal, leases->pool->loop, on_alarm, leases);
}

void keep_fini(struct leases *leases)
{
	struct lease *lease;

	alarm_fini(&leases->renewal);
	while ((lease = TAILQ_FIRST(&leases->held))) {
		keep_remove(leases, lease);
		lease_empty(lease);
	}
}
