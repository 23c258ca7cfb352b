/* lease_stage.c - what tests of leases share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lease_stage.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static void on_lease(int result, struct lease *lease, void *arg)
{
	struct asker *asker = arg;

	assert_ptr_equal(lease, &asker->lease);
	asker->ends++;
	asker->result = result;
}

static void on_lost(struct lease *lease, void *arg)
{
	struct asker *asker = arg;

	assert_true(lease->is_lost);
	asker->losses++;
}

void asker_begin(struct pool_stage *p, struct asker *asker, struct lease_request request)
{
	*asker = (struct asker){0};
	request.cb = on_lease;
	request.lost = on_lost;
	request.arg = asker;
	assert_int_equal(pool_acquire(p->pool, &asker->lease, &request), 0);
	assert_int_equal(asker->ends, 0);
}

void asker_expect(struct pool_stage *p, struct asker *asker, struct lease_request request,
		  int result)
{
	asker_begin(p, asker, request);
	STAGE_UNTIL(&p->stage, asker->ends);
	assert_int_equal(asker->result, result);
}

void lease_stage_settle(struct pool_stage *p)
{
	stage_turn(&p->stage);
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
}

struct timers {
	struct event *events[64];
	int count;
};

static int keep_timer(const struct event_base *base, const struct event *event, void *arg)
{
	struct timers *timers = arg;

	(void)base;
	if (event_get_fd(event) < 0 && event_pending(event, EV_TIMEOUT, NULL) && timers->count < 64)
		timers->events[timers->count++] = (struct event *)event;
	return 0;
}

void lease_stage_begin_to_pass(struct pool_stage *p, int64_t ms)
{
	struct timers timers = {0};

	clock_set(clock_ms() + ms);
	event_base_foreach_event(loop_base(p->stage.loop), keep_timer, &timers);
	for (int i = 0; i < timers.count; i++)
		event_active(timers.events[i], EV_TIMEOUT, 0);
	stage_turn(&p->stage);
}

void lease_stage_pass(struct pool_stage *p, int64_t ms)
{
	lease_stage_settle(p);
	lease_stage_begin_to_pass(p, ms);
	lease_stage_settle(p);
}

void lease_stage_check(struct pool_stage *p, int count)
{
	static const char script[] =
	    "EVAL \"local held, n = {}, 0 "
	    "local all = redis.call('HGETALL', '{pool}:pool:holders') "
	    "for i = 1, #all, 2 do if all[i] ~= 'next' then n = n + 1 "
	    "local m = string.match(all[i + 1], 'member=(.*)$') held[m] = (held[m] or 0) + 1 "
	    "if not redis.call('ZSCORE', '{pool}:pool:leases', all[i]) then return 'no expiry' end "
	    "end end "
	    "if redis.call('ZCARD', '{pool}:pool:leases') ~= n then return 'expiries' end "
	    "local live = redis.call('HGETALL', '{pool}:pool:live') "
	    "for i = 1, #live, 2 do if tonumber(live[i + 1]) ~= held[live[i]] then "
	    "return 'live of ' .. live[i] end held[live[i]] = held[live[i]] + 0.5 end "
	    "for m, k in pairs(held) do if k % 1 == 0 then return 'no live of ' .. m end end "
	    "local busy = redis.call('ZRANGE', '{pool}:pool:busy', 0, -1, 'WITHSCORES') "
	    "for i = 1, #busy, 2 do if math.floor(tonumber(busy[i + 1]) / 2 ^ 40) ~= "
	    "math.floor(held[busy[i]] or 0) then return 'busy of ' .. busy[i] end end "
	    "return tostring(n)\" 0";
	char expected[16];

	snprintf(expected, sizeof expected, "%d", count);
	assert_string_equal(redis_ask(&p->redis, script), expected);
}
