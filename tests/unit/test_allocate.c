/* test_allocate.c - gathering, order, credentials, cancelling, lost answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "pool/allocate.h"
#include "pool_stage.h"

#define SECRET_ID "http://192.0.2.9:80#0123456789abcdef"

/* Somebody who asks for a member. */
struct asker {
	struct allocation allocation;
	int ends, result;
	struct member *member;
};

static int ended;

static void on_member(int result, struct member *member, struct allocation *allocation)
{
	struct asker *asker = (struct asker *)allocation;

	asker->ends++;
	asker->result = result;
	asker->member = member;
	ended++;
}

static struct asker *askers_new(size_t count)
{
	ended = 0;
	return calloc(count, sizeof(struct asker));
}

static void askers_free(struct asker *askers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_true(askers[i].ends <= 1);
		member_unref(askers[i].member);
	}
	free(askers);
}

static void ask_all(struct pool_stage *p, struct asker *askers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pool_allocate(p->pool, &askers[i].allocation, on_member);
	assert_int_equal(ended, 0);
}

/* Asks for one member and waits for it. */
static void ask_one(struct pool_stage *p, int result, const char *id)
{
	struct asker *asker = askers_new(1);

	ask_all(p, asker, 1);
	STAGE_UNTIL(&p->stage, asker->ends);
	assert_int_equal(asker->result, result);
	if (id)
		assert_string_equal(asker->member->id, id);
	else
		assert_null(asker->member);
	askers_free(asker, 1);
}

static void test_allocations_come_in_the_order_of_least_use(void **state)
{
	static const char *const order[] = {"192.0.2.2:1", "192.0.2.1:1", "192.0.2.2:1",
					    "192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"};
	struct asker *askers = askers_new(6);
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 1 192.0.2.1:1 0 192.0.2.2:1 3 192.0.2.3:1");
	for (int i = 0; i < 2; i++)
		ask_one(&p, 0, order[i]);
	ended = 0;
	ask_all(&p, askers + 2, 4);
	STAGE_UNTIL(&p.stage, ended == 4);
	/* scores 1 2 3: .2 joins .1 at 2; then the five lines go by bytes among equals */
	assert_string_equal(askers[2].member->id, "192.0.2.2:1");
	assert_string_equal(askers[3].member->id, "192.0.2.1:1");
	assert_string_equal(askers[4].member->id, "192.0.2.2:1");
	assert_string_equal(askers[5].member->id, "192.0.2.1:1");
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1 WITHSCORES"),
			    "192.0.2.2:1 3 192.0.2.3:1 3 192.0.2.1:1 4");
	askers_free(askers, 6);
	pool_stage_end(&p);
}

static void test_what_is_asked_for_together_is_one_call(void **state)
{
	static const struct {
		size_t askers;
		long calls;
	} rows[] = {{1, 1}, {2, 1}, {256, 1}, {257, 2}, {1000, 4}};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 0 192.0.2.2:1 0 192.0.2.3:1");
	ask_one(&p, 0, "192.0.2.1:1"); /* the script is known from here on */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct asker *askers = askers_new(rows[i].askers);

		redis_ask(&p.redis, "CONFIG RESETSTAT");
		ask_all(&p, askers, rows[i].askers);
		STAGE_UNTIL(&p.stage, ended == (int)rows[i].askers);
		assert_int_equal(redis_calls(&p.redis, "evalsha"), rows[i].calls);
		askers_free(askers, rows[i].askers);
	}
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1 WITHSCORES"),
			    "192.0.2.3:1 505 192.0.2.1:1 506 192.0.2.2:1 506");
	pool_stage_end(&p);
}

static void test_at_most_one_call_is_in_flight(void **state)
{
	struct asker *askers = askers_new(4);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 1);
	peer_expect(&p.peer, "\r\npool\r\n$1\r\n1\r\n");
	ask_all(&p, askers + 1, 3);
	for (int i = 0; i < 10; i++)
		stage_turn(&p.stage);
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 1);
	peer_forget(&p.peer);
	peer_say(&p.peer, "*1\r\n$11\r\n192.0.2.1:1\r\n");
	peer_expect(&p.peer, "\r\npool\r\n$1\r\n3\r\n");
	peer_say(&p.peer,
		 "*3\r\n$11\r\n192.0.2.2:1\r\n$11\r\n192.0.2.3:1\r\n$11\r\n192.0.2.1:1\r\n");
	STAGE_UNTIL(&p.stage, ended == 4);
	assert_string_equal(askers[0].member->id, "192.0.2.1:1");
	assert_string_equal(askers[1].member->id, "192.0.2.2:1");
	assert_string_equal(askers[3].member->id, "192.0.2.1:1");
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 1);
	askers_free(askers, 4);
	pool_stage_end(&p);
}

static void test_an_empty_pool_is_told_to_everybody(void **state)
{
	struct asker *askers = askers_new(300);
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	ask_one(&p, REASON_POOL_EMPTY, NULL);
	ended = 0;
	ask_all(&p, askers, 300);
	STAGE_UNTIL(&p.stage, ended == 300);
	for (int i = 0; i < 300; i++)
		assert_int_equal(askers[i].result, REASON_POOL_EMPTY);
	assert_string_equal(redis_ask(&p.redis, "EXISTS pool"), "0");
	askers_free(askers, 300);
	pool_stage_end(&p);
}

/* Who is cancelled before the call takes no member; who is cancelled in flight leaves an allocation that counts. */
static void test_cancelling_while_waiting_takes_no_member(void **state)
{
	struct asker *askers = askers_new(3);
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	ask_all(&p, askers, 3);
	pool_allocate_cancel(&askers[1].allocation);
	pool_allocate_cancel(&askers[1].allocation);
	STAGE_UNTIL(&p.stage, ended == 2);
	assert_int_equal(askers[1].ends, 0);
	assert_string_equal(redis_ask(&p.redis, "ZSCORE pool 192.0.2.1:1"), "2");
	pool_allocate_cancel(&askers[0].allocation);
	askers_free(askers, 3);
	pool_stage_end(&p);
}

static void test_cancelling_in_flight_leaves_the_others_their_members(void **state)
{
	struct asker *askers = askers_new(3);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 3);
	peer_expect(&p.peer, "\r\npool\r\n$1\r\n3\r\n");
	pool_allocate_cancel(&askers[1].allocation);
	peer_say(&p.peer,
		 "*3\r\n$11\r\n192.0.2.1:1\r\n$11\r\n192.0.2.2:1\r\n$11\r\n192.0.2.3:1\r\n");
	STAGE_UNTIL(&p.stage, ended == 2);
	assert_int_equal(askers[1].ends, 0);
	assert_string_equal(askers[0].member->id, "192.0.2.1:1");
	assert_string_equal(askers[2].member->id, "192.0.2.3:1");
	askers_free(askers, 3);
	pool_stage_end(&p);
}

static void test_cancelling_while_credentials_are_fetched_is_safe(void **state)
{
	struct asker *askers = askers_new(1);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 1);
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, "*1\r\n$36\r\n" SECRET_ID "\r\n");
	peer_expect(&p.peer, "HMGET");
	pool_allocate_cancel(&askers[0].allocation);
	askers_free(askers, 1);
	peer_say(&p.peer, "*1\r\n$3\r\nu:p\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_int_equal(ended, 0);
	pool_stage_end(&p);
}

static void test_credentials_are_fetched_once_and_kept(void **state)
{
	struct asker *askers = askers_new(300);
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " SECRET_ID);
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " user:p%40ss");
	for (int round = 0; round < 2; round++) {
		ended = 0;
		ask_all(&p, askers + 150 * round, 150);
		STAGE_UNTIL(&p.stage, ended == 150);
	}
	for (int i = 0; i < 300; i++) {
		assert_int_equal(askers[i].result, 0);
		assert_string_equal(askers[i].member->endpoint.secret, "user:p%40ss");
	}
	assert_int_equal(redis_calls(&p.redis, "hmget"), 1);
	askers_free(askers, 300);
	ask_one(&p, 0, SECRET_ID);
	assert_int_equal(redis_calls(&p.redis, "hmget"), 1);
	pool_stage_end(&p);
}

static void test_members_with_and_without_credentials_keep_their_order(void **state)
{
	struct asker *askers = askers_new(3);
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 0.1 " SECRET_ID " 0.2 192.0.2.2:1");
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " u:p");
	ask_all(&p, askers, 3);
	STAGE_UNTIL(&p.stage, ended == 3);
	assert_string_equal(askers[0].member->id, "192.0.2.1:1");
	assert_string_equal(askers[1].member->id, SECRET_ID);
	assert_string_equal(askers[2].member->id, "192.0.2.2:1");
	askers_free(askers, 3);
	pool_stage_end(&p);
}

static void test_a_member_that_cannot_be_read_is_handed_out_as_such(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 \"not a proxy\"");
	ask_one(&p, REASON_MEMBER_UNREADABLE, "not a proxy");
	redis_ask(&p.redis, "ZADD pool -5 " SECRET_ID);
	ask_one(&p, REASON_MEMBER_UNREADABLE, SECRET_ID);
	/* Its credentials come later: they are asked for again. */
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " u:p");
	ask_one(&p, 0, SECRET_ID);
	pool_stage_end(&p);
}

static void test_those_to_avoid_are_not_taken_and_not_counted(void **state)
{
	struct asker *askers = askers_new(3);
	struct member *avoid[2];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 1 192.0.2.2:1");
	assert_int_equal(pool_allocate_except(p.pool, &askers[0].allocation, NULL, 0, on_member),
			 0);
	STAGE_UNTIL(&p.stage, ended == 1);
	avoid[0] = askers[0].member;
	assert_string_equal(avoid[0]->id, "192.0.2.1:1");
	assert_int_equal(pool_allocate_except(p.pool, &askers[1].allocation, avoid, 1, on_member),
			 0);
	STAGE_UNTIL(&p.stage, ended == 2);
	avoid[1] = askers[1].member;
	assert_string_equal(avoid[1]->id, "192.0.2.2:1");
	assert_int_equal(pool_allocate_except(p.pool, &askers[2].allocation, avoid, 2, on_member),
			 0);
	STAGE_UNTIL(&p.stage, ended == 3);
	assert_int_equal(askers[2].result, REASON_POOL_EMPTY);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1 WITHSCORES"),
			    "192.0.2.1:1 1 192.0.2.2:1 2");
	askers_free(askers, 3);
	pool_stage_end(&p);
}

static void test_a_lost_answer_is_counted_and_asked_for_once_more(void **state)
{
	struct asker *askers = askers_new(3);
	int64_t ambiguous = metric_own(METRIC_AMBIGUOUS);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 2);
	peer_expect(&p.peer, "\r\npool\r\n$1\r\n2\r\n");
	ask_all(&p, askers + 2, 1);
	pool_stage_greet(&p); /* closes the connection first */
	assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous == 2);
	peer_expect(&p.peer, "\r\npool\r\n$1\r\n3\r\n");
	peer_say(&p.peer,
		 "*3\r\n$11\r\n192.0.2.1:1\r\n$11\r\n192.0.2.2:1\r\n$11\r\n192.0.2.3:1\r\n");
	STAGE_UNTIL(&p.stage, ended == 3);
	/* Whoever waited longest is served first. */
	assert_string_equal(askers[0].member->id, "192.0.2.1:1");
	assert_string_equal(askers[1].member->id, "192.0.2.2:1");
	assert_string_equal(askers[2].member->id, "192.0.2.3:1");
	askers_free(askers, 3);
	pool_stage_end(&p);
}

static void test_a_second_lost_answer_ends_it(void **state)
{
	struct asker *askers = askers_new(2);
	int64_t ambiguous = metric_own(METRIC_AMBIGUOUS);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 1);
	peer_expect(&p.peer, "EVALSHA");
	pool_stage_greet(&p);
	peer_expect(&p.peer, "EVALSHA");
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, ended == 1);
	assert_int_equal(askers[0].result, REASON_STORE_UNKNOWN);
	assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous == 2);
	pool_stage_greet(&p);
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	askers_free(askers, 2);
	pool_stage_end(&p);
}

static void test_a_lost_answer_with_exclusions_is_asked_for_once_more(void **state)
{
	struct asker *askers = askers_new(1);
	int64_t ambiguous = metric_own(METRIC_AMBIGUOUS);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	assert_int_equal(pool_allocate_except(p.pool, &askers[0].allocation, NULL, 0, on_member),
			 0);
	peer_expect(&p.peer, "EVALSHA");
	pool_stage_greet(&p);
	peer_expect(&p.peer, "EVALSHA");
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, ended);
	assert_int_equal(askers[0].result, REASON_STORE_UNKNOWN);
	assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous == 2);
	askers_free(askers, 1);
	pool_stage_end(&p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result;
}

/* pool.h: a newer node has written the pool, nothing is written any more. */
static void test_a_newer_pool_is_not_allocated_from(void **state)
{
	struct asker *askers = askers_new(2);
	int result = 0;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	ask_all(&p, askers, 1);
	STAGE_UNTIL(&p.stage, ended == 1);
	assert_int_equal(askers[0].result, REASON_STORE_NEWER);
	if (!pool_allocate_except(p.pool, &askers[1].allocation, NULL, 0, on_member))
		STAGE_UNTIL(&p.stage, ended == 2);
	assert_string_equal(redis_ask(&p.redis, "ZSCORE pool 192.0.2.1:1"), "0");
	askers_free(askers, 2);
	pool_stage_end(&p);
}

static void test_a_refusal_is_told_to_everybody(void **state)
{
	struct asker *askers = askers_new(2);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 2);
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
	STAGE_UNTIL(&p.stage, ended == 2);
	assert_int_equal(askers[0].result, REASON_STORE_REFUSED);
	assert_int_equal(askers[1].result, REASON_STORE_REFUSED);
	askers_free(askers, 2);
	pool_stage_end(&p);
}

/* At the end of a process: nothing runs any more, and nothing is lost track of. */
static void test_a_pool_that_ends_with_calls_in_flight_leaves_nothing(void **state)
{
	struct asker *askers = askers_new(2);
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask_all(&p, askers, 1);
	peer_expect(&p.peer, "EVALSHA");
	ask_all(&p, askers + 1, 1);
	pool_allocate_cancel(&askers[0].allocation);
	pool_allocate_cancel(&askers[1].allocation);
	pool_stage_end(&p);
	assert_int_equal(ended, 0);
	askers_free(askers, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_allocations_come_in_the_order_of_least_use),
	    cmocka_unit_test(test_what_is_asked_for_together_is_one_call),
	    cmocka_unit_test(test_at_most_one_call_is_in_flight),
	    cmocka_unit_test(test_an_empty_pool_is_told_to_everybody),
	    cmocka_unit_test(test_cancelling_while_waiting_takes_no_member),
	    cmocka_unit_test(test_cancelling_in_flight_leaves_the_others_their_members),
	    cmocka_unit_test(test_cancelling_while_credentials_are_fetched_is_safe),
	    cmocka_unit_test(test_credentials_are_fetched_once_and_kept),
	    cmocka_unit_test(test_members_with_and_without_credentials_keep_their_order),
	    cmocka_unit_test(test_a_member_that_cannot_be_read_is_handed_out_as_such),
	    cmocka_unit_test(test_those_to_avoid_are_not_taken_and_not_counted),
	    cmocka_unit_test(test_a_lost_answer_is_counted_and_asked_for_once_more),
	    cmocka_unit_test(test_a_second_lost_answer_ends_it),
	    cmocka_unit_test(test_a_lost_answer_with_exclusions_is_asked_for_once_more),
	    cmocka_unit_test(test_a_newer_pool_is_not_allocated_from),
	    cmocka_unit_test(test_a_refusal_is_told_to_everybody),
	    cmocka_unit_test(test_a_pool_that_ends_with_calls_in_flight_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
