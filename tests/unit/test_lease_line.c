/* test_lease_line.c - who waits while all members are at their cap: order, pauses, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metric.h"
#include "lease_stage.h"

#define WAIT_MS 10000

static const struct lease_request any = {.wait_ms = WAIT_MS};

/* A pool of two members, each with a cap of one, that are both leased. */
static void begin(struct pool_stage *p, struct asker held[2])
{
	pool_stage_begin(p);
	redis_ask(&p->redis, "ZADD pool 0 192.0.2.1:1 0 192.0.2.2:1");
	redis_ask(&p->redis, "HSET {pool}:pool:rules max_concurrent 1");
	for (int i = 0; i < 2; i++)
		asker_expect(p, &held[i], any, 0);
	/* Now the server knows all scripts, and does what it is told in order. */
	lease_release(&held[1].lease);
	lease_stage_settle(p);
	asker_expect(p, &held[1], any, 0);
	clock_set(clock_ms());
}

static void end(struct pool_stage *p)
{
	clock_set(-1);
	pool_stage_end(p);
}

static void wait_in_line(struct pool_stage *p, struct asker *asker, struct lease_request request)
{
	asker_begin(p, asker, request);
	STAGE_UNTIL(&p->stage, asker->lease.is_waiting);
}

static void test_a_release_of_this_process_serves_the_first_at_once(void **state)
{
	int64_t waits = metric_own(METRIC_LEASE_WAITS);
	struct asker held[2], a, b;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a, any);
	wait_in_line(&p, &b, any);
	assert_true(metric_own(METRIC_LEASE_WAITS) == waits + 2);
	lease_release(&held[0].lease);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, 0);
	assert_string_equal(a.lease.member->id, "192.0.2.1:1");
	assert_int_equal(b.ends, 0);
	lease_release(&held[1].lease);
	STAGE_UNTIL(&p.stage, b.ends);
	assert_int_equal(b.result, 0);
	lease_release(&a.lease);
	lease_release(&b.lease);
	lease_stage_settle(&p);
	lease_stage_check(&p, 0);
	end(&p);
}

static void test_all_are_served_in_order_of_arrival(void **state)
{
	struct asker held[2], askers[20];
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	for (int i = 0; i < 20; i++)
		asker_begin(&p, &askers[i], any);
	STAGE_UNTIL(&p.stage, askers[19].lease.is_waiting);
	lease_release(&held[0].lease);
	for (int i = 0; i < 20; i++) {
		STAGE_UNTIL(&p.stage, askers[i].ends);
		assert_int_equal(askers[i].result, 0);
		for (int j = i + 1; j < 20; j++)
			assert_int_equal(askers[j].ends, 0);
		lease_release(&askers[i].lease);
	}
	lease_release(&held[1].lease);
	lease_stage_settle(&p);
	lease_stage_check(&p, 0);
	end(&p);
}

static void test_who_comes_later_does_not_ask_while_others_wait(void **state)
{
	struct asker held[2], a, b;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a, any);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	asker_begin(&p, &b, any);
	assert_true(b.lease.is_waiting);
	lease_stage_settle(&p);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 0);
	lease_stage_pass(&p, 100);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 1);
	end(&p);
}

static void test_the_wait_ends(void **state)
{
	struct asker held[2], a, b, now;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	asker_expect(&p, &now, (struct lease_request){0}, REASON_POOL_FULL);
	assert_null(now.lease.pool);
	wait_in_line(&p, &a, any);
	lease_stage_pass(&p, 4000);
	wait_in_line(&p, &b, any);
	lease_stage_pass(&p, WAIT_MS - 4001);
	assert_int_equal(a.ends, 0);
	lease_stage_pass(&p, 1);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.result, REASON_POOL_FULL);
	assert_int_equal(b.ends, 0);
	lease_stage_pass(&p, 4000);
	assert_int_equal(b.result, REASON_POOL_FULL);
	end(&p);
}

static void test_what_runs_out_elsewhere_is_found_within_a_pause(void **state)
{
	struct asker held[2], a;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a, any);
	redis_askf(&p.redis, "ZADD {pool}:pool:leases XX 1 %s", held[0].lease.id);
	lease_stage_pass(&p, 100);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, 0);
	end(&p);
}

static void test_a_pool_that_is_emptied_meanwhile_is_told(void **state)
{
	struct asker held[2], a, b;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a, any);
	wait_in_line(&p, &b, any);
	redis_ask(&p.redis, "DEL pool {pool}:pool:busy");
	lease_stage_pass(&p, 100);
	STAGE_UNTIL(&p.stage, a.ends && b.ends);
	assert_int_equal(a.result, REASON_POOL_EMPTY);
	assert_int_equal(b.result, REASON_POOL_EMPTY);
	end(&p);
}

static void test_who_leaves_the_line_is_not_served(void **state)
{
	struct asker held[2], a, b, c;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a, any);
	wait_in_line(&p, &b, any);
	wait_in_line(&p, &c, any);
	lease_release(&b.lease);
	lease_release(&a.lease);
	lease_release(&held[0].lease);
	STAGE_UNTIL(&p.stage, c.ends);
	assert_int_equal(c.result, 0);
	assert_int_equal(a.ends + b.ends, 0);
	end(&p);
}

/* --- those who want one member, or avoid some --------------------------------------------------------------------- */

static void test_one_member_is_waited_for_beside_the_others(void **state)
{
	struct asker held[2], one, anybody;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &one,
		     (struct lease_request){.only = held[0].lease.member, .wait_ms = WAIT_MS});
	wait_in_line(&p, &anybody, any);
	lease_release(&held[1].lease);
	STAGE_UNTIL(&p.stage, anybody.ends);
	assert_int_equal(anybody.result, 0);
	assert_int_equal(one.ends, 0);
	lease_release(&held[0].lease);
	STAGE_UNTIL(&p.stage, one.ends);
	assert_string_equal(one.lease.member->id, "192.0.2.1:1");
	end(&p);
}

static void test_who_avoids_the_released_member_lets_the_next_ask(void **state)
{
	struct asker held[2], a, b;
	struct member *avoid[2];
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	avoid[0] = held[0].lease.member;
	avoid[1] = held[1].lease.member;
	wait_in_line(
	    &p, &a,
	    (struct lease_request){.avoid = &avoid[0], .avoid_count = 1, .wait_ms = WAIT_MS});
	wait_in_line(
	    &p, &b,
	    (struct lease_request){.avoid = &avoid[1], .avoid_count = 1, .wait_ms = WAIT_MS});
	avoid[0]->references++;
	lease_release(&held[0].lease);
	STAGE_UNTIL(&p.stage, b.ends);
	assert_string_equal(b.lease.member->id, "192.0.2.1:1");
	assert_int_equal(a.ends, 0);
	avoid[1]->references++;
	lease_release(&held[1].lease);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_string_equal(a.lease.member->id, "192.0.2.2:1");
	member_unref(avoid[0]);
	member_unref(avoid[1]);
	end(&p);
}

static void test_the_choosy_ask_by_turns(void **state)
{
	struct asker held[2], a, b;
	struct pool_stage p;

	(void)state;
	begin(&p, held);
	wait_in_line(&p, &a,
		     (struct lease_request){.only = held[0].lease.member, .wait_ms = WAIT_MS});
	wait_in_line(&p, &b,
		     (struct lease_request){.only = held[1].lease.member, .wait_ms = WAIT_MS});
	redis_askf(&p.redis, "ZADD {pool}:pool:leases XX 1 %s", held[1].lease.id);
	for (int i = 0; i < 3 && !b.ends; i++)
		lease_stage_pass(&p, 100);
	assert_int_equal(b.ends, 1);
	assert_int_equal(b.result, 0);
	assert_int_equal(a.ends, 0);
	end(&p);
}

/* --- with a server that is played --------------------------------------------------------------------------------- */

static void play(struct pool_stage *p, struct asker *asker, const char *answer)
{
	pool_stage_play(p);
	clock_set(clock_ms());
	asker_begin(p, asker, any);
	peer_expect(&p->peer, asker->lease.id);
	peer_say(&p->peer, answer);
	STAGE_UNTIL(&p->stage, asker->lease.is_waiting);
	peer_forget(&p->peer);
}

static void expect_silence(struct pool_stage *p)
{
	for (int i = 0; i < 5; i++)
		stage_turn(&p->stage);
	assert_false(store_is_busy(p->store));
	peer_listen_up(&p->peer);
	assert_int_equal(peer_count(&p->peer, "EVALSHA"), 0);
}

static void test_the_first_asks_again_after_20_to_100_ms(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a, PLAYED_FULL);
	for (int i = 0; i < 10; i++) {
		lease_stage_begin_to_pass(&p, 19);
		expect_silence(&p);
		lease_stage_begin_to_pass(&p, 81);
		peer_expect(&p.peer, a.lease.id);
		peer_say(&p.peer, PLAYED_FULL);
		STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
		peer_forget(&p.peer);
	}
	lease_release(&a.lease);
	end(&p);
}

static void test_the_first_asks_when_the_earliest_lease_runs_out(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a, "*5\r\n:2\r\n$0\r\n\r\n$0\r\n\r\n:1010\r\n:1000\r\n");
	lease_stage_begin_to_pass(&p, 9);
	expect_silence(&p);
	lease_stage_begin_to_pass(&p, 1);
	peer_expect(&p.peer, a.lease.id);
	peer_say(&p.peer, PLAYED_GRANT);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, 0);
	end(&p);
}

static void test_the_wait_ends_behind_a_question_under_way(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a, PLAYED_FULL);
	lease_stage_begin_to_pass(&p, WAIT_MS - 1);
	peer_expect(&p.peer, a.lease.id);
	lease_stage_begin_to_pass(&p, 1);
	assert_int_equal(a.ends, 0);
	peer_say(&p.peer, PLAYED_FULL);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_POOL_FULL);
	end(&p);
}

static void test_when_the_first_leaves_while_asking_the_next_asks_at_once(void **state)
{
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	play(&p, &a, PLAYED_FULL);
	asker_begin(&p, &b, any);
	lease_stage_begin_to_pass(&p, 100);
	peer_expect(&p.peer, a.lease.id);
	lease_release(&a.lease);
	peer_expect(&p.peer, b.lease.id);
	peer_say(&p.peer, PLAYED_FULL PLAYED_GRANT);
	STAGE_UNTIL(&p.stage, b.ends);
	assert_int_equal(b.result, 0);
	assert_int_equal(a.ends, 0);
	end(&p);
}

static void test_a_release_while_the_first_asks_makes_it_ask_once_more(void **state)
{
	struct asker held, a;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	clock_set(clock_ms());
	asker_begin(&p, &held, any);
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, PLAYED_GRANT);
	STAGE_UNTIL(&p.stage, held.ends);
	asker_begin(&p, &a, any);
	peer_expect(&p.peer, a.lease.id);
	peer_say(&p.peer, PLAYED_FULL);
	STAGE_UNTIL(&p.stage, a.lease.is_waiting);
	peer_forget(&p.peer);
	lease_stage_begin_to_pass(&p, 100);
	peer_expect(&p.peer, a.lease.id);
	lease_release(&held.lease);
	peer_expect(&p.peer, PLAYED_TOKEN);
	peer_forget(&p.peer);
	peer_say(&p.peer, PLAYED_FULL "*1\r\n:0\r\n");
	peer_expect(&p.peer, a.lease.id); /* and no time has passed */
	peer_say(&p.peer, PLAYED_GRANT);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, 0);
	end(&p);
}

static void test_who_is_answered_late_keeps_the_place_of_its_arrival(void **state)
{
	struct asker a, b, c;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	clock_set(clock_ms());
	asker_begin(&p, &a, any);
	clock_set(clock_ms() + 1);
	asker_begin(&p, &b, any);
	peer_expect(&p.peer, b.lease.id);
	peer_say(&p.peer, PLAYED_FULL);
	STAGE_UNTIL(&p.stage, a.lease.is_waiting);
	clock_set(clock_ms() + 1);
	asker_begin(&p, &c, any);
	assert_true(c.lease.is_waiting);
	peer_say(&p.peer, PLAYED_FULL);
	STAGE_UNTIL(&p.stage, b.lease.is_waiting);
	lease_release(&a.lease);
	peer_forget(&p.peer);
	lease_stage_begin_to_pass(&p, 100);
	peer_expect(&p.peer, b.lease.id);
	assert_int_equal(peer_count(&p.peer, c.lease.id), 0);
	end(&p);
}

static void test_a_store_that_fails_is_told_to_all_one_by_one(void **state)
{
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	play(&p, &a, PLAYED_FULL);
	asker_begin(&p, &b, any);
	lease_stage_begin_to_pass(&p, 100);
	peer_expect(&p.peer, a.lease.id);
	peer_say(&p.peer, "-ERR fairlead: no\r\n");
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_STORE_REFUSED);
	peer_expect(&p.peer, b.lease.id);
	peer_say(&p.peer, "-ERR fairlead: no\r\n");
	STAGE_UNTIL(&p.stage, b.ends);
	assert_int_equal(b.result, REASON_STORE_REFUSED);
	end(&p);
}

static void test_who_waits_when_the_pool_goes_is_empty(void **state)
{
	struct lease zero = {0};
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a, PLAYED_FULL);
	end(&p);
	assert_int_equal(a.ends, 0);
	assert_memory_equal(&a.lease, &zero, sizeof zero);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_release_of_this_process_serves_the_first_at_once),
	    cmocka_unit_test(test_all_are_served_in_order_of_arrival),
	    cmocka_unit_test(test_who_comes_later_does_not_ask_while_others_wait),
	    cmocka_unit_test(test_the_wait_ends),
	    cmocka_unit_test(test_what_runs_out_elsewhere_is_found_within_a_pause),
	    cmocka_unit_test(test_a_pool_that_is_emptied_meanwhile_is_told),
	    cmocka_unit_test(test_who_leaves_the_line_is_not_served),
	    cmocka_unit_test(test_one_member_is_waited_for_beside_the_others),
	    cmocka_unit_test(test_who_avoids_the_released_member_lets_the_next_ask),
	    cmocka_unit_test(test_the_choosy_ask_by_turns),
	    cmocka_unit_test(test_the_first_asks_again_after_20_to_100_ms),
	    cmocka_unit_test(test_the_first_asks_when_the_earliest_lease_runs_out),
	    cmocka_unit_test(test_the_wait_ends_behind_a_question_under_way),
	    cmocka_unit_test(test_when_the_first_leaves_while_asking_the_next_asks_at_once),
	    cmocka_unit_test(test_a_release_while_the_first_asks_makes_it_ask_once_more),
	    cmocka_unit_test(test_who_is_answered_late_keeps_the_place_of_its_arrival),
	    cmocka_unit_test(test_a_store_that_fails_is_told_to_all_one_by_one),
	    cmocka_unit_test(test_who_waits_when_the_pool_goes_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
