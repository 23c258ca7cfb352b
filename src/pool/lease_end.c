/* lease_end.c - releases: gathered over a turn, said in one call. What cannot be said runs out. */
#include <stdio.h>
#include <string.h>

#include "base/kill_point.h"
#include "base/log.h"
#include "pool/lease_parts.h"

#define KEYS ((size_t)6)

static void tell_failure(int result)
{
	log_debug("leases run out in the store", LOG_TEXT("why", result_word(result)));
}

static void on_released(int result, const struct reply *reply, void *arg)
{
	(void)reply;
	(void)arg;
	KILL_POINT("release-answered");
	if (result)
		tell_failure(result);
}

void end_send(struct leases *leases)
{
	struct pool *pool = leases->pool;
	struct word words[KEYS + 1 + 2 * LEASE_PAIRS_MAX] = {
	    pool_key(&pool->keys, KEY_LIVE),
	    pool_key(&pool->keys, KEY_BUSY),
	    pool_key(&pool->keys, KEY_LEASES),
	    pool_key(&pool->keys, KEY_HOLDERS),
	    pool_key(&pool->keys, KEY_RULES),
	    pool_key(&pool->keys, KEY_RELEASED),
	    WORD(""),
	};
	size_t count = KEYS + 1;
	int r = REASON_STORE_NEWER;

	if (!leases->ending_count)
		return;
	for (size_t i = 0; i < leases->ending_count; i++) {
		words[count++] = WORD(leases->ending[i].id);
		words[count++] = WORD(leases->ending[i].token);
	}
	if (!pool_is_newer(pool))
		r = store_script(pool->store, SCRIPT_RELEASE, STORE_IDEMPOTENT, words, count,
				 on_released, NULL);
	leases->ending_count = 0;
	KILL_POINT("release-queued");
	if (r)
		tell_failure(r);
}

void end_add(struct leases *leases, const char *id, const char *token)
{
	struct lease_name *name = &leases->ending[leases->ending_count++];

	snprintf(name->id, sizeof name->id, "%s", id);
	snprintf(name->token, sizeof name->token, "%s", token);
	if (leases->ending_count == LEASE_PAIRS_MAX)
		end_send(leases);
	loop_again(leases->pool->loop);
}
