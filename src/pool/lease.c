/* lease.c - asking for a lease: the question to lua/acquire.lua, what its answer says, and the end of a lease.
 *
 * A lost answer is asked for again by the same id, which gives the same lease. An answer that comes when its lease
 * may have run out (the process was stopped, the store was slow) is as good as lost. */
#include "pool/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/kill_point.h"
#include "base/metric.h"
#include "pool/credential.h"
#include "pool/lease_parts.h"

#define ID_BYTES 16
#define NONCE_BYTES 8
#define NUMBER_SIZE 24
#define FIXED_WORDS ((size_t)13) /* keys and arguments before the members to avoid */

/* Of lua/acquire.lua. */
enum code { CODE_GRANTED, CODE_EMPTY, CODE_FULL, CODE_ENDED };

/* One question under way. */
struct call {
	struct pool *pool;
	struct lease *lease; /* NULL: nobody waits any more; what is granted is released */
	bool is_repeated;
	bool is_counted_already; /* as an allocation, by whoever asks for one member */
	int64_t asked_ms;
	int64_t left_ms; /* what the lease had to live when it was answered */
	struct credentials credentials;
	char id[LEASE_ID_MAX + 1], token[LEASE_TOKEN_MAX + 1];
	char nonce[2 * NONCE_BYTES + 1], ttl[NUMBER_SIZE];
};

void lease_empty(struct lease *lease)
{
	member_unref(lease->member);
	member_unref(lease->request.only);
	*lease = (struct lease){0};
}

void lease_fail(struct lease *lease, int result)
{
	lease_cb *cb = lease->request.cb;
	void *arg = lease->request.arg;

	line_leave(lease);
	lease_empty(lease);
	cb(result, lease, arg);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static int ask(struct lease *lease, bool is_repeated);

/* The lease of the call, which is not asked for any more; NULL: nobody waits. */
static struct lease *detach(struct call *call)
{
	struct lease *lease = call->lease;

	call->lease = NULL;
	if (lease)
		lease->call = NULL;
	return lease;
}

static void finish(struct call *call, int result)
{
	struct lease *lease = detach(call);

	free(call);
	if (lease)
		lease_fail(lease, result);
}

/* Asks once more. What cannot be known runs out. */
static void ask_again(struct lease *lease, bool is_repeated)
{
	if (is_repeated || ask(lease, true))
		lease_fail(lease, REASON_STORE_UNKNOWN);
}

static void count_ambiguous(const struct call *call)
{
	metric_add(METRIC_AMBIGUOUS, 0, !call->is_counted_already);
}

static void count_allocated(const struct call *call)
{
	metric_add(METRIC_ALLOCATED, 0, !call->is_counted_already);
}

static void release(const struct call *call)
{
	end_add(call->pool->leases, call->id, call->token);
}

static void hold(struct call *call, struct lease *lease, struct member *member)
{
	const int64_t least_ms = (int64_t)rule_row(RULE_LEASE)->min;
	const int64_t left_ms = call->left_ms > least_ms ? call->left_ms : least_ms;

	lease->member = member;
	lease->ttl_ms = lease->request.ttl_ms ? lease->request.ttl_ms : left_ms;
	lease->deadline_ms = call->asked_ms + call->left_ms;
	memcpy(lease->token, call->token, sizeof lease->token);
	member_unref(lease->request.only);
	lease->request.only = NULL;
	lease->request.avoid = NULL;
	lease->request.avoid_count = 0;
	keep_add(call->pool->leases, lease);
}

static void on_member(int result, struct member *member, size_t place, void *arg)
{
	struct call *call = arg;
	struct lease *lease = detach(call);

	(void)place;
	if (lease && member && clock_ms() >= call->asked_ms + call->left_ms) {
		member_unref(member);
		count_ambiguous(call);
		ask_again(lease, call->is_repeated);
		return;
	}
	count_allocated(call);
	if (lease && member) {
		hold(call, lease, member);
		lease->request.cb(result, lease, lease->request.arg);
		return;
	}
	member_unref(member);
	release(call);
	if (lease)
		lease_fail(lease, result);
}

static void take_grant(struct call *call, const struct reply *reply)
{
	size_t len;
	const char *member = reply_text(reply_at(reply, 1), &len);

	snprintf(call->token, sizeof call->token, "%s", reply_text(reply_at(reply, 2), NULL));
	call->left_ms = reply_integer(reply_at(reply, 3), 0) - reply_integer(reply_at(reply, 4), 0);
	if (!call->lease) {
		count_allocated(call);
		release(call);
		free(call);
		return;
	}
	line_leave(call->lease);
	credentials_take(&call->credentials, 0, member, len);
	credentials_fetch(&call->credentials);
}

static void take_full(struct call *call, const struct reply *reply)
{
	const int64_t expires_ms = reply_integer(reply_at(reply, 3), -1);
	const int64_t now_ms = reply_integer(reply_at(reply, 4), 0);
	struct lease *lease = detach(call);

	free(call);
	if (!lease)
		return;
	if (clock_ms() >= lease->wait_until_ms)
		lease_fail(lease, REASON_POOL_FULL);
	else
		line_join(lease, expires_ms < 0 ? -1 : expires_ms - now_ms);
}

static void take_answer(struct call *call, const struct reply *reply)
{
	const int64_t code = reply_integer(reply_at(reply, 0), -1);

	if (code == CODE_GRANTED)
		take_grant(call, reply);
	else if (code == CODE_FULL)
		take_full(call, reply);
	else if (code == CODE_EMPTY)
		finish(call, REASON_POOL_EMPTY);
	else
		finish(call, code == CODE_ENDED ? REASON_LEASE_STALE : REASON_INTERNAL);
}

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct call *call = arg;
	struct lease *lease;

	KILL_POINT("acquire-answered");
	if (!result) {
		take_answer(call, reply);
	} else if (result == REASON_STORE_UNKNOWN) {
		count_ambiguous(call);
		lease = detach(call);
		if (lease)
			ask_again(lease, call->is_repeated);
		free(call);
	} else {
		snprintf(call->pool->last_error, sizeof call->pool->last_error, "%s",
			 reply_text(reply, NULL));
		finish(call, result);
	}
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* 0 or -errno. */
static int call_new(struct call **ret, struct lease *lease, bool is_repeated)
{
	struct call *call = calloc(1, sizeof *call);
	uint8_t random[NONCE_BYTES];
	int r = call ? random_bytes(random, sizeof random) : -ENOMEM;

	if (r) {
		free(call);
		return r;
	}
	*call = (struct call){.pool = lease->pool,
			      .lease = lease,
			      .is_repeated = is_repeated,
			      .is_counted_already = lease->request.only,
			      .asked_ms = clock_ms()};
	call->credentials = (struct credentials){
	    .pool = lease->pool, .places = 1, .cb = on_member, .end = free, .arg = call};
	memcpy(call->id, lease->id, sizeof call->id);
	hex_print(random, sizeof random, call->nonce);
	if (lease->request.ttl_ms)
		snprintf(call->ttl, sizeof call->ttl, "%" PRId64, lease->request.ttl_ms);
	*ret = call;
	return 0;
}

/* 0 or -errno. */
static int call_send(struct call *call)
{
	const struct lease_request *request = &call->lease->request;
	const struct pool_keys *keys = &call->pool->keys;
	struct word words[FIXED_WORDS + AVOID_MAX] = {pool_key(keys, KEY_POOL),
						      pool_key(keys, KEY_LIVE),
						      pool_key(keys, KEY_BUSY),
						      pool_key(keys, KEY_LEASES),
						      pool_key(keys, KEY_HOLDERS),
						      pool_key(keys, KEY_RULES),
						      pool_key(keys, KEY_ADMIN),
						      pool_key(keys, KEY_RELEASED),
						      WORD(""),
						      WORD(call->id),
						      WORD(call->nonce),
						      WORD(call->ttl),
						      WORD("")};

	if (request->only)
		words[FIXED_WORDS - 1] = (struct word){request->only->id, request->only->id_len};
	for (size_t i = 0; i < request->avoid_count; i++)
		words[FIXED_WORDS + i] =
		    (struct word){request->avoid[i]->id, request->avoid[i]->id_len};
	return store_script(call->pool->store, SCRIPT_ACQUIRE, 0, words,
			    FIXED_WORDS + request->avoid_count, on_answer, call);
}

static int ask(struct lease *lease, bool is_repeated)
{
	struct call *call = NULL;
	int r = pool_is_newer(lease->pool) ? -EPERM : call_new(&call, lease, is_repeated);

	if (!r)
		r = call_send(call);
	if (r) {
		free(call);
		return r;
	}
	lease->call = call;
	KILL_POINT("acquire-queued");
	return 0;
}

int lease_ask(struct lease *lease)
{
	return ask(lease, false);
}

/* The caller's id, or a new one. 0 or -errno. */
static int make_id(struct lease *lease, const char *id)
{
	uint8_t random[ID_BYTES];
	size_t len = id ? strlen(id) : 0;
	int r;

	if (id) {
		if (!len || len > LEASE_ID_MAX || strspn(id, "0123456789abcdef-") != len)
			return -EINVAL;
		memcpy(lease->id, id, len + 1);
		return 0;
	}
	r = random_bytes(random, sizeof random);
	if (!r)
		hex_print(random, sizeof random, lease->id);
	return r;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void on_turn_end(void *arg)
{
	struct leases *leases = arg;

	/* What is released makes room for those who ask behind it. */
	end_send(leases);
	line_ask(&leases->choosy);
	line_ask(&leases->general);
}

static struct leases *leases_of(struct pool *pool)
{
	struct leases *leases = pool->leases;

	if (leases)
		return leases;
	leases = calloc(1, sizeof *leases);
	if (!leases)
		return NULL;
	leases->pool = pool;
	keep_init(leases);
	line_init(&leases->general, leases);
	line_init(&leases->choosy, leases);
	leases->hook = (struct turn_hook){.run = on_turn_end, .arg = leases};
	loop_hook(pool->loop, &leases->hook);
	pool->leases = leases;
	return leases;
}

void leases_free(struct leases *leases)
{
	if (!leases)
		return;
	loop_unhook(leases->pool->loop, &leases->hook);
	line_fini(&leases->general);
	line_fini(&leases->choosy);
	keep_fini(leases);
	free(leases);
}

int pool_acquire(struct pool *pool, struct lease *lease, const struct lease_request *request)
{
	struct leases *leases = leases_of(pool);
	int r;

	if (!leases)
		return -ENOMEM;
	*lease = (struct lease){
	    .pool = pool, .request = *request, .wait_until_ms = clock_ms() + request->wait_ms};
	if (request->avoid_count > AVOID_MAX)
		lease->request.avoid_count = AVOID_MAX;
	if (request->only)
		request->only->references++;
	r = make_id(lease, request->id);
	lease->request.id = lease->id;
	if (!r && line_is_first(lease))
		r = lease_ask(lease);
	else if (!r)
		line_join(lease, -1);
	if (r)
		lease_empty(lease);
	return r;
}

void lease_release(struct lease *lease)
{
	struct leases *leases;

	if (!lease->pool)
		return;
	leases = lease->pool->leases;
	if (lease->is_held) {
		keep_remove(leases, lease);
		end_add(leases, lease->id, lease->token);
		line_stir(leases, lease->member);
	} else if (lease->call) {
		detach(lease->call);
	}
	line_leave(lease);
	lease_empty(lease);
}

void lease_keep(struct lease *lease)
{
	keep_remove(lease->pool->leases, lease);
	lease_empty(lease);
}

size_t pool_leases_held(const struct pool *pool)
{
	return pool->leases ? pool->leases->held_count : 0;
}
