/* sticky.c - sticky sessions: the question to lua/sticky.lua, and what its answer says. */
#include "pool/sticky.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "pool/credential.h"
#include "pool/internal.h"

#define NUMBER_SIZE 24

/* Of lua/sticky.lua. */
enum code { CODE_KEPT = 1, CODE_CREATED, CODE_MOVED, CODE_LOST, CODE_LIMIT };

/* One question under way. */
struct call {
	struct pool *pool;
	struct sticky *sticky; /* NULL: nobody waits any more; a member is counted and dropped */
	bool is_repeated;      /* asked once more after an answer was lost */
	bool is_moved;
	struct credentials credentials;
	struct member *const *avoid;
	size_t avoid_count;
	bool is_strict;
	char pin[SESSION_KEY_SIZE], sessions[SESSION_KEY_SIZE], id[KEY_PART_SIZE];
	char lifetime[NUMBER_SIZE], max[NUMBER_SIZE], limit[NUMBER_SIZE];
};

static void deliver(struct call *call, int result, struct member *member)
{
	struct sticky *sticky = call->sticky;

	if (!sticky) {
		member_unref(member);
		return;
	}
	call->sticky = NULL;
	sticky->call = NULL;
	sticky->cb(result, member, call->is_moved, sticky);
}

static void on_member(int result, struct member *member, size_t place, void *arg)
{
	(void)place;
	deliver(arg, result, member);
}

static void finish(struct call *call, int result)
{
	deliver(call, result, NULL);
	free(call);
}

static void take_answer(struct call *call, const struct reply *reply)
{
	const int64_t code = reply_integer(reply_at(reply, 0), 0);
	size_t len;
	const char *id = reply_text(reply_at(reply, 1), &len);

	if (code == CODE_LOST || code == CODE_LIMIT) {
		finish(call, code == CODE_LOST ? REASON_SESSION_LOST : REASON_SESSION_LIMIT);
		return;
	}
	if (reply_kind(reply) == REPLY_NIL) {
		finish(call, REASON_POOL_EMPTY);
		return;
	}
	metric_add(METRIC_ALLOCATED, 0, 1);
	call->is_moved = code == CODE_MOVED;
	credentials_take(&call->credentials, 0, id, len);
	credentials_fetch(&call->credentials);
}

static int ask(struct call *call);

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct call *call = arg;

	if (result == REASON_STORE_UNKNOWN) {
		/* Asked again, the session has the member that the lost answer named. It may be counted twice: that is what
		 * ambiguous says. */
		metric_add(METRIC_AMBIGUOUS, 0, 1);
		if (call->sticky && !call->is_repeated) {
			call->is_repeated = true;
			if (!ask(call))
				return;
		}
	}
	if (result) {
		snprintf(call->pool->last_error, sizeof call->pool->last_error, "%s",
			 reply_text(reply, NULL));
		finish(call, result);
		return;
	}
	take_answer(call, reply);
}

/* 0 or -errno. */
static int ask(struct call *call)
{
	struct word words[9 + AVOID_MAX] = {pool_key(&call->pool->keys, KEY_POOL),
					    WORD(call->pin),
					    WORD(call->sessions),
					    WORD(""),
					    WORD(call->id),
					    WORD(call->lifetime),
					    WORD(call->max),
					    WORD(call->limit),
					    WORD(call->is_strict ? "1" : "0")};

	for (size_t i = 0; i < call->avoid_count; i++)
		words[9 + i] = (struct word){call->avoid[i]->id, call->avoid[i]->id_len};
	return store_script(call->pool->store, SCRIPT_STICKY, 0, words, 9 + call->avoid_count,
			    on_answer, call);
}

static struct call *call_new(struct pool *pool, struct sticky *sticky,
			     const struct sticky_request *request)
{
	struct call *call = calloc(1, sizeof *call);
	size_t count = request->avoid_count;

	if (!call)
		return NULL;
	call->pool = pool;
	call->sticky = sticky;
	call->credentials = (struct credentials){
	    .pool = pool, .places = 1, .cb = on_member, .end = free, .arg = call};
	call->avoid = request->avoid;
	call->avoid_count = count < AVOID_MAX ? count : AVOID_MAX;
	call->is_strict = request->is_strict;
	session_pin_key(&pool->keys, request->client, request->session, call->pin);
	sessions_key(&pool->keys, request->client, call->sessions);
	key_part(request->session, call->id);
	snprintf(call->lifetime, NUMBER_SIZE, "%" PRId64, request->lifetime_ms);
	snprintf(call->max, NUMBER_SIZE, "%" PRId64, request->max_ms);
	snprintf(call->limit, NUMBER_SIZE, "%" PRId64, request->limit);
	return call;
}

int pool_sticky(struct pool *pool, struct sticky *sticky, const struct sticky_request *request,
		sticky_cb *cb)
{
	struct call *call;
	int r;

	if (pool_is_newer(pool))
		return -EPERM;
	if (strlen(request->client) > STICKY_NAME_MAX ||
	    strlen(request->session) > STICKY_NAME_MAX || !request->session[0])
		return -EINVAL;
	call = call_new(pool, sticky, request);
	r = call ? ask(call) : -ENOMEM;
	if (r) {
		free(call);
		return r;
	}
	*sticky = (struct sticky){.cb = cb, .call = call};
	return 0;
}

void pool_sticky_cancel(struct sticky *sticky)
{
	struct call *call = sticky->call;

	if (!call)
		return;
	call->sticky = NULL;
	sticky->call = NULL;
}
