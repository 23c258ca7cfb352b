/* lease_named.c - one lease that somebody else holds, by its id and token: for commands. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kill_point.h"
#include "pool/internal.h"
#include "pool/lease.h"

#define NUMBER_SIZE 24

struct named_call {
	pool_cb *cb;
	void *arg;
};

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct named_call *call = arg;

	KILL_POINT("named-answered");
	if (!result && reply_integer(reply_at(reply, 0), -1) != 0)
		result = REASON_LEASE_STALE;
	call->cb(result, reply_text(reply, NULL), call->arg);
	free(call);
}

/* 0 if queued, else -errno. */
static int ask(struct pool *pool, enum script_id script, const struct word *words, size_t count,
	       pool_cb *cb, void *arg)
{
	struct named_call *call;
	int r;

	if (pool_is_newer(pool))
		return -EPERM;
	call = calloc(1, sizeof *call);
	if (!call)
		return -ENOMEM;
	*call = (struct named_call){.cb = cb, .arg = arg};
	r = store_script(pool->store, script, STORE_IDEMPOTENT, words, count, on_answer, call);
	if (r)
		free(call);
	else
		KILL_POINT("named-queued");
	return r;
}

int pool_lease_renew(struct pool *pool, const char *id, const char *token, int64_t ttl_ms,
		     pool_cb *cb, void *arg)
{
	const struct pool_keys *keys = &pool->keys;
	char ttl[NUMBER_SIZE];

	snprintf(ttl, sizeof ttl, "%" PRId64,
		 ttl_ms ? ttl_ms : rules_number(&pool->rules, RULE_LEASE));
	return ask(pool, SCRIPT_RENEW,
		   (struct word[]){pool_key(keys, KEY_LEASES), pool_key(keys, KEY_HOLDERS),
				   WORD(""), WORD(ttl), WORD(id), WORD(token)},
		   6, cb, arg);
}

int pool_lease_release(struct pool *pool, const char *id, const char *token, pool_cb *cb, void *arg)
{
	const struct pool_keys *keys = &pool->keys;

	return ask(pool, SCRIPT_RELEASE,
		   (struct word[]){pool_key(keys, KEY_LIVE), pool_key(keys, KEY_BUSY),
				   pool_key(keys, KEY_LEASES), pool_key(keys, KEY_HOLDERS),
				   pool_key(keys, KEY_RULES), pool_key(keys, KEY_RELEASED),
				   WORD(""), WORD(id), WORD(token)},
		   9, cb, arg);
}
