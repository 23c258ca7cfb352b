/* route.c - which member an exchange goes through: an allocation, a sticky session's member, another pool's. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gateway/internal.h"

/* How many pools may stand behind one another. */
#define FALLBACKS_MAX 4

static void ask(struct exchange *x);

bool route_avoid(struct exchange *x)
{
	struct member **avoid = realloc(x->avoid, (x->avoid_count + 1) * sizeof(struct member *));

	if (!avoid)
		return false;
	x->avoid = avoid;
	x->avoid[x->avoid_count++] = x->member;
	x->member = NULL;
	return x->avoid_count < AVOID_MAX;
}

/* The pool that stands in for an empty one, or NULL. */
static struct pool *fallback_of(struct exchange *x)
{
	const char *alias = pool_rules(x->pool)->value[RULE_FALLBACK];
	struct pool *pool = *alias ? pools_find(x->gateway->config.pools, alias) : NULL;

	if (!pool || pool == x->pool || x->fallbacks >= FALLBACKS_MAX)
		return NULL;
	x->fallbacks++;
	log_debug("another pool stands in", LOG_TEXT("pool", pool_name(x->pool)),
		  LOG_TEXT("fallback", pool_name(pool)));
	return pool;
}

static void on_answer(struct exchange *x, int result, struct member *member)
{
	struct pool *fallback = NULL;

	x->member = member;
	if (result == REASON_MEMBER_UNREADABLE) {
		/* Not a try: nothing was attempted. */
		x->last_reason = result;
		if (route_avoid(x))
			ask(x);
		else
			exchange_routed(x, result);
		return;
	}
	if (result == REASON_POOL_EMPTY && !x->last_reason)
		fallback = fallback_of(x);
	if (fallback) {
		x->pool = fallback;
		ask(x);
	} else if (result == REASON_POOL_EMPTY && x->last_reason) {
		/* All that there is was tried: the last failure says more than the empty pool. */
		exchange_routed(x, x->last_reason);
	} else {
		exchange_routed(x, result);
	}
}

static void on_allocated(int result, struct member *member, struct allocation *allocation)
{
	on_answer((struct exchange *)((char *)allocation - offsetof(struct exchange, ask)), result,
		  member);
}

static void on_sticky(int result, struct member *member, bool is_moved, struct sticky *sticky)
{
	struct exchange *x = (struct exchange *)((char *)sticky - offsetof(struct exchange, ask));

	x->is_session_moved = x->is_session_moved || is_moved;
	on_answer(x, result, member);
}

static bool is_sticky(const struct exchange *x)
{
	return x->identity && *x->identity->session;
}

static int ask_session(struct exchange *x)
{
	const struct gateway_config *config = &x->gateway->config;
	struct sticky_request request = {
	    .client = x->identity->client,
	    .session = x->identity->session,
	    .lifetime_ms = x->identity->lifetime_ms,
	    .max_ms = config->session_max_ms,
	    .limit = config->session_limit,
	    .is_strict = x->identity->is_strict,
	    .avoid = x->avoid,
	    .avoid_count = x->avoid_count,
	};

	return pool_sticky(x->pool, &x->ask.sticky, &request, on_sticky);
}

static void ask(struct exchange *x)
{
	int r = 0;

	if (is_sticky(x))
		r = ask_session(x);
	else if (x->avoid_count)
		r = pool_allocate_except(x->pool, &x->ask.allocation, x->avoid, x->avoid_count,
					 on_allocated);
	else
		pool_allocate(x->pool, &x->ask.allocation, on_allocated);
	if (r)
		exchange_routed(x, REASON_STORE_NOT_DONE);
}

void route_begin(struct exchange *x)
{
	ask(x);
}

void route_cancel(struct exchange *x)
{
	if (is_sticky(x))
		pool_sticky_cancel(&x->ask.sticky);
	else
		pool_allocate_cancel(&x->ask.allocation);
}
