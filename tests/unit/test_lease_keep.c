/* test_lease_keep.c - leases that are held: renewal, loss, a store that is away, a process that was stopped. */
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

static const struct lease_request any = {0};

/* Scripts that the server was asked to run, by digest or by text. */
static long count_scripts(struct pool_stage *p)
{
	return redis_calls(&p->redis, "evalsha") + redis_calls(&p->redis, "eval");
}

static void begin(struct pool_stage *p)
{
	pool_stage_begin(p);
	redis_ask(&p->redis, "ZADD pool 0 192.0.2.1:1");
	clock_set(clock_ms());
}

static void end(struct pool_stage *p)
{
	clock_set(-1);
	pool_stage_end(p);
}

/* As if the leases had run out on the clock of Redis. */
static void run_out(struct pool_stage *p, const struct asker *asker)
{
	redis_askf(&p->redis, "ZADD {pool}:pool:leases XX 1 %s", asker->lease.id);
}

static void test_a_lease_is_renewed_at_a_third_of_its_life(void **state)
{
	struct asker a;
	struct pool_stage p;
	int64_t asked_ms;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, any, 0);
	asked_ms = clock_ms();
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	lease_stage_pass(&p, 14999);
	assert_int_equal(count_scripts(&p), 0);
	for (int i = 1; i <= 3; i++) {
		lease_stage_pass(&p, i == 1 ? 5001 : 20000);
		assert_true(a.lease.deadline_ms == asked_ms + 20000 * i + 60000);
	}
	assert_int_equal(redis_calls(&p.redis, "zmscore"), 3);
	assert_int_equal(a.losses, 0);
	lease_stage_check(&p, 1);
	end(&p);
}

static void test_a_renewal_moves_the_expiry_in_the_store(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, (struct lease_request){.ttl_ms = 3600000}, 0);
	redis_askf(&p.redis, "ZINCRBY {pool}:pool:leases -1800000 %s", a.lease.id);
	lease_stage_pass(&p, 1200000);
	assert_string_equal(redis_askf(&p.redis, "ZCOUNT {pool}:pool:leases %lld +inf",
				       (long long)clock_wall_ms() + 3500000),
			    "1");
	end(&p);
}

static void test_many_are_renewed_in_calls_of_128(void **state)
{
	static struct asker askers[300];
	struct pool_stage p;

	(void)state;
	begin(&p);
	for (int i = 0; i < 300; i++)
		asker_begin(&p, &askers[i], any);
	lease_stage_settle(&p);
	assert_int_equal(pool_leases_held(p.pool), 300);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	lease_stage_pass(&p, 20000);
	assert_int_equal(redis_calls(&p.redis, "zmscore"), 3);
	for (int i = 0; i < 300; i++)
		assert_true(askers[i].lease.deadline_ms == clock_ms() + 60000);
	for (int i = 0; i < 300; i++)
		lease_release(&askers[i].lease);
	lease_stage_settle(&p);
	lease_stage_check(&p, 0);
	end(&p);
}

static void test_each_is_renewed_by_its_own_life(void **state)
{
	struct asker askers[4];
	struct pool_stage p;

	(void)state;
	begin(&p);
	for (int i = 0; i < 4; i++)
		asker_expect(&p, &askers[i],
			     (struct lease_request){.ttl_ms = i % 2 ? 30000 : 36000}, 0);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	lease_stage_pass(&p, 12000);
	assert_int_equal(redis_calls(&p.redis, "zmscore"), 2);
	for (int i = 0; i < 4; i++)
		assert_true(askers[i].lease.deadline_ms == clock_ms() + (i % 2 ? 30000 : 36000));
	end(&p);
}

static void test_a_stale_lease_is_lost_and_told_once(void **state)
{
	int64_t held = metric_own(METRIC_LEASES), lost = metric_own(METRIC_LEASES_LOST);
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, any, 0);
	asker_expect(&p, &b, any, 0);
	run_out(&p, &a);
	lease_stage_pass(&p, 20000);
	assert_int_equal(a.losses, 1);
	assert_int_equal(b.losses, 0);
	assert_non_null(a.lease.member);
	assert_int_equal(pool_leases_held(p.pool), 1);
	assert_true(metric_own(METRIC_LEASES) == held + 1);
	assert_true(metric_own(METRIC_LEASES_LOST) == lost + 1);
	for (int i = 0; i < 4; i++)
		lease_stage_pass(&p, 20000);
	assert_int_equal(a.losses, 1);
	lease_release(&a.lease);
	lease_release(&b.lease);
	assert_true(metric_own(METRIC_LEASES) == held);
	end(&p);
}

/* The id is the same, the token is not. */
static void test_the_next_holder_is_untouched_by_one_that_lost(void **state)
{
	struct lease_request request = {.id = "ab"};
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, request, 0);
	run_out(&p, &a);
	asker_expect(&p, &b, request, 0);
	assert_string_not_equal(a.lease.token, b.lease.token);
	lease_stage_pass(&p, 20000);
	assert_int_equal(a.losses, 1);
	lease_release(&a.lease);
	lease_stage_pass(&p, 20000);
	assert_int_equal(b.losses, 0);
	lease_stage_check(&p, 1);
	end(&p);
}

static void test_a_process_that_was_stopped_asks_before_it_gives_up(void **state)
{
	struct asker lost, kept;
	struct pool_stage p;

	(void)state;
	begin(&p);
	asker_expect(&p, &lost, any, 0);
	asker_expect(&p, &kept, any, 0);
	run_out(&p, &lost);
	lease_stage_pass(&p, 3600000);
	assert_int_equal(lost.losses, 1);
	assert_int_equal(kept.losses, 0);
	assert_true(kept.lease.deadline_ms == clock_ms() + 60000);
	end(&p);
}

static void test_a_store_that_was_away_past_the_deadline_loses_all(void **state)
{
	struct asker a, b;
	struct pool_stage p;
	int64_t deadline_ms;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, any, 0);
	asker_expect(&p, &b, any, 0);
	deadline_ms = a.lease.deadline_ms;
	redis_stop(&p.redis);
	while (clock_ms() + 100 < deadline_ms) {
		lease_stage_begin_to_pass(&p, 100);
		assert_int_equal(a.losses + b.losses, 0);
	}
	lease_stage_begin_to_pass(&p, 100);
	assert_int_equal(a.losses, 1);
	assert_int_equal(b.losses, 1);
	assert_int_equal(pool_leases_held(p.pool), 0);
	lease_release(&a.lease);
	end(&p);
}

/* --- with a server that is played --------------------------------------------------------------------------------- */

static void play(struct pool_stage *p, struct asker *asker)
{
	pool_stage_play(p);
	clock_set(clock_ms());
	asker_begin(p, asker, any);
	peer_expect(&p->peer, "EVALSHA");
	peer_say(&p->peer, PLAYED_GRANT);
	STAGE_UNTIL(&p->stage, asker->ends);
	assert_int_equal(asker->result, 0);
	peer_forget(&p->peer);
}

static void lose_connection(struct pool_stage *p)
{
	peer_close(&p->peer);
	STAGE_UNTIL(&p->stage, !store_is_ready(p->store));
	lease_stage_begin_to_pass(p, 1000);
	pool_stage_greet(p);
}

static void test_a_store_that_comes_back_in_time_renews(void **state)
{
	struct asker a;
	struct pool_stage p;
	int64_t asked_ms;

	(void)state;
	play(&p, &a);
	lease_stage_begin_to_pass(&p, 40000);
	asked_ms = clock_ms();
	peer_expect(&p.peer, PLAYED_TOKEN);
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, !store_is_ready(p.store));
	for (int ms = 0; ms < 19000; ms += 1000)
		lease_stage_begin_to_pass(&p, 1000);
	assert_int_equal(a.losses, 0);
	pool_stage_greet(&p);
	peer_expect(&p.peer, PLAYED_TOKEN);
	peer_say(&p.peer, "*1\r\n:0\r\n");
	STAGE_UNTIL(&p.stage, a.lease.deadline_ms == asked_ms + 60000);
	assert_int_equal(a.losses, 0);
	lease_release(&a.lease);
	end(&p);
}

static void test_a_renewal_without_answer_ends_at_the_deadline(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a);
	lease_stage_begin_to_pass(&p, 59000);
	peer_expect(&p.peer, PLAYED_TOKEN);
	lease_stage_begin_to_pass(&p, 999);
	assert_int_equal(a.losses, 0);
	lease_stage_begin_to_pass(&p, 1);
	assert_int_equal(a.losses, 1);
	/* Too late: whoever was told goes by it. */
	peer_say(&p.peer, "*1\r\n:0\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_true(a.lease.is_lost);
	assert_int_equal(pool_leases_held(p.pool), 0);
	lease_release(&a.lease);
	end(&p);
}

static void test_after_a_stop_no_answer_is_a_loss(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a);
	lease_stage_begin_to_pass(&p, 100000);
	peer_expect(&p.peer, PLAYED_TOKEN);
	assert_int_equal(a.losses, 0);
	peer_say(&p.peer, "-ERR fairlead: no\r\n");
	STAGE_UNTIL(&p.stage, a.losses);
	assert_int_equal(a.losses, 1);
	end(&p);
}

static void test_a_lost_answer_of_a_renewal_is_asked_for_again(void **state)
{
	struct asker a;
	struct pool_stage p;
	int64_t asked_ms;

	(void)state;
	play(&p, &a);
	lease_stage_begin_to_pass(&p, 20000);
	asked_ms = clock_ms();
	peer_expect(&p.peer, PLAYED_TOKEN);
	lose_connection(&p);
	peer_expect(&p.peer, PLAYED_TOKEN);
	peer_say(&p.peer, "*1\r\n:0\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_true(a.lease.deadline_ms == asked_ms + 60000);
	end(&p);
}

static void test_a_refused_renewal_is_tried_until_the_deadline(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	play(&p, &a);
	lease_stage_begin_to_pass(&p, 20000);
	for (int i = 0; i < 3; i++) {
		peer_expect(&p.peer, PLAYED_TOKEN);
		peer_say(&p.peer, "-ERR fairlead: no\r\n");
		STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
		peer_forget(&p.peer);
		assert_int_equal(a.losses, 0);
		lease_stage_begin_to_pass(&p, 100);
	}
	peer_expect(&p.peer, PLAYED_TOKEN);
	lease_stage_begin_to_pass(&p, 40000);
	assert_int_equal(a.losses, 1);
	end(&p);
}

/* --- callbacks that release --------------------------------------------------------------------------------------- */

static struct asker pair[2];

static void on_pair(int result, struct lease *lease, void *arg)
{
	(void)lease;
	assert_int_equal(result, 0);
	((struct asker *)arg)->ends++;
}

static void release_both(struct lease *lease, void *arg)
{
	(void)lease;
	((struct asker *)arg)->losses++;
	lease_release(&pair[0].lease);
	lease_release(&pair[1].lease);
}

static void hold_pair(struct pool_stage *p)
{
	struct lease_request request = {.cb = on_pair, .lost = release_both};

	memset(pair, 0, sizeof pair);
	for (int i = 0; i < 2; i++) {
		request.arg = &pair[i];
		assert_int_equal(pool_acquire(p->pool, &pair[i].lease, &request), 0);
	}
	STAGE_UNTIL(&p->stage, pair[0].ends && pair[1].ends);
}

static void test_a_loss_may_release_all_when_it_is_answered(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	hold_pair(&p);
	run_out(&p, &pair[0]);
	run_out(&p, &pair[1]);
	lease_stage_pass(&p, 20000);
	assert_int_equal(pair[0].losses + pair[1].losses, 1);
	assert_int_equal(pool_leases_held(p.pool), 0);
	end(&p);
}

static void test_a_loss_may_release_all_at_the_deadline(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	hold_pair(&p);
	redis_stop(&p.redis);
	for (int ms = 0; ms < 60000; ms += 100)
		lease_stage_begin_to_pass(&p, 100);
	assert_int_equal(pair[0].losses + pair[1].losses, 1);
	assert_int_equal(pool_leases_held(p.pool), 0);
	end(&p);
}

static void test_what_is_held_when_the_pool_goes_is_empty(void **state)
{
	struct lease zero = {0};
	struct asker a;
	struct pool_stage p;

	(void)state;
	begin(&p);
	asker_expect(&p, &a, any, 0);
	end(&p);
	assert_memory_equal(&a.lease, &zero, sizeof zero);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_lease_is_renewed_at_a_third_of_its_life),
	    cmocka_unit_test(test_a_renewal_moves_the_expiry_in_the_store),
	    cmocka_unit_test(test_many_are_renewed_in_calls_of_128),
	    cmocka_unit_test(test_each_is_renewed_by_its_own_life),
	    cmocka_unit_test(test_a_stale_lease_is_lost_and_told_once),
	    cmocka_unit_test(test_the_next_holder_is_untouched_by_one_that_lost),
	    cmocka_unit_test(test_a_process_that_was_stopped_asks_before_it_gives_up),
	    cmocka_unit_test(test_a_store_that_was_away_past_the_deadline_loses_all),
	    cmocka_unit_test(test_a_store_that_comes_back_in_time_renews),
	    cmocka_unit_test(test_a_renewal_without_answer_ends_at_the_deadline),
	    cmocka_unit_test(test_after_a_stop_no_answer_is_a_loss),
	    cmocka_unit_test(test_a_lost_answer_of_a_renewal_is_asked_for_again),
	    cmocka_unit_test(test_a_refused_renewal_is_tried_until_the_deadline),
	    cmocka_unit_test(test_a_loss_may_release_all_when_it_is_answered),
	    cmocka_unit_test(test_a_loss_may_release_all_at_the_deadline),
	    cmocka_unit_test(test_what_is_held_when_the_pool_goes_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
