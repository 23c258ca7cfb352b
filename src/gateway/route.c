/* route.c - which member an exchange goes through: an allocation, a lease, a sticky session's member, another pool's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/internal.h"
#include "pool/cooldown.h"
#include "pool/lease.h"

/* How many pools may stand behind one another. */
#define FALLBACKS_MAX 4
/* How many cooling members an exchange is given: each costs it a round trip, and the pool an allocation. */
#define COOLING_MAX 8
#define ALL_COOLING_LOG_MS 1000

static void ask(struct exchange *x);
static void take(struct exchange *x);

static bool is_sticky(const struct exchange *x)
{
	return x->identity && *x->identity->session;
}

/* Under least-concurrent a member is used with a lease only, whatever brought the exchange to it. */
static bool is_leased(const struct exchange *x)
{
	return rules_want_leases(pool_rules(x->pool));
}

static void drop_lease(struct exchange *x)
{
	if (x->lease)
		lease_release(x->lease);
	free(x->lease);
	x->lease = NULL;
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
	drop_lease(x);
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
	drop_lease(x);
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
	drop_lease(x); /* of the member that was offered last, if there was no room to note it */
	member_unref(x->member);
	x->member = x->avoid[x->avoid_count];
	x->passed_count--;
	memmove(&x->avoid[x->avoid_count], &x->avoid[x->avoid_count + 1],
		x->passed_count * sizeof(struct member *));
	log_all_cooling(x);
	take(x);
}

/* There is no other member, for `reason`. */
static void give_up(struct exchange *x, int reason)
{
	if (x->passed_count)
		take_passed(x);
	else
		exchange_routed(x, reason);
}

/* What a question that could not be asked comes to. */
static int refusal(int r)
{
	return r == -EPERM ? REASON_STORE_NEWER : REASON_STORE_NOT_DONE;
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

/* The member in use cannot be used, for `reason`. Not a try: nothing was attempted. */
static void ask_another(struct exchange *x, int reason)
{
	if (route_avoid(x))
		ask(x);
	else
		give_up(x, reason);
}

static void on_cooling(struct exchange *x)
{
	if (pass_over(x))
		ask(x);
	else if (x->passed_count)
		take_passed(x);
	else
		take(x);
}

static void on_answer(struct exchange *x, int result, struct member *member)
{
	x->member = member;
	if (result == REASON_MEMBER_UNREADABLE) {
		x->last_reason = result;
		ask_another(x, result);
	} else if (result == REASON_POOL_EMPTY) {
		on_empty(x);
	} else if (result) {
		give_up(x, result);
	} else if (is_cooling(x)) {
		on_cooling(x);
	} else {
		take(x);
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

/* --- leases ------------------------------------------------------------------------------------------------------- */

static void on_lease(int result, struct lease *lease, void *arg)
{
	struct exchange *x = arg;

	if (lease->member)
		x->member = member_ref(lease->member);
	else
		drop_lease(x);
	on_answer(x, result, x->member);
}

/* The lease of a member that was counted already. One that has left the pool meanwhile is not tried, and no failure. */
static void on_own_lease(int result, struct lease *lease, void *arg)
{
	struct exchange *x = arg;

	if (!lease->member)
		drop_lease(x);
	if (result == REASON_MEMBER_UNREADABLE)
		x->last_reason = result;
	if (result == REASON_MEMBER_UNREADABLE || result == REASON_POOL_EMPTY)
		ask_another(x, result);
	else
		exchange_routed(x, result);
}

/* One bound for all questions of one try. */
static int64_t wait_left_ms(const struct exchange *x)
{
	const int64_t left_ms =
	    x->gateway->config.lease_wait_ms - (clock_us() - x->state_since_us) / 1000;

	return left_ms > 0 ? left_ms : 0;
}

/* Asks for a lease: of any member but those in `avoid`, or of `only`. 0 or -errno. */
static int ask_lease(struct exchange *x, struct member *only)
{
	const struct lease_request request = {
	    .wait_ms = wait_left_ms(x),
	    .only = only,
	    .avoid = x->avoid,
	    .avoid_count = only ? 0 : x->avoid_count + x->passed_count,
	    .cb = only ? on_own_lease : on_lease,
	    .arg = x,
	};
	int r = -ENOMEM;

	x->lease = calloc(1, sizeof *x->lease);
	if (x->lease)
		r = pool_acquire(x->pool, x->lease, &request);
	if (r) {
		free(x->lease);
		x->lease = NULL;
	}
	return r;
}

/* The member in use is the one to be used. */
static void take(struct exchange *x)
{
	int r;

	if (!is_leased(x) || x->lease) {
		exchange_routed(x, 0);
		return;
	}
	r = ask_lease(x, x->member);
	if (r)
		exchange_routed(x, refusal(r));
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

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
	else if (is_leased(x))
		r = ask_lease(x, NULL);
	else if (avoid_count)
		r = pool_allocate_except(x->pool, &x->ask.allocation, x->avoid, avoid_count,
					 on_allocated);
	else
		pool_allocate(x->pool, &x->ask.allocation, on_allocated);
	if (r)
		give_up(x, refusal(r));
}

void route_begin(struct exchange *x)
{
	ask(x);
}

void route_end(struct exchange *x)
{
	if (is_sticky(x))
		pool_sticky_cancel(&x->ask.sticky);
	else
		pool_allocate_cancel(&x->ask.allocation);
	drop_lease(x);
}
