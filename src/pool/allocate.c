/* allocate.c - take the least-used eligible member: gathering, delivery. */
#include "pool/allocate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kill_point.h"
#include "base/metric.h"
#include "pool/credential.h"
#include "pool/internal.h"

/* One call under way: who waits for its members, in order. A place whose asker has gone is NULL; the member is counted and
 * dropped. */
struct batch {
	struct pool *pool;
	bool is_exclusive; /* of pool_allocate_except() */
	struct credentials credentials;
	size_t count;
	struct allocation *askers[];
};

static void join_batch(struct batch *batch, struct allocation *allocation)
{
	allocation->batch = batch;
	batch->askers[batch->count++] = allocation;
}

/* Ends the asker at `place`; a member that nobody waits for is let go. */
static void deliver(struct batch *batch, size_t place, int result, struct member *member)
{
	struct allocation *allocation = batch->askers[place];

	batch->askers[place] = NULL;
	if (!allocation) {
		member_unref(member);
		return;
	}
	allocation->pool = NULL;
	allocation->batch = NULL;
	allocation->cb(result, member, allocation);
}

static void on_member(int result, struct member *member, size_t place, void *arg)
{
	deliver(arg, place, result, member);
}

static struct batch *batch_new(struct pool *pool, size_t askers)
{
	struct batch *batch = calloc(1, sizeof *batch + askers * sizeof(struct allocation *));

	if (!batch)
		return NULL;
	batch->pool = pool;
	batch->credentials = (struct credentials){
	    .pool = pool, .places = askers, .cb = on_member, .end = free, .arg = batch};
	return batch;
}

static int ask_except(struct pool *pool, struct allocation *allocation);

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void take_member(struct batch *batch, size_t place, const struct reply *reply)
{
	size_t len;
	const char *id = reply_text(reply, &len);

	metric_add(METRIC_ALLOCATED, 0, 1);
	credentials_take(&batch->credentials, place, id, len);
}

/* The answer was lost: whoever still waits asks once more, ahead of the others. */
static void ask_again(struct batch *batch)
{
	struct pool *pool = batch->pool;

	metric_add(METRIC_AMBIGUOUS, 0, (int64_t)batch->count);
	for (size_t i = batch->count; i-- > 0;) {
		struct allocation *allocation = batch->askers[i];

		if (!allocation || allocation->is_repeated) {
			deliver(batch, i, REASON_STORE_UNKNOWN, NULL);
			continue;
		}
		allocation->is_repeated = true;
		allocation->batch = NULL;
		if (!batch->is_exclusive)
			TAILQ_INSERT_HEAD(&pool->waiting, allocation, link);
		else if (ask_except(pool, allocation))
			deliver(batch, i, REASON_STORE_UNKNOWN, NULL);
	}
	loop_again(pool->loop);
}

static void on_allocated(int result, const struct reply *reply, void *arg)
{
	struct batch *batch = arg;
	size_t count = reply_count(reply);

	KILL_POINT("allocate-answered");
	if (!batch->is_exclusive)
		batch->pool->is_calling = false;
	if (!TAILQ_EMPTY(&batch->pool->waiting))
		loop_again(batch->pool->loop);
	if (result == REASON_STORE_UNKNOWN) {
		ask_again(batch);
	} else if (result) {
		snprintf(batch->pool->last_error, sizeof batch->pool->last_error, "%s",
			 reply_text(reply, NULL));
		for (size_t i = 0; i < batch->count; i++)
			deliver(batch, i, result, NULL);
	} else if (reply_kind(reply) == REPLY_TEXT) {
		take_member(batch, 0, reply);
	} else {
		for (size_t i = 0; i < batch->count; i++) {
			if (i < count)
				take_member(batch, i, reply_at(reply, i));
			else
				deliver(batch, i, REASON_POOL_EMPTY, NULL);
		}
	}
	credentials_fetch(&batch->credentials);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

void allocate_gather(void *arg)
{
	struct pool *pool = arg;
	struct allocation *allocation;
	struct batch *batch;
	size_t askers = 0;
	char count[24];

	if (pool->is_calling || TAILQ_EMPTY(&pool->waiting))
		return;
	TAILQ_FOREACH (allocation, &pool->waiting, link)
		if (++askers == ALLOCATE_MAX)
			break;
	batch = batch_new(pool, askers);
	if (!batch)
		return;
	while (batch->count < askers) {
		allocation = TAILQ_FIRST(&pool->waiting);
		TAILQ_REMOVE(&pool->waiting, allocation, link);
		join_batch(batch, allocation);
	}
	snprintf(count, sizeof count, "%zu", batch->count);
	pool->is_calling = true;
	if (pool_is_newer(pool))
		on_allocated(REASON_STORE_NEWER, NULL, batch);
	else if (store_script(pool->store, SCRIPT_ALLOCATE, 0,
			      (struct word[]){pool_key(&pool->keys, KEY_POOL), WORD(count)}, 2,
			      on_allocated, batch))
		on_allocated(REASON_STORE_NOT_DONE, NULL, batch);
	KILL_POINT("allocate-queued");
}

static void begin(struct pool *pool, struct allocation *allocation, allocation_cb *cb)
{
	*allocation = (struct allocation){.cb = cb, .pool = pool};
}

void pool_allocate(struct pool *pool, struct allocation *allocation, allocation_cb *cb)
{
	begin(pool, allocation, cb);
	TAILQ_INSERT_TAIL(&pool->waiting, allocation, link);
	loop_again(pool->loop);
}

/* Sends one call for one asker, beside those that are gathered. 0 or -errno. */
static int ask_except(struct pool *pool, struct allocation *allocation)
{
	struct batch *batch = batch_new(pool, 1);
	struct word words[1 + AVOID_MAX];
	int r;

	if (!batch)
		return -ENOMEM;
	batch->is_exclusive = true;
	words[0] = pool_key(&pool->keys, KEY_POOL);
	for (size_t i = 0; i < allocation->avoid_count; i++)
		words[1 + i] =
		    (struct word){allocation->avoid[i]->id, allocation->avoid[i]->id_len};
	r = store_script(pool->store, SCRIPT_ALLOCATE_EXCEPT, 0, words, 1 + allocation->avoid_count,
			 on_allocated, batch);
	if (r)
		free(batch);
	else
		join_batch(batch, allocation);
	return r;
}

int pool_allocate_except(struct pool *pool, struct allocation *allocation,
			 struct member *const *avoid, size_t count, allocation_cb *cb)
{
	int r;

	if (pool_is_newer(pool))
		return -EPERM;
	begin(pool, allocation, cb);
	allocation->avoid = avoid;
	allocation->avoid_count = count < AVOID_MAX ? count : AVOID_MAX;
	r = ask_except(pool, allocation);
	if (r)
		allocation->pool = NULL;
	return r;
}

void pool_allocate_cancel(struct allocation *allocation)
{
	struct batch *batch = allocation->batch;

	if (!allocation->pool)
		return;
	if (!batch) {
		TAILQ_REMOVE(&allocation->pool->waiting, allocation, link);
	} else {
		for (size_t i = 0; i < batch->count; i++)
			if (batch->askers[i] == allocation)
				batch->askers[i] = NULL;
	}
	allocation->pool = NULL;
}
