/* seek.c - a member for one use, and another when it fails. */
#include "pool/seek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pool/cooldown.h"
#include "pool/lease.h"

/* How many cooling members a seeker is given: each costs it a round trip, and the pool an allocation. */
#define COOLING_MAX 8

static void ask(struct seek *seek);

/* Under least-concurrent a member is used with a lease only. */
static bool is_leased(const struct seek *seek)
{
	return rules_want_leases(pool_rules(seek->pool));
}

static void drop_lease(struct seek *seek)
{
	if (seek->lease)
		lease_release(seek->lease);
	free(seek->lease);
	seek->lease = NULL;
}

static void drop_member(struct seek *seek)
{
	member_unref(seek->member);
	seek->member = NULL;
	drop_lease(seek);
}

/* --- members to be avoided ---------------------------------------------------------------------------------------- */

static size_t noted(const struct seek *seek)
{
	return seek->avoid_count + seek->passed_count;
}

/* Makes room for one more: -ENOBUFS or -ENOMEM. */
static int grow(struct seek *seek)
{
	struct member **avoid;

	if (noted(seek) + 1 >= AVOID_MAX)
		return -ENOBUFS;
	avoid = realloc(seek->avoid, (noted(seek) + 1) * sizeof(struct member *));
	if (!avoid)
		return -ENOMEM;
	seek->avoid = avoid;
	return 0;
}

/* Puts the member in use aside, as one that was had. */
static int put_aside(struct seek *seek)
{
	int r = grow(seek);

	if (r)
		return r;
	seek->avoid[noted(seek)] = seek->avoid[seek->avoid_count];
	seek->avoid[seek->avoid_count++] = seek->member;
	seek->member = NULL;
	drop_lease(seek);
	return 0;
}

/* Not a use: the member may be taken if there is no other. False when no more can be noted. */
static bool pass_over(struct seek *seek)
{
	if (seek->passed_count + 1 >= COOLING_MAX || grow(seek))
		return false;
	seek->avoid[seek->avoid_count + seek->passed_count++] = seek->member;
	seek->member = NULL;
	drop_lease(seek);
	return true;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void finish(struct seek *seek, int result)
{
	if (result)
		drop_member(seek);
	seek->cb(result, seek);
}

/* The lease of a member that was counted already. One that has left the pool meanwhile is not used. */
static void on_own_lease(int result, struct lease *lease, void *arg)
{
	struct seek *seek = arg;

	if (!lease->member)
		drop_lease(seek);
	if (result == REASON_POOL_EMPTY && !put_aside(seek))
		ask(seek);
	else
		finish(seek, result);
}

static void on_lease(int result, struct lease *lease, void *arg);

/* Asks for a lease: of any member but those to be avoided, or of `only`. 0 or -errno. */
static int ask_lease(struct seek *seek, struct member *only)
{
	const struct lease_request request = {
	    .wait_ms = seek->lease_wait_ms,
	    .only = only,
	    .avoid = seek->avoid,
	    .avoid_count = only ? 0 : noted(seek),
	    .cb = only ? on_own_lease : on_lease,
	    .arg = seek,
	};
	int r = -ENOMEM;

	seek->lease = calloc(1, sizeof *seek->lease);
	if (seek->lease)
		r = pool_acquire(seek->pool, seek->lease, &request);
	if (r) {
		free(seek->lease);
		seek->lease = NULL;
	}
	return r;
}

static void take(struct seek *seek)
{
	if (!is_leased(seek) || seek->lease)
		finish(seek, 0);
	else if (ask_lease(seek, seek->member))
		finish(seek, REASON_STORE_NOT_DONE);
}

/* There is no other member, for `result`: the one that was passed over first had the lowest count. */
static void settle_for(struct seek *seek, int result)
{
	if (!seek->passed_count) {
		finish(seek, result);
		return;
	}
	drop_member(seek);
	seek->member = seek->avoid[seek->avoid_count];
	seek->passed_count--;
	memmove(&seek->avoid[seek->avoid_count], &seek->avoid[seek->avoid_count + 1],
		seek->passed_count * sizeof(struct member *));
	log_debug("all members offered are cooling for this host",
		  LOG_TEXT("pool", pool_name(seek->pool)), LOG_TEXT("host", seek->host),
		  LOG_TEXT("member", seek->member->id));
	take(seek);
}

static void on_answer(struct seek *seek, int result, struct member *member)
{
	seek->member = member;
	if (result == REASON_MEMBER_UNREADABLE) {
		seek->is_unreadable = true;
		if (put_aside(seek))
			settle_for(seek, result);
		else
			ask(seek);
	} else if (result) {
		settle_for(seek, result == REASON_POOL_EMPTY && seek->is_unreadable
				     ? REASON_MEMBER_UNREADABLE
				     : result);
	} else if (!seek->host || !pool_cooldown_has(seek->pool, member, seek->host)) {
		take(seek);
	} else if (pass_over(seek)) {
		ask(seek);
	} else {
		settle_for(seek, 0);
	}
}

static void on_allocated(int result, struct member *member, struct allocation *allocation)
{
	on_answer((struct seek *)((char *)allocation - offsetof(struct seek, allocation)), result,
		  member);
}

static void on_lease(int result, struct lease *lease, void *arg)
{
	struct seek *seek = arg;
	struct member *member = lease->member ? member_ref(lease->member) : NULL;

	if (!member)
		drop_lease(seek);
	on_answer(seek, result, member);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* 0 or -errno. */
static int start(struct seek *seek)
{
	if (is_leased(seek))
		return ask_lease(seek, NULL);
	if (noted(seek))
		return pool_allocate_except(seek->pool, &seek->allocation, seek->avoid, noted(seek),
					    on_allocated);
	pool_allocate(seek->pool, &seek->allocation, on_allocated);
	return 0;
}

static void ask(struct seek *seek)
{
	if (start(seek))
		settle_for(seek, REASON_STORE_NOT_DONE);
}

int seek_next(struct seek *seek)
{
	int r = seek->member ? put_aside(seek) : 0;

	return r ? r : start(seek);
}

void seek_end(struct seek *seek)
{
	pool_allocate_cancel(&seek->allocation);
	drop_member(seek);
	for (size_t i = 0; i < noted(seek); i++)
		member_unref(seek->avoid[i]);
	free(seek->avoid);
	seek->avoid = NULL;
	seek->avoid_count = seek->passed_count = 0;
}
