/* test_pool_sweep.c - the janitor of a pool: leases that have run out, and the walk over busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lease_stage.h"
#include "pool/sweep.h"

#define MINUTE_MS 60000

static const struct lease_request any = {0};
static struct sweep *sweep;

static void begin_sweep(struct pool_stage *p)
{
	clock_set(clock_ms());
	assert_int_equal(pool_sweep_new(&sweep, p->stage.loop, p->pool), 0);
}

static void end(struct pool_stage *p)
{
	store_free(p->store);
	p->store = NULL;
	pool_sweep_free(sweep);
	clock_set(-1);
	pool_stage_end(p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result + 1;
}

static void set_rule(struct pool_stage *p, const char *rule)
{
	int result = 0;

	redis_askf(&p->redis, "HSET {pool}:pool:rules %s", rule);
	assert_int_equal(pool_read_rules(p->pool, on_rules, &result), 0);
	STAGE_UNTIL(&p->stage, result);
}

/* In steps, as what is done in one sets the time of the next. */
static void pass(struct pool_stage *p, int64_t ms, int64_t step_ms)
{
	for (; ms > 0; ms -= step_ms)
		lease_stage_pass(p, step_ms);
}

static void fill_pool(struct pool_stage *p, int first, int last)
{
	for (int i = first; i <= last; i++)
		redis_askf(&p->redis, "ZADD pool %d 192.0.2.1:%d", i, i);
}

static void lease_and_run_out(struct pool_stage *p, struct asker *askers, int count)
{
	for (int i = 0; i < count; i++)
		asker_begin(p, &askers[i], any);
	lease_stage_settle(p);
	for (int i = 0; i < count; i++) {
		assert_int_equal(askers[i].result, 0);
		redis_askf(&p->redis, "ZADD {pool}:pool:leases XX 1 %s", askers[i].lease.id);
	}
}

static void test_leases_that_have_run_out_are_collected(void **state)
{
	struct asker askers[3];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	fill_pool(&p, 1, 2);
	lease_and_run_out(&p, askers, 2);
	asker_expect(&p, &askers[2], any, 0);
	lease_stage_check(&p, 1); /* whoever acquires collects, too */
	redis_askf(&p.redis, "ZADD {pool}:pool:leases XX 1 %s", askers[2].lease.id);
	begin_sweep(&p);
	lease_stage_pass(&p, 1250);
	lease_stage_check(&p, 0);
	assert_string_equal(redis_ask(&p.redis, "EXISTS {pool}:pool:live {pool}:pool:leases"), "0");
	end(&p);
}

static void test_while_a_call_is_full_the_next_comes_at_once(void **state)
{
	static struct asker askers[600];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	fill_pool(&p, 1, 10);
	lease_and_run_out(&p, askers, 600);
	begin_sweep(&p);
	lease_stage_begin_to_pass(&p, 1250);
	STAGE_UNTIL(&p.stage, !strcmp(redis_ask(&p.redis, "ZCARD {pool}:pool:leases"), "0"));
	lease_stage_check(&p, 0);
	end(&p);
}

static void test_a_policy_without_leases_is_looked_at_once_a_minute(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	fill_pool(&p, 1, 3);
	begin_sweep(&p);
	pass(&p, 2000, 500);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	pass(&p, 55000, 500);
	assert_int_equal(redis_calls(&p.redis, "evalsha") + redis_calls(&p.redis, "zscan"), 0);
	pass(&p, 10000, 500);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 1);
	end(&p);
}

static void test_leases_that_are_left_are_collected_under_any_policy(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	fill_pool(&p, 1, 1);
	asker_expect(&p, &a, any, 0);
	begin_sweep(&p);
	pass(&p, 6000, 500);
	lease_stage_check(&p, 1);
	redis_askf(&p.redis, "ZADD {pool}:pool:leases XX 1 %s", a.lease.id);
	pass(&p, 6000, 500);
	lease_stage_check(&p, 0);
	end(&p);
}

static void test_members_of_foreign_hands_join_busy(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	set_rule(&p, "policy least-concurrent");
	fill_pool(&p, 1, 400);
	begin_sweep(&p);
	pass(&p, 1500, 50);
	assert_string_equal(redis_ask(&p.redis, "ZCARD {pool}:pool:busy"), "400");
	assert_string_equal(redis_ask(&p.redis, "ZSCORE {pool}:pool:busy 192.0.2.1:77"), "77");
	end(&p);
}

static void test_what_is_wrong_in_busy_is_mended(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	set_rule(&p, "policy least-concurrent");
	fill_pool(&p, 1, 200);
	begin_sweep(&p);
	pass(&p, 2000, 500);
	asker_expect(&p, &a, any, 0);
	redis_askf(&p.redis, "ZADD {pool}:pool:busy 1 %s 5 gone:1", a.lease.member->id);
	redis_ask(&p.redis, "ZADD {pool}:pool:busy 5497558138880 192.0.2.1:200");
	redis_ask(&p.redis, "ZREM pool 192.0.2.1:100");
	pass(&p, MINUTE_MS, 500);
	assert_string_equal(redis_ask(&p.redis, "ZCARD {pool}:pool:busy"), "199");
	assert_string_equal(redis_ask(&p.redis, "ZSCORE {pool}:pool:busy gone:1"), "nil");
	lease_stage_check(&p, 1);
	end(&p);
}

static void test_a_walk_is_about_once_a_minute(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	set_rule(&p, "policy least-concurrent");
	fill_pool(&p, 1, 3);
	begin_sweep(&p);
	pass(&p, 2000, 500);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	pass(&p, 4 * MINUTE_MS + 10000, 1000);
	/* Pool and busy, four times. */
	assert_int_equal(redis_calls(&p.redis, "zscan"), 8);
	/* Leases are looked after every four to five seconds, and a step of the clock. */
	assert_in_range(redis_calls(&p.redis, "evalsha") - 8, 41, 62);
	end(&p);
}

static void test_a_walk_that_fails_is_begun_again(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	set_rule(&p, "policy least-concurrent");
	fill_pool(&p, 1, 3);
	redis_ask(&p.redis, "SET {pool}:pool:live x");
	begin_sweep(&p);
	pass(&p, 3000, 500);
	assert_string_equal(redis_ask(&p.redis, "EXISTS {pool}:pool:busy"), "0");
	redis_ask(&p.redis, "DEL {pool}:pool:live");
	pass(&p, 6000, 500);
	assert_string_equal(redis_ask(&p.redis, "ZCARD {pool}:pool:busy"), "3");
	end(&p);
}

static void test_a_newer_pool_is_left_alone(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	set_rule(&p, "policy least-concurrent wire 2");
	fill_pool(&p, 1, 3);
	begin_sweep(&p);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	pass(&p, 10000, 500);
	assert_int_equal(redis_calls(&p.redis, "evalsha") + redis_calls(&p.redis, "zscan"), 0);
	end(&p);
}

/* --- with a server that is played --------------------------------------------------------------------------------- */

/* The order in which the two alarms ring is open. */
static void answer_both(struct pool_stage *p, const char *expired)
{
	static const char nobody[] = "*2\r\n$1\r\n0\r\n*0\r\n";
	const char *scan, *expire;

	peer_expect(&p->peer, "ZSCAN");
	peer_expect(&p->peer, "256\r\n");
	scan = strstr(p->peer.heard, "ZSCAN");
	expire = strstr(p->peer.heard, "EVALSHA");
	peer_say(&p->peer, scan < expire ? nobody : expired);
	peer_say(&p->peer, scan < expire ? expired : nobody);
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
	peer_forget(&p->peer);
}

static int count_expires(struct pool_stage *p)
{
	for (int i = 0; i < 3; i++)
		stage_turn(&p->stage);
	peer_listen_up(&p->peer);
	return peer_count(&p->peer, "EVALSHA");
}

static void test_the_next_look_is_at_the_next_expiry(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	begin_sweep(&p);
	lease_stage_begin_to_pass(&p, 1250);
	answer_both(&p, "*3\r\n:0\r\n:12000\r\n:10000\r\n");
	lease_stage_begin_to_pass(&p, 1999);
	assert_int_equal(count_expires(&p), 0);
	lease_stage_begin_to_pass(&p, 501);
	assert_int_equal(count_expires(&p), 1);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_leases_that_have_run_out_are_collected),
	    cmocka_unit_test(test_while_a_call_is_full_the_next_comes_at_once),
	    cmocka_unit_test(test_a_policy_without_leases_is_looked_at_once_a_minute),
	    cmocka_unit_test(test_leases_that_are_left_are_collected_under_any_policy),
	    cmocka_unit_test(test_members_of_foreign_hands_join_busy),
	    cmocka_unit_test(test_what_is_wrong_in_busy_is_mended),
	    cmocka_unit_test(test_a_walk_is_about_once_a_minute),
	    cmocka_unit_test(test_a_walk_that_fails_is_begun_again),
	    cmocka_unit_test(test_a_newer_pool_is_left_alone),
	    cmocka_unit_test(test_the_next_look_is_at_the_next_expiry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
