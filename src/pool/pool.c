/* pool.c - one pool of proxies in the store: life and rules. */
#include "pool/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "pool/internal.h"

#define MEMBERS_KEPT ((size_t)65536)
#define RULE_WORDS_MAX ((size_t)2 * RULE_COUNT)

int pool_new(struct pool **ret, struct loop *loop, struct store *store, const char *name,
	     char *error, size_t error_size)
{
	struct pool *pool = calloc(1, sizeof *pool);
	int r = pool ? pool_keys_init(&pool->keys, name, error, error_size) : -ENOMEM;

	if (!r)
		r = members_new(&pool->members, MEMBERS_KEPT);
	if (r) {
		free(pool);
		return r;
	}
	pool->loop = loop;
	pool->store = store;
	rules_init(&pool->rules);
	TAILQ_INIT(&pool->waiting);
	pool->hook = (struct turn_hook){.run = allocate_gather, .arg = pool};
	loop_hook(loop, &pool->hook);
	*ret = pool;
	return 0;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	loop_unhook(pool->loop, &pool->hook);
	leases_free(pool->leases);
	cooldown_free(pool->cooldown);
	traffic_free(pool->traffic);
	reports_free(pool->reports);
	mending_free(pool->mending);
	members_free(pool->members);
	free(pool);
}

const char *pool_name(const struct pool *pool)
{
	return pool->keys.text[KEY_POOL];
}

const struct pool_keys *pool_keys(const struct pool *pool)
{
	return &pool->keys;
}

struct store *pool_store(const struct pool *pool)
{
	return pool->store;
}

const struct pool_rules *pool_rules(const struct pool *pool)
{
	return &pool->rules;
}

bool pool_is_newer(const struct pool *pool)
{
	return pool->rules.wire > POOL_WIRE;
}

const char *pool_last_error(const struct pool *pool)
{
	return pool->last_error;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

struct rules_call {
	struct pool *pool;
	pool_cb *cb;
	void *arg;
};

static void finish(struct rules_call *call, int result, const char *error)
{
	call->cb(result, error, call->arg);
	free(call);
}

static void on_rules(int result, const struct reply *reply, void *arg)
{
	struct rules_call *call = arg;
	struct pool_rules rules;

	if (result) {
		finish(call, result, reply_text(reply, NULL));
		return;
	}
	rules_init(&rules);
	for (size_t i = 0; i + 1 < reply_count(reply); i += 2)
		rules_take(&rules, reply_text(reply_at(reply, i), NULL),
			   reply_text(reply_at(reply, i + 1), NULL));
	call->pool->rules = rules;
	finish(call, pool_is_newer(call->pool) ? REASON_STORE_NEWER : 0, "");
}

static int read_rules(struct rules_call *call)
{
	struct word words[] = {WORD("HGETALL"), pool_key(&call->pool->keys, KEY_RULES)};

	return store_command(call->pool->store, STORE_IDEMPOTENT, words, 2, on_rules, call);
}

static struct rules_call *new_call(struct pool *pool, pool_cb *cb, void *arg)
{
	struct rules_call *call = calloc(1, sizeof *call);

	if (call)
		*call = (struct rules_call){.pool = pool, .cb = cb, .arg = arg};
	return call;
}

int pool_read_rules(struct pool *pool, pool_cb *cb, void *arg)
{
	struct rules_call *call = new_call(pool, cb, arg);
	int r = call ? read_rules(call) : -ENOMEM;

	if (r)
		free(call);
	return r;
}

static void on_written(int result, const struct reply *reply, void *arg)
{
	struct rules_call *call = arg;
	const char *error = reply_text(reply, NULL);

	if (result == REASON_STORE_REFUSED && strstr(error, "newer than this node"))
		result = REASON_STORE_NEWER;
	if (!result && !read_rules(call))
		return;
	finish(call, result ? result : REASON_STORE_NOT_DONE, error);
}

int pool_write_rules(struct pool *pool, const struct word *names_and_values, size_t count,
		     pool_cb *cb, void *arg)
{
	struct rules_call *call = new_call(pool, cb, arg);
	struct word words[3 + RULE_WORDS_MAX];
	uint8_t salt[ENDPOINT_SALT_BYTES];
	char salt_hex[2 * sizeof salt + 1], wire[12];
	int r;

	if (!call)
		return -ENOMEM;
	r = count > RULE_WORDS_MAX ? -EMSGSIZE : random_bytes(salt, sizeof salt);
	if (!r) {
		hex_print(salt, sizeof salt, salt_hex);
		snprintf(wire, sizeof wire, "%d", POOL_WIRE);
		words[0] = pool_key(&pool->keys, KEY_RULES);
		words[1] = WORD(wire);
		words[2] = WORD(salt_hex);
		for (size_t i = 0; i < count; i++)
			words[3 + i] = names_and_values[i];
		r = store_script(pool->store, SCRIPT_RULES_SET, STORE_IDEMPOTENT, words, 3 + count,
				 on_written, call);
	}
	if (r)
		free(call);
	return r;
}
