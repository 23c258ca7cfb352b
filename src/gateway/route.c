/* route.c - which member an exchange goes through: an allocation, a sticky session's member, another pool's. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/internal.h"
#include "pool/cooldown.h"

/* How many pools may stand behind one another. */
#define FALLBACKS_MAX 4
/* How many cooling members an exchange is given: each costs it a round trip, and the pool an allocation. */
#define COOLING_MAX 8
#define ALL_COOLING_LOG_MS 1000

static void ask(struct exchange *x);

static bool is_sticky(const struct exchange *x)
{
	return x->identity && *x->identity->session;
}

/* Makes room in `avoid` for one more. */
static bool grow(struct exchange *x)
{
	size_t count = x->avoid_count + x->passed_count;
	struct member **avoid = realloc(x->avoid, (count + 1) * sizeof(struct member *));

	if (avoid)
		x->avoid = avoid;
	return avoid != NULL;
}

bool route_avoid(struct exchange *x)
{
	if (!grow(x))
		return false;
	x->avoid[x->avoid_count + x->passed_count] = x->avoid[x->avoid_count];
	x->avoid[x->avoid_count++] = x->member;
	x->member = NULL;
	return x->avoid_count + x->passed_count < AVOID_MAX;
}

/* --- members that cool down for the host -------------------------------------------------------------------------- */

/* A session keeps its member all the same: its promise is the stronger one. */
static bool is_cooling(struct exchange *x)
{
	return !is_sticky(x) && pool_cooldown_has(x->pool, x->member, x->host);
}

/* Not a try: nothing was attempted, and the member may be used if there is no other. False when no more can be noted. */
static bool pass_over(struct exchange *x)
{
	if (x->passed_count + 1 >= COOLING_MAX ||
	    x->avoid_count + x->passed_count + 1 >= AVOID_MAX || !grow(x))
		return false;
	x->avoid[x->avoid_count + x->passed_count++] = x->member;
	x->member = NULL;
	return true;
}

static void log_all_cooling(struct exchange *x)
{
	const int64_t now = clock_ms();

	if (now < x->gateway->all_cooling_ms + ALL_COOLING_LOG_MS)
		return;
	x->gateway->all_cooling_ms = now;
	log_info("all members offered are cooling for this host",
		 LOG_TEXT("pool", pool_name(x->pool)), LOG_TEXT("host", x->host),
		 LOG_TEXT("member", x->member->id));
}

/* Takes the member that was passed over first: it had the lowest count, and was counted when it was given. */
static void take_passed(struct exchange *x)
{
	member_unref(x->member);
	x->member = x->avoid[x->avoid_count];
	x->passed_count--;
	memmove(&x->avoid[x->avoid_count], &x->avoid[x->avoid_count + 1],
		x->passed_count * sizeof(struct member *));
	log_all_cooling(x);
	exchange_routed(x, 0);
}

/* There is no other member, for `reason`. */
static void give_up(struct exchange *x, int reason)
{
	if (x->passed_count)
		take_passed(x);
	else
		exchange_routed(x, reason);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

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

static void on_empty(struct exchange *x)
{
	struct pool *fallback = x->last_reason || x->passed_count ? NULL : fallback_of(x);

	if (fallback) {
		x->pool = fallback;
		ask(x);
	} else {
		/* If all that there is was tried, the last failure says more than the empty pool. */
		give_up(x, x->last_reason ? x->last_reason : REASON_POOL_EMPTY);
	}
}

static void on_answer(struct exchange *x, int result, struct member *member)
{
	x->member = member;
	if (result == REASON_MEMBER_UNREADABLE) {
		/* Not a try: nothing was attempted. */
		x->last_reason = result;
		if (route_avoid(x))
			ask(x);
		else
			give_up(x, result);
	} else if (result == REASON_POOL_EMPTY) {
		on_empty(x);
	} else if (result) {
		give_up(x, result);
	} else if (!is_cooling(x)) {
		exchange_routed(x, 0);
	} else if (pass_over(x)) {
		ask(x);
	} else {
		give_up(x, 0);
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
	const size_t avoid_count = x->avoid_count + x->passed_count;
	int r = 0;

	if (is_sticky(x))
		r = ask_session(x);
	else if (avoid_count)
		r = pool_allocate_except(x->pool, &x->ask.allocation, x->avoid, avoid_count,
					 on_allocated);
	else
		pool_allocate(x->pool, &x->ask.allocation, on_allocated);
	if (r)
		give_up(x, REASON_STORE_NOT_DONE);
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
