/* test_sticky.c - sticky sessions: names, outcomes, credentials, cancelling, lost answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/metric.h"
#include "pool/sticky.h"
#include "pool_stage.h"

#define SECRET_ID "http://192.0.2.9:80#0123456789abcdef"

/* Somebody who asks for the member of a session. */
struct asker {
	struct sticky sticky;
	int ends, result;
	bool is_moved;
	struct member *member;
};

static void on_member(int result, struct member *member, bool is_moved, struct sticky *sticky)
{
	struct asker *asker = (struct asker *)sticky;

	asker->ends++;
	asker->result = result;
	asker->is_moved = is_moved;
	asker->member = member;
}

static struct sticky_request request(void)
{
	return (struct sticky_request){.client = "alice",
				       .session = "s",
				       .lifetime_ms = 600000,
				       .max_ms = 86400000,
				       .limit = 100};
}

static void ask(struct pool_stage *p, struct asker *asker, const struct sticky_request *request)
{
	*asker = (struct asker){0};
	assert_int_equal(pool_sticky(p->pool, &asker->sticky, request, on_member), 0);
	assert_int_equal(asker->ends, 0);
}

/* Asks, waits, and expects that result and member ("" = none). */
static bool check(struct pool_stage *p, const struct sticky_request *request, int result,
		  const char *id)
{
	struct asker asker;

	ask(p, &asker, request);
	STAGE_UNTIL(&p->stage, asker.ends);
	assert_int_equal(asker.result, result);
	assert_string_equal(asker.member ? asker.member->id : "", id);
	assert_null(asker.sticky.call);
	member_unref(asker.member);
	return asker.is_moved;
}

static void test_a_session_keeps_its_member_and_each_request_counts(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 1 192.0.2.2:1");
	for (int i = 0; i < 3; i++)
		assert_false(check(&p, &r, 0, "192.0.2.1:1"));
	r.session = "other";
	assert_false(check(&p, &r, 0, "192.0.2.2:1"));
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1 WITHSCORES"),
			    "192.0.2.2:1 2 192.0.2.1:1 3");
	pool_stage_end(&p);
}

/* docs/wire.md: client and id are percent-encoded (RFC 3986 2.1, 2.3). */
static void test_keys_name_client_and_session_encoded(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	r.client = "a:{b}%";
	r.session = "x y~\xc3\xa4";
	check(&p, &r, 0, "192.0.2.1:1");
	assert_string_equal(
	    redis_ask(&p.redis, "EXISTS {pool}:pool:sticky:a%3A%7Bb%7D%25:x%20y~%C3%A4"), "1");
	assert_string_equal(redis_ask(&p.redis, "ZRANGE {pool}:pool:sessions:a%3A%7Bb%7D%25 0 -1"),
			    "x%20y~%C3%A4");
	pool_stage_end(&p);
}

static void test_sessions_of_one_name_are_apart_by_client(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 0 192.0.2.2:1 0 192.0.2.3:1");
	check(&p, &r, 0, "192.0.2.1:1");
	r.client = "bob";
	check(&p, &r, 0, "192.0.2.2:1");
	r.client = "";
	check(&p, &r, 0, "192.0.2.3:1");
	r.client = "alice";
	check(&p, &r, 0, "192.0.2.1:1");
	pool_stage_end(&p);
}

static void test_times_and_limit_reach_the_store(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;
	long ttl;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1");
	r.limit = 2;
	check(&p, &r, 0, "192.0.2.1:1");
	assert_true(sscanf(redis_ask(&p.redis, "PTTL {pool}:pool:sticky:alice:s"), "%ld", &ttl) ==
		    1);
	assert_true(ttl > 590000 && ttl <= 600000);
	r.session = "capped";
	r.max_ms = 5000;
	check(&p, &r, 0, "192.0.2.1:1");
	assert_true(
	    sscanf(redis_ask(&p.redis, "PTTL {pool}:pool:sticky:alice:capped"), "%ld", &ttl) == 1);
	assert_true(ttl > 0 && ttl <= 5000);
	r.session = "third";
	check(&p, &r, REASON_SESSION_LIMIT, "");
	pool_stage_end(&p);
}

static void test_a_session_whose_member_left_moves_and_says_so(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 1 192.0.2.2:1");
	check(&p, &r, 0, "192.0.2.1:1");
	redis_ask(&p.redis, "ZREM pool 192.0.2.1:1");
	assert_true(check(&p, &r, 0, "192.0.2.2:1"));
	assert_false(check(&p, &r, 0, "192.0.2.2:1"));
	pool_stage_end(&p);
}

static void test_a_strict_session_is_lost_with_its_member(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	r.is_strict = true;
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 1 192.0.2.2:1");
	check(&p, &r, 0, "192.0.2.1:1");
	redis_ask(&p.redis, "ZREM pool 192.0.2.1:1");
	check(&p, &r, REASON_SESSION_LOST, "");
	assert_string_equal(redis_ask(&p.redis, "ZSCORE pool 192.0.2.2:1"), "1");
	pool_stage_end(&p);
}

static void test_a_member_to_avoid_is_not_taken(void **state)
{
	struct sticky_request r = request();
	struct member *avoid[1];
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 192.0.2.1:1 1 192.0.2.2:1");
	ask(&p, &asker, &r);
	STAGE_UNTIL(&p.stage, asker.ends);
	avoid[0] = asker.member;
	r.avoid = avoid;
	r.avoid_count = 1;
	assert_true(check(&p, &r, 0, "192.0.2.2:1"));
	redis_ask(&p.redis, "ZREM pool 192.0.2.2:1");
	check(&p, &r, REASON_POOL_EMPTY, "");
	member_unref(asker.member);
	pool_stage_end(&p);
}

static void test_an_empty_pool_gives_no_session(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	check(&p, &r, REASON_POOL_EMPTY, "");
	assert_string_equal(redis_ask(&p.redis, "DBSIZE"), "0");
	pool_stage_end(&p);
}

static void test_credentials_come_with_the_member(void **state)
{
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " SECRET_ID);
	check(&p, &r, REASON_MEMBER_UNREADABLE, SECRET_ID);
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " u:p");
	for (int i = 0; i < 2; i++) {
		ask(&p, &asker, &r);
		STAGE_UNTIL(&p.stage, asker.ends);
		assert_int_equal(asker.result, 0);
		assert_string_equal(asker.member->endpoint.secret, "u:p");
		member_unref(asker.member);
	}
	/* The third time it is known. */
	assert_int_equal(redis_calls(&p.redis, "hmget"), 2);
	pool_stage_end(&p);
}

static void test_names_that_are_too_long_or_missing_are_refused(void **state)
{
	char longest[STICKY_NAME_MAX + 1] = "", longer[STICKY_NAME_MAX + 2] = "";
	struct sticky_request r = request();
	struct asker asker = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	memset(longest, '%', STICKY_NAME_MAX);
	memset(longer, 'x', STICKY_NAME_MAX + 1);
	r.client = r.session = longest;
	check(&p, &r, REASON_POOL_EMPTY, "");
	r.client = longer;
	assert_int_equal(pool_sticky(p.pool, &asker.sticky, &r, on_member), -EINVAL);
	r.client = "alice";
	r.session = longer;
	assert_int_equal(pool_sticky(p.pool, &asker.sticky, &r, on_member), -EINVAL);
	r.session = "";
	assert_int_equal(pool_sticky(p.pool, &asker.sticky, &r, on_member), -EINVAL);
	pool_stage_end(&p);
}

static void test_a_cancelled_question_ends_in_silence(void **state)
{
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "EVALSHA");
	pool_sticky_cancel(&asker.sticky);
	pool_sticky_cancel(&asker.sticky);
	peer_say(&p.peer, "*2\r\n:1\r\n$11\r\n192.0.2.1:1\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_int_equal(asker.ends, 0);
	pool_stage_end(&p);
}

static void test_cancelling_while_credentials_are_fetched_is_safe(void **state)
{
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, "*2\r\n:1\r\n$36\r\n" SECRET_ID "\r\n");
	peer_expect(&p.peer, "HMGET");
	pool_sticky_cancel(&asker.sticky);
	peer_say(&p.peer, "*1\r\n$3\r\nu:p\r\n");
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_int_equal(asker.ends, 0);
	pool_stage_end(&p);
}

static void test_a_lost_answer_is_counted_and_asked_for_once_more(void **state)
{
	int64_t ambiguous = metric_own(METRIC_AMBIGUOUS);
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "{pool}:pool:sticky:alice:s");
	pool_stage_greet(&p); /* closes the connection first */
	peer_expect(&p.peer, "{pool}:pool:sticky:alice:s");
	peer_say(&p.peer, "*2\r\n:1\r\n$11\r\n192.0.2.1:1\r\n");
	STAGE_UNTIL(&p.stage, asker.ends);
	assert_string_equal(asker.member->id, "192.0.2.1:1");
	assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous == 1);
	member_unref(asker.member);
	pool_stage_end(&p);
}

static void test_a_second_lost_answer_ends_it(void **state)
{
	int64_t ambiguous = metric_own(METRIC_AMBIGUOUS);
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "EVALSHA");
	pool_stage_greet(&p);
	peer_expect(&p.peer, "EVALSHA");
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, asker.ends);
	assert_int_equal(asker.result, REASON_STORE_UNKNOWN);
	assert_true(metric_own(METRIC_AMBIGUOUS) - ambiguous == 2);
	pool_stage_end(&p);
}

static void test_who_has_cancelled_is_not_asked_for_again(void **state)
{
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "EVALSHA");
	pool_sticky_cancel(&asker.sticky);
	pool_stage_greet(&p);
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	assert_false(store_is_busy(p.store));
	pool_stage_end(&p);
}

static void test_a_refusal_is_told(void **state)
{
	struct sticky_request r = request();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "SET pool text");
	check(&p, &r, REASON_STORE_PARTIAL, "");
	assert_non_null(strstr(pool_last_error(p.pool), "WRONGTYPE"));
	pool_stage_end(&p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result;
}

static void test_a_newer_pool_has_no_sessions(void **state)
{
	struct sticky_request r = request();
	struct asker asker = {0};
	struct pool_stage p;
	int result = 0;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	assert_int_equal(pool_sticky(p.pool, &asker.sticky, &r, on_member), -EPERM);
	pool_stage_end(&p);
}

static void test_a_pool_that_ends_with_a_question_in_flight_leaves_nothing(void **state)
{
	struct sticky_request r = request();
	struct asker asker;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	ask(&p, &asker, &r);
	peer_expect(&p.peer, "EVALSHA");
	pool_sticky_cancel(&asker.sticky);
	pool_stage_end(&p);
	assert_int_equal(asker.ends, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_session_keeps_its_member_and_each_request_counts),
	    cmocka_unit_test(test_keys_name_client_and_session_encoded),
	    cmocka_unit_test(test_sessions_of_one_name_are_apart_by_client),
	    cmocka_unit_test(test_times_and_limit_reach_the_store),
	    cmocka_unit_test(test_a_session_whose_member_left_moves_and_says_so),
	    cmocka_unit_test(test_a_strict_session_is_lost_with_its_member),
	    cmocka_unit_test(test_a_member_to_avoid_is_not_taken),
	    cmocka_unit_test(test_an_empty_pool_gives_no_session),
	    cmocka_unit_test(test_credentials_come_with_the_member),
	    cmocka_unit_test(test_names_that_are_too_long_or_missing_are_refused),
	    cmocka_unit_test(test_a_cancelled_question_ends_in_silence),
	    cmocka_unit_test(test_cancelling_while_credentials_are_fetched_is_safe),
	    cmocka_unit_test(test_a_lost_answer_is_counted_and_asked_for_once_more),
	    cmocka_unit_test(test_a_second_lost_answer_ends_it),
	    cmocka_unit_test(test_who_has_cancelled_is_not_asked_for_again),
	    cmocka_unit_test(test_a_refusal_is_told),
	    cmocka_unit_test(test_a_newer_pool_has_no_sessions),
	    cmocka_unit_test(test_a_pool_that_ends_with_a_question_in_flight_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
