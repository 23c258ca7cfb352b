/* test_lease.c - asking for a lease: outcomes, ids, credentials, cancelling, lost answers, releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/metric.h"
#include "lease_stage.h"

#define SECRET_ID PLAYED_SECRET_ID

static const struct lease_request any = {0};

static void test_the_member_with_the_fewest_leases_is_taken_and_counted(void **state)
{
	struct asker a, b, c;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 5 192.0.2.1:1 9 192.0.2.2:1");
	asker_expect(&p, &a, any, 0);
	asker_expect(&p, &b, any, 0);
	asker_expect(&p, &c, any, 0);
	assert_string_equal(a.lease.member->id, "192.0.2.1:1");
	assert_string_equal(b.lease.member->id, "192.0.2.2:1");
	assert_string_equal(c.lease.member->id, "192.0.2.1:1");
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1 WITHSCORES"),
			    "192.0.2.1:1 7 192.0.2.2:1 10");
	assert_int_equal(pool_leases_held(p.pool), 3);
	lease_stage_check(&p, 3);
	pool_stage_end(&p);
}

static void test_a_released_lease_is_gone_and_empty(void **state)
{
	struct lease zero = {0};
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	asker_expect(&p, &a, any, 0);
	lease_release(&a.lease);
	assert_memory_equal(&a.lease, &zero, sizeof zero);
	lease_release(&a.lease);
	lease_stage_settle(&p);
	assert_int_equal(pool_leases_held(p.pool), 0);
	lease_stage_check(&p, 0);
	assert_string_equal(redis_ask(&p.redis, "ZSCORE pool 192.0.2.1:1"), "1");
	pool_stage_end(&p);
}

static void test_a_lease_that_is_kept_lives_on_in_other_hands(void **state)
{
	struct lease zero = {0};
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	asker_expect(&p, &a, any, 0);
	lease_keep(&a.lease);
	assert_memory_equal(&a.lease, &zero, sizeof zero);
	assert_int_equal(pool_leases_held(p.pool), 0);
	lease_stage_settle(&p);
	lease_stage_check(&p, 1);
	pool_stage_end(&p);
}

static void test_leases_that_end_in_one_turn_are_released_in_one_call(void **state)
{
	static struct asker askers[200];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 0 192.0.2.2:1");
	for (int i = 0; i < 200; i++)
		asker_begin(&p, &askers[i], any);
	lease_stage_settle(&p);
	lease_stage_check(&p, 200);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	for (int i = 0; i < 200; i++)
		lease_release(&askers[i].lease);
	lease_stage_settle(&p);
	/* 128 and 72; the first has come as EVALSHA and then as EVAL, as may the second. */
	assert_in_range(redis_calls(&p.redis, "hmget"), 2, 4);
	lease_stage_check(&p, 0);
	pool_stage_end(&p);
}

static void test_an_empty_pool_and_one_that_is_avoided_are_told(void **state)
{
	struct member *avoid[1];
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	asker_expect(&p, &a, any, REASON_POOL_EMPTY);
	assert_null(a.lease.pool);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	asker_expect(&p, &a, any, 0);
	avoid[0] = a.lease.member;
	asker_expect(&p, &b, (struct lease_request){.avoid = avoid, .avoid_count = 1},
		     REASON_POOL_EMPTY);
	lease_stage_check(&p, 1);
	lease_release(&a.lease);
	pool_stage_end(&p);
}

static void test_one_member_is_leased_without_another_allocation(void **state)
{
	int64_t allocated = metric_own(METRIC_ALLOCATED);
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 7 192.0.2.2:1");
	asker_expect(&p, &a, any, 0);
	asker_expect(&p, &b, (struct lease_request){.only = a.lease.member}, 0);
	assert_string_equal(b.lease.member->id, "192.0.2.1:1");
	assert_string_equal(redis_ask(&p.redis, "ZSCORE pool 192.0.2.1:1"), "1");
	assert_true(metric_own(METRIC_ALLOCATED) - allocated == 1);
	lease_stage_check(&p, 2);
	lease_release(&a.lease);
	lease_release(&b.lease);
	pool_stage_end(&p);
}

static void test_an_id_that_is_given_is_the_leases_and_gives_it_again(void **state)
{
	struct lease_request request = {.id = "ab-1"};
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 0 192.0.2.2:1");
	asker_expect(&p, &a, request, 0);
	asker_expect(&p, &b, request, 0);
	assert_string_equal(a.lease.token, b.lease.token);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE {pool}:pool:leases 0 -1"), "ab-1");
	redis_ask(&p.redis, "HSET {pool}:pool:rules rest_ms 60000");
	lease_release(&a.lease);
	lease_release(&b.lease);
	lease_stage_settle(&p);
	asker_expect(&p, &a, request, REASON_LEASE_STALE);
	lease_stage_check(&p, 1);
	pool_stage_end(&p);
}

static void test_ids_of_other_characters_or_lengths_are_refused(void **state)
{
	static const char *const ids[] = {
	    "", "G", "a b", "0123456789012345678901234567890123456789012345678901234567890123a"};
	struct asker a = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		struct lease_request request = {.id = ids[i]};

		assert_int_equal(pool_acquire(p.pool, &a.lease, &request), -EINVAL);
		assert_null(a.lease.pool);
	}
	pool_stage_end(&p);
}

static void test_the_ttl_is_the_requests_or_the_rules(void **state)
{
	struct asker a, b;
	struct pool_stage p;
	int64_t asked_ms;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	redis_ask(&p.redis, "HSET {pool}:pool:rules lease_ms 30000");
	clock_set(clock_ms());
	asked_ms = clock_ms();
	asker_expect(&p, &a, (struct lease_request){.ttl_ms = 5000}, 0);
	assert_int_equal(a.lease.ttl_ms, 5000);
	assert_int_equal(a.lease.deadline_ms, asked_ms + 5000);
	asker_expect(&p, &b, any, 0);
	assert_int_equal(b.lease.ttl_ms, 30000);
	assert_int_equal(b.lease.deadline_ms, asked_ms + 30000);
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_credentials_come_with_the_member(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " SECRET_ID);
	asker_expect(&p, &a, any, REASON_MEMBER_UNREADABLE);
	assert_string_equal(a.lease.member->id, SECRET_ID);
	assert_true(a.lease.is_held);
	lease_release(&a.lease);
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " u:p");
	asker_expect(&p, &a, any, 0);
	assert_string_equal(a.lease.member->endpoint.secret, "u:p");
	lease_release(&a.lease);
	lease_stage_settle(&p);
	lease_stage_check(&p, 0);
	pool_stage_end(&p);
}

static void test_a_lease_whose_credentials_cannot_be_read_is_released(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " SECRET_ID);
	redis_ask(&p.redis, "SET {pool}:pool:secrets x");
	asker_expect(&p, &a, any, REASON_STORE_REFUSED);
	assert_null(a.lease.pool);
	lease_stage_settle(&p);
	lease_stage_check(&p, 0);
	pool_stage_end(&p);
}

static void test_a_refusal_is_told(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	asker_expect(&p, &a, (struct lease_request){.ttl_ms = 3600001}, REASON_STORE_REFUSED);
	assert_non_null(strstr(pool_last_error(p.pool), "ttl_ms"));
	pool_stage_end(&p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result;
}

static void test_a_newer_pool_is_left_alone(void **state)
{
	struct lease_request request = {0};
	struct asker a;
	struct pool_stage p;
	int result = 0;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	asker_expect(&p, &a, any, 0);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	lease_release(&a.lease);
	assert_int_equal(pool_acquire(p.pool, &a.lease, &request), -EPERM);
	lease_stage_settle(&p);
	lease_stage_check(&p, 1);
	pool_stage_end(&p);
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

struct outcome {
	int ends, result;
};

static void on_named(int result, const char *error, void *arg)
{
	struct outcome *outcome = arg;

	(void)error;
	outcome->ends++;
	outcome->result = result;
}

static void check_named(struct pool_stage *p, struct outcome *outcome, int result)
{
	STAGE_UNTIL(&p->stage, outcome->ends);
	assert_int_equal(outcome->result, result);
	*outcome = (struct outcome){0};
}

static void test_a_lease_is_renewed_and_released_by_its_name(void **state)
{
	struct outcome outcome = {0};
	struct pool_stage p;
	struct asker a;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	asker_expect(&p, &a, (struct lease_request){.id = "ab", .ttl_ms = 1000000}, 0);
	assert_int_equal(pool_lease_renew(p.pool, "ab", a.lease.token, 2000000, on_named, &outcome),
			 0);
	check_named(&p, &outcome, 0);
	assert_string_equal(redis_askf(&p.redis, "ZCOUNT {pool}:pool:leases %lld +inf",
				       (long long)clock_wall_ms() + 1500000),
			    "1");
	assert_int_equal(pool_lease_release(p.pool, "ab", "9-00", on_named, &outcome), 0);
	check_named(&p, &outcome, REASON_LEASE_STALE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    pool_lease_release(p.pool, "ab", a.lease.token, on_named, &outcome), 0);
		check_named(&p, &outcome, 0);
	}
	assert_int_equal(pool_lease_renew(p.pool, "ab", a.lease.token, 0, on_named, &outcome), 0);
	check_named(&p, &outcome, REASON_LEASE_STALE);
	lease_stage_check(&p, 0);
	pool_stage_end(&p);
}

/* --- each place where somebody waits for the store ---------------------------------------------------------------- */

enum await {
	AWAIT_ANSWER,
	AWAIT_REPEATED,
	AWAIT_CREDENTIALS,
	AWAIT_FROM_LINE,
	AWAIT_RENEWAL,
	AWAITS
};

/* The connection dies with what is in flight; the next is made ready. */
static void lose_connection(struct pool_stage *p)
{
	peer_close(&p->peer);
	STAGE_UNTIL(&p->stage, !store_is_ready(p->store));
	lease_stage_begin_to_pass(p, 1000);
	pool_stage_greet(p);
}

/* Plays the server until `asker` waits there. */
static void bring_to(struct pool_stage *p, struct asker *asker, enum await await)
{
	pool_stage_play(p);
	clock_set(clock_ms());
	asker_begin(p, asker, (struct lease_request){.wait_ms = 10000});
	peer_expect(&p->peer, "{pool}:pool:busy");
	switch (await) {
	case AWAIT_ANSWER:
		break;
	case AWAIT_REPEATED:
		lose_connection(p);
		peer_expect(&p->peer, asker->lease.id);
		break;
	case AWAIT_CREDENTIALS:
		peer_say(&p->peer, PLAYED_SECRET_GRANT);
		peer_expect(&p->peer, "HMGET");
		break;
	case AWAIT_FROM_LINE:
		peer_say(&p->peer, PLAYED_FULL);
		STAGE_UNTIL(&p->stage, asker->lease.is_waiting);
		peer_forget(&p->peer);
		lease_stage_begin_to_pass(p, 100);
		peer_expect(&p->peer, asker->lease.id);
		break;
	case AWAIT_RENEWAL:
		peer_say(&p->peer, PLAYED_GRANT);
		STAGE_UNTIL(&p->stage, asker->ends);
		peer_forget(&p->peer);
		lease_stage_begin_to_pass(p, 20000);
		peer_expect(&p->peer, PLAYED_TOKEN);
		break;
	case AWAITS:
		break;
	}
	peer_forget(&p->peer);
}

static void end_play(struct pool_stage *p)
{
	assert_int_equal(pool_leases_held(p->pool), 0);
	clock_set(-1);
	pool_stage_end(p);
}

/* What the server answers there when all is well. */
static const char *answer_at(enum await await)
{
	if (await == AWAIT_CREDENTIALS)
		return "*1\r\n$3\r\nu:p\r\n";
	return await == AWAIT_RENEWAL ? "*1\r\n:0\r\n" : PLAYED_GRANT;
}

static void test_who_goes_while_waiting_gives_back_what_is_granted_then(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	for (enum await await = 0; await < AWAITS; await++) {
		bring_to(&p, &a, await);
		lease_release(&a.lease);
		assert_null(a.lease.pool);
		lease_release(&a.lease);
		if (await == AWAIT_RENEWAL)
			peer_expect(&p.peer, PLAYED_TOKEN);
		peer_say(&p.peer, answer_at(await));
		peer_expect(&p.peer, PLAYED_TOKEN);
		peer_say(&p.peer, "*1\r\n:0\r\n");
		STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
		assert_int_equal(a.ends, await == AWAIT_RENEWAL);
		assert_int_equal(a.losses, 0);
		end_play(&p);
	}
}

static void test_who_goes_and_whose_answer_is_lost_is_not_asked_for_again(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	for (enum await await = 0; await < AWAIT_CREDENTIALS; await++) {
		bring_to(&p, &a, await);
		lease_release(&a.lease);
		lose_connection(&p);
		STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
		peer_listen_up(&p.peer);
		assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
		assert_int_equal(a.ends, 0);
		end_play(&p);
	}
}

static void test_a_lost_answer_is_asked_for_once_more_by_the_same_id(void **state)
{
	int64_t ambiguous;
	struct asker a;
	struct pool_stage p;

	(void)state;
	for (enum await await = 0; await < AWAITS; await++) {
		if (await == AWAIT_REPEATED)
			continue;
		ambiguous = metric_own(METRIC_AMBIGUOUS);
		bring_to(&p, &a, await);
		lose_connection(&p);
		peer_expect(&p.peer, await == AWAIT_CREDENTIALS ? "HMGET" : a.lease.id);
		peer_say(&p.peer, answer_at(await));
		STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
		assert_int_equal(a.ends, 1);
		assert_int_equal(a.result, 0);
		assert_string_equal(a.lease.token, PLAYED_TOKEN);
		assert_int_equal(pool_leases_held(p.pool), 1);
		assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous ==
			    (await == AWAIT_ANSWER || await == AWAIT_FROM_LINE));
		lease_release(&a.lease);
		end_play(&p);
	}
}

static void test_a_second_lost_answer_ends_it(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	bring_to(&p, &a, AWAIT_REPEATED);
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_STORE_UNKNOWN);
	assert_null(a.lease.pool);
	end_play(&p);
}

static void test_an_answer_of_nonsense_is_an_error(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	bring_to(&p, &a, AWAIT_ANSWER);
	peer_say(&p.peer, "*1\r\n:9\r\n");
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_INTERNAL);
	end_play(&p);
}

/* lease.h: -ECANCELED, and only releasing is left to do. */
static void test_the_end_of_the_store_is_told_and_leases_may_outlive_all(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	for (enum await await = 0; await < AWAITS; await++) {
		bring_to(&p, &a, await);
		store_free(p.store);
		p.store = NULL;
		assert_int_equal(a.ends, 1);
		assert_int_equal(a.result, await == AWAIT_RENEWAL ? 0 : -ECANCELED);
		assert_int_equal(a.losses, 0);
		clock_set(-1);
		pool_stage_end(&p);
		assert_null(a.lease.pool);
		lease_release(&a.lease);
	}
}

/* A process that was stopped: the lease may have run out, and be somebody else's. */
static void test_an_answer_that_comes_too_late_is_asked_for_again(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	for (enum await await = 0; await < AWAIT_FROM_LINE; await++) {
		bring_to(&p, &a, await);
		peer_say(&p.peer, answer_at(await));
		clock_set(clock_ms() + 60000);
		if (await == AWAIT_REPEATED) {
			STAGE_UNTIL(&p.stage, a.ends);
			assert_int_equal(a.result, REASON_STORE_UNKNOWN);
		} else {
			peer_expect(&p.peer, a.lease.id);
			assert_int_equal(a.ends, 0);
			peer_say(&p.peer, PLAYED_GRANT);
			STAGE_UNTIL(&p.stage, a.ends);
			assert_int_equal(a.result, 0);
			assert_true(a.lease.deadline_ms == clock_ms() + 60000);
			lease_release(&a.lease);
		}
		end_play(&p);
	}
}

static void test_a_release_whose_answer_is_lost_is_said_again(void **state)
{
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	asker_begin(&p, &a, any);
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, PLAYED_GRANT);
	STAGE_UNTIL(&p.stage, a.ends);
	peer_forget(&p.peer);
	lease_release(&a.lease);
	peer_expect(&p.peer, PLAYED_TOKEN);
	pool_stage_greet(&p);
	peer_expect(&p.peer, PLAYED_TOKEN);
	peer_say(&p.peer, "*1\r\n:0\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_member_with_the_fewest_leases_is_taken_and_counted),
	    cmocka_unit_test(test_a_released_lease_is_gone_and_empty),
	    cmocka_unit_test(test_a_lease_that_is_kept_lives_on_in_other_hands),
	    cmocka_unit_test(test_leases_that_end_in_one_turn_are_released_in_one_call),
	    cmocka_unit_test(test_an_empty_pool_and_one_that_is_avoided_are_told),
	    cmocka_unit_test(test_one_member_is_leased_without_another_allocation),
	    cmocka_unit_test(test_an_id_that_is_given_is_the_leases_and_gives_it_again),
	    cmocka_unit_test(test_ids_of_other_characters_or_lengths_are_refused),
	    cmocka_unit_test(test_the_ttl_is_the_requests_or_the_rules),
	    cmocka_unit_test(test_credentials_come_with_the_member),
	    cmocka_unit_test(test_a_lease_whose_credentials_cannot_be_read_is_released),
	    cmocka_unit_test(test_a_refusal_is_told),
	    cmocka_unit_test(test_a_newer_pool_is_left_alone),
	    cmocka_unit_test(test_a_lease_is_renewed_and_released_by_its_name),
	    cmocka_unit_test(test_who_goes_while_waiting_gives_back_what_is_granted_then),
	    cmocka_unit_test(test_who_goes_and_whose_answer_is_lost_is_not_asked_for_again),
	    cmocka_unit_test(test_a_lost_answer_is_asked_for_once_more_by_the_same_id),
	    cmocka_unit_test(test_a_second_lost_answer_ends_it),
	    cmocka_unit_test(test_an_answer_of_nonsense_is_an_error),
	    cmocka_unit_test(test_the_end_of_the_store_is_told_and_leases_may_outlive_all),
	    cmocka_unit_test(test_an_answer_that_comes_too_late_is_asked_for_again),
	    cmocka_unit_test(test_a_release_whose_answer_is_lost_is_said_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
