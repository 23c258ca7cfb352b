/* test_cooldown.c - members avoided for a host: known here at once, to others within a second, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pool/cooldown.h"
#include "pool_stage.h"

#define A "http://192.0.2.1:80"
#define B "http://192.0.2.2:80"
#define TABLE "{pool}:pool:cooldown"

static const struct member a = {.id = (char[]){A}, .id_len = sizeof A - 1};
static const struct member b = {.id = (char[]){B}, .id_len = sizeof B - 1};

static void settle(struct pool_stage *p)
{
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
}

/* Adds and waits until the store has it. */
static void add(struct pool_stage *p, const struct member *member, const char *host)
{
	pool_cooldown_add(p->pool, member, host);
	stage_turn(&p->stage);
	settle(p);
}

/* A pool as another process has it. */
static struct pool *other_pool(struct pool_stage *p)
{
	struct pool *pool;
	char error[200];

	assert_int_equal(pool_new(&pool, p->stage.loop, p->store, "pool", error, sizeof error), 0);
	return pool;
}

static void end_other(struct pool_stage *p, struct pool *other)
{
	settle(p);
	pool_free(other);
	clock_set(-1);
	pool_stage_end(p);
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

/* Whatever is due at `ms` from now happens. */
static void begin_to_pass(struct pool_stage *p, int64_t ms)
{
	struct timers timers = {0};

	clock_set(clock_ms() + ms);
	event_base_foreach_event(loop_base(p->stage.loop), keep_timer, &timers);
	for (int i = 0; i < timers.count; i++)
		event_active(timers.events[i], EV_TIMEOUT, 0);
	stage_turn(&p->stage);
}

/* Time passes with nothing under way. */
static void pass(struct pool_stage *p, int64_t ms)
{
	settle(p);
	begin_to_pass(p, ms);
	settle(p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)result;
	(void)error;
	*(bool *)arg = true;
}

static void read_rules(struct pool_stage *p)
{
	bool is_done = false;

	assert_int_equal(pool_read_rules(p->pool, on_rules, &is_done), 0);
	STAGE_UNTIL(&p->stage, is_done);
}

/* --- here --------------------------------------------------------------------------------------------------------- */

static void test_a_member_is_avoided_at_once_and_for_that_host_alone(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	assert_false(pool_cooldown_has(p.pool, &a, "a.test"));
	pool_cooldown_add(p.pool, &a, "a.test");
	assert_true(pool_cooldown_has(p.pool, &a, "a.test"));
	assert_false(pool_cooldown_has(p.pool, &a, "b.test"));
	assert_false(pool_cooldown_has(p.pool, &b, "a.test"));
	pool_stage_end(&p);
}

static void test_it_ends_when_the_rule_says(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules cooldown_ms 7000");
	read_rules(&p);
	clock_set(clock_ms());
	add(&p, &a, "a.test");
	clock_set(clock_ms() + 6999);
	assert_true(pool_cooldown_has(p.pool, &a, "a.test"));
	clock_set(clock_ms() + 1);
	assert_false(pool_cooldown_has(p.pool, &a, "a.test"));
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_the_rule_zero_avoids_nobody(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules cooldown_ms 0");
	read_rules(&p);
	add(&p, &a, "a.test");
	assert_false(pool_cooldown_has(p.pool, &a, "a.test"));
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 0);
	pool_stage_end(&p);
}

static void test_the_oldest_makes_room_in_a_full_table(void **state)
{
	struct pool_stage p;
	char host[32];

	(void)state;
	pool_stage_begin(&p);
	for (int i = 0; i <= 10000; i++) {
		snprintf(host, sizeof host, "h%d.test", i);
		pool_cooldown_add(p.pool, &a, host);
	}
	assert_false(pool_cooldown_has(p.pool, &a, "h0.test"));
	assert_true(pool_cooldown_has(p.pool, &a, "h1.test"));
	assert_true(pool_cooldown_has(p.pool, &a, "h10000.test"));
	stage_turn(&p.stage);
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " TABLE), "10000");
	pool_stage_end(&p);
}

static void test_a_pool_may_end_with_entries_that_wait(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	pool_cooldown_add(p.pool, &a, "a.test");
	pool_cooldown_add(p.pool, &b, "a.test");
	pool_stage_end(&p);
}

/* --- the store ---------------------------------------------------------------------------------------------------- */

static void test_it_is_written_as_host_and_member(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	add(&p, &a, "a.test");
	assert_string_equal(redis_ask(&p.redis, "ZRANGE " TABLE " 0 -1"), "a.test\t" A);
	pool_stage_end(&p);
}

static void test_what_is_added_in_a_turn_is_one_call(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	add(&p, &a, "warm.test"); /* the script is known from here on */
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	pool_cooldown_add(p.pool, &a, "a.test");
	pool_cooldown_add(p.pool, &b, "a.test");
	add(&p, &b, "b.test");
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 1);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " TABLE), "4");
	pool_stage_end(&p);
}

static void test_the_same_is_told_once_a_second(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	clock_set(clock_ms());
	add(&p, &a, "warm.test");
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	for (int i = 0; i < 200; i++)
		add(&p, &a, "a.test");
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 1);
	clock_set(clock_ms() + 1000);
	add(&p, &a, "a.test");
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 2);
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_a_newer_pool_is_not_written(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	read_rules(&p);
	add(&p, &a, "a.test");
	assert_string_equal(redis_ask(&p.redis, "EXISTS " TABLE), "0");
	pool_stage_end(&p);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

static void test_another_process_knows_what_stands_there(void **state)
{
	struct pool *other;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	add(&p, &a, "a.test");
	other = other_pool(&p);
	STAGE_UNTIL(&p.stage, pool_cooldown_has(other, &a, "a.test"));
	assert_false(pool_cooldown_has(other, &a, "b.test"));
	assert_false(pool_cooldown_has(other, &b, "a.test"));
	end_other(&p, other);
}

static void test_another_process_learns_within_a_second(void **state)
{
	struct pool *other;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	clock_set(clock_ms());
	other = other_pool(&p);
	assert_false(pool_cooldown_has(other, &a, "a.test"));
	settle(&p);
	add(&p, &a, "a.test");
	assert_false(pool_cooldown_has(other, &a, "a.test"));
	pass(&p, 1000);
	assert_true(pool_cooldown_has(other, &a, "a.test"));
	add(&p, &b, "b.test");
	pass(&p, 1000);
	assert_true(pool_cooldown_has(other, &b, "b.test"));
	assert_true(pool_cooldown_has(other, &a, "a.test"));
	end_other(&p, other);
}

static void test_an_end_is_told_by_the_clock_of_redis(void **state)
{
	struct pool_stage p;
	long long now;

	(void)state;
	pool_stage_begin(&p);
	now = strtoll(redis_ask(&p.redis, "TIME"), NULL, 10) * 1000;
	redis_askf(&p.redis, "ZADD " TABLE " %lld \"a.test\\t" A "\" %lld \"b.test\\t" A "\"",
		   now + 600000, now - 1);
	clock_set(clock_ms());
	pool_cooldown_has(p.pool, &a, "a.test");
	settle(&p);
	assert_true(pool_cooldown_has(p.pool, &a, "a.test"));
	assert_false(pool_cooldown_has(p.pool, &a, "b.test"));
	clock_set(clock_ms() + 590000);
	assert_true(pool_cooldown_has(p.pool, &a, "a.test"));
	clock_set(clock_ms() + 10001);
	assert_false(pool_cooldown_has(p.pool, &a, "a.test"));
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_what_was_taken_out_is_forgotten_within_half_a_minute(void **state)
{
	struct pool *other;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	clock_set(clock_ms());
	add(&p, &a, "a.test");
	other = other_pool(&p);
	pool_cooldown_has(other, &a, "a.test");
	settle(&p);
	assert_true(pool_cooldown_has(other, &a, "a.test"));
	redis_ask(&p.redis, "DEL " TABLE);
	pass(&p, 30000);
	assert_false(pool_cooldown_has(other, &a, "a.test"));
	end_other(&p, other);
}

static void test_who_asks_reads_once_a_second_and_who_does_not_sends_nothing(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	clock_set(clock_ms());
	assert_int_equal(redis_calls(&p.redis, "zrevrangebyscore"), 0);
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 100; j++)
			assert_false(pool_cooldown_has(p.pool, &a, "a.test"));
		pass(&p, 1000);
	}
	assert_int_equal(redis_calls(&p.redis, "zrevrangebyscore"), 11);
	assert_int_equal(redis_calls(&p.redis, "time"), 1);
	for (int i = 0; i < 10; i++)
		pass(&p, 1000);
	assert_int_equal(redis_calls(&p.redis, "zrevrangebyscore"), 11);
	pool_cooldown_has(p.pool, &a, "a.test");
	settle(&p);
	assert_int_equal(redis_calls(&p.redis, "zrevrangebyscore"), 12);
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_after_a_reading_that_failed_all_is_read(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	clock_set(clock_ms());
	pool_cooldown_has(p.pool, &a, "a.test");
	peer_expect(&p.peer, "ZREVRANGEBYSCORE");
	peer_say(&p.peer, "*2\r\n$1\r\n1\r\n$1\r\n0\r\n-ERR none\r\n");
	settle(&p);
	peer_forget(&p.peer);
	begin_to_pass(&p, 1000);
	peer_expect(&p.peer, "TIME");
	clock_set(-1);
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_member_is_avoided_at_once_and_for_that_host_alone),
	    cmocka_unit_test(test_it_ends_when_the_rule_says),
	    cmocka_unit_test(test_the_rule_zero_avoids_nobody),
	    cmocka_unit_test(test_the_oldest_makes_room_in_a_full_table),
	    cmocka_unit_test(test_a_pool_may_end_with_entries_that_wait),
	    cmocka_unit_test(test_it_is_written_as_host_and_member),
	    cmocka_unit_test(test_what_is_added_in_a_turn_is_one_call),
	    cmocka_unit_test(test_the_same_is_told_once_a_second),
	    cmocka_unit_test(test_a_newer_pool_is_not_written),
	    cmocka_unit_test(test_another_process_knows_what_stands_there),
	    cmocka_unit_test(test_another_process_learns_within_a_second),
	    cmocka_unit_test(test_an_end_is_told_by_the_clock_of_redis),
	    cmocka_unit_test(test_what_was_taken_out_is_forgotten_within_half_a_minute),
	    cmocka_unit_test(test_who_asks_reads_once_a_second_and_who_does_not_sends_nothing),
	    cmocka_unit_test(test_after_a_reading_that_failed_all_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
