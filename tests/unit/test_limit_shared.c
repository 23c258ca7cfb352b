/* test_limit_shared.c - requests at a time and a second, counted in Redis over all processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pool/limit_parts.h"
#include "pool_stage.h"

#define CLIENT "{pool}:pool:limit:client:"
#define HOST "{pool}:pool:limit:host:"

/* Somebody who asks. */
struct asker {
	struct ticket ticket;
	int ends, result;
	int64_t retry_ms;
};

static void on_ticket(int result, int64_t retry_ms, struct ticket *ticket)
{
	struct asker *asker = (struct asker *)ticket;

	asker->ends++;
	asker->result = result;
	asker->retry_ms = retry_ms;
}

static void open_limits(struct pool_stage *p, struct limits **ret, struct limits_config config)
{
	config.is_shared = true;
	assert_int_equal(limits_new(ret, p->stage.loop, p->pool), 0);
	limits_set(*ret, &config);
}

static void ask(struct limits *limits, struct asker *asker, const char *client, const char *host)
{
	*asker = (struct asker){0};
	assert_int_equal(
	    ticket_take(limits, &asker->ticket, client, host, on_ticket, &asker->retry_ms),
	    -EINPROGRESS);
	assert_int_equal(asker->ends, 0);
}

/* Asks, and waits for the answer. */
static int take(struct pool_stage *p, struct limits *limits, struct asker *asker,
		const char *client, const char *host)
{
	ask(limits, asker, client, host);
	STAGE_UNTIL(&p->stage, asker->ends);
	return asker->result;
}

static void settle(struct pool_stage *p)
{
	stage_turn(&p->stage);
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
}

static void end(struct pool_stage *p, struct limits *limits)
{
	store_free(p->store);
	p->store = NULL;
	limits_free(limits);
	pool_stage_end(p);
}

static void test_two_processes_share_a_limit(void **state)
{
	struct limits *one, *two;
	struct asker a, b, c;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &one, (struct limits_config){.client_concurrent = 2});
	open_limits(&p, &two, (struct limits_config){.client_concurrent = 2});
	assert_int_equal(take(&p, one, &a, "c", "h"), 0);
	assert_int_equal(take(&p, two, &b, "c", "i"), 0);
	assert_int_equal(take(&p, one, &c, "c", "j"), REASON_CLIENT_LIMIT);
	assert_int_equal(c.retry_ms, 1000);
	assert_null(c.ticket.limits);
	ticket_return(&b.ticket);
	settle(&p);
	assert_int_equal(take(&p, one, &c, "c", "j"), 0);
	ticket_return(&a.ticket);
	ticket_return(&c.ticket);
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "DBSIZE"), "0");
	limits_free(two);
	end(&p, one);
}

static void test_two_processes_share_a_rate(void **state)
{
	struct limits *one, *two;
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &one, (struct limits_config){.host_rate = 1});
	open_limits(&p, &two, (struct limits_config){.host_rate = 1});
	assert_int_equal(take(&p, one, &a, "c", "h"), 0);
	ticket_return(&a.ticket);
	assert_int_equal(take(&p, two, &a, "d", "h"), REASON_HOST_RATE);
	assert_in_range(a.retry_ms, 1, 1000);
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "KEYS *"), HOST "h:rate");
	limits_free(two);
	end(&p, one);
}

static void test_both_subjects_are_held_under_one_id(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;
	char id[64];

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits,
		    (struct limits_config){.client_concurrent = 1, .host_concurrent = 1});
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	snprintf(id, sizeof(id), "%s", redis_ask(&p.redis, "ZRANGE " CLIENT "c 0 -1"));
	assert_string_equal(redis_ask(&p.redis, "ZRANGE " HOST "h 0 -1"), id);
	ticket_return(&a.ticket);
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "DBSIZE"), "0");
	end(&p, limits);
}

static void test_who_leaves_while_asking_holds_nothing(void **state)
{
	struct limits *limits;
	struct asker before, flying;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 9});
	ask(limits, &before, "c", "h");
	ticket_return(&before.ticket);
	ask(limits, &flying, "c", "h");
	stage_turn(&p.stage);
	ticket_return(&flying.ticket);
	ticket_return(&flying.ticket);
	settle(&p);
	STAGE_UNTIL(&p.stage, strcmp(redis_ask(&p.redis, "DBSIZE"), "0") == 0);
	assert_int_equal(before.ends + flying.ends, 0);
	end(&p, limits);
}

static void test_what_ends_together_is_given_back_together(void **state)
{
	static struct asker askers[384];
	struct limits *limits;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 384});
	for (int i = 0; i < 384; i++)
		ask(limits, &askers[i], "c", "h");
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " CLIENT "c"), "384");
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	for (int i = 0; i < 384; i++)
		ticket_return(&askers[i].ticket);
	settle(&p);
	assert_int_equal(redis_calls(&p.redis, "zrem"), 3); /* of 128 */
	assert_string_equal(redis_ask(&p.redis, "DBSIZE"), "0");
	end(&p, limits);
}

/* As if the time until the next renewal had passed since the last one. */
static void renew(struct pool_stage *p, struct limits *limits)
{
	static int64_t ahead_ms;

	ahead_ms += 11000;
	clock_set(clock_ms() + ahead_ms);
	event_active(&limits->shared.renewal.timer, EV_TIMEOUT, 1);
	settle(p);
	clock_set(-1);
}

/* How many hold with at least 20 seconds to go. */
static const char *count_fresh(struct pool_stage *p, const char *key)
{
	long long seconds = atoll(redis_ask(&p->redis, "TIME"));

	return redis_askf(&p->redis, "ZCOUNT %s %lld000 +inf", key, seconds + 20);
}

static void age(struct pool_stage *p, const char *key, const char *id)
{
	long long seconds = atoll(redis_ask(&p->redis, "TIME"));

	redis_askf(&p->redis, "ZADD %s XX %lld000 %s", key, seconds + 10, id);
}

static void test_what_is_held_is_renewed(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;
	char id[64];

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits,
		    (struct limits_config){.client_concurrent = 1, .host_concurrent = 1});
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	snprintf(id, sizeof(id), "%s", redis_ask(&p.redis, "ZRANGE " CLIENT "c 0 -1"));
	for (int i = 0; i < 3; i++) {
		age(&p, CLIENT "c", id);
		age(&p, HOST "h", id);
		assert_string_equal(count_fresh(&p, CLIENT "c"), "0");
		renew(&p, limits);
		assert_string_equal(count_fresh(&p, CLIENT "c"), "1");
		assert_string_equal(count_fresh(&p, HOST "h"), "1");
	}
	ticket_return(&a.ticket);
	end(&p, limits);
}

static void test_many_are_renewed_in_calls_of_128(void **state)
{
	static struct asker askers[384];
	struct limits *limits;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 384});
	for (int i = 0; i < 384; i++)
		ask(limits, &askers[i], "c", "h");
	settle(&p);
	redis_ask(&p.redis, "SCRIPT FLUSH"); /* each of the three comes as EVAL in the end */
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	renew(&p, limits);
	assert_int_equal(redis_calls(&p.redis, "eval"), 3);
	assert_int_equal(redis_calls(&p.redis, "zmscore"), 3);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " CLIENT "c"), "384");
	for (int i = 0; i < 384; i++)
		ticket_return(&askers[i].ticket);
	end(&p, limits);
}

static void test_what_was_given_back_is_not_renewed(void **state)
{
	struct limits *limits;
	struct asker a, b;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 2});
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	assert_int_equal(take(&p, limits, &b, "d", "h"), 0);
	ticket_return(&a.ticket);
	renew(&p, limits);
	assert_string_equal(redis_ask(&p.redis, "KEYS *"), CLIENT "d");
	ticket_return(&b.ticket);
	settle(&p);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	renew(&p, limits);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 0);
	end(&p, limits);
}

static void test_a_lost_answer_is_unknown_and_not_renewed(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 1});
	ask(limits, &a, "c", "h");
	peer_expect(&p.peer, "EVALSHA");
	peer_close(&p.peer);
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_STORE_UNKNOWN);
	assert_null(a.ticket.limits);
	assert_true(TAILQ_EMPTY(&limits->shared.order));
	pool_stage_greet(&p);
	renew(&p, limits);
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	end(&p, limits);
}

static void test_an_answer_that_is_no_verdict_is_an_error(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 1});
	ask(limits, &a, "c", "h");
	peer_expect(&p.peer, "EVALSHA");
	peer_say(&p.peer, "*2\r\n:5\r\n:0\r\n");
	STAGE_UNTIL(&p.stage, a.ends);
	assert_int_equal(a.result, REASON_INTERNAL);
	end(&p, limits);
}

static void test_a_ticket_is_given_back_where_it_was_taken(void **state)
{
	struct limits_config config = {.client_concurrent = 1};
	struct limits *limits;
	struct asker here, there;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, config);
	assert_int_equal(take(&p, limits, &there, "c", "h"), 0);
	limits_set(limits, &config);
	assert_int_equal(ticket_take(limits, &here.ticket, "c", "h", on_ticket, &here.retry_ms), 0);
	config.is_shared = true;
	limits_set(limits, &config);
	ticket_return(&here.ticket);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " CLIENT "c"), "1");
	config.is_shared = false;
	limits_set(limits, &config);
	ticket_return(&there.ticket);
	settle(&p);
	assert_string_equal(redis_ask(&p.redis, "DBSIZE"), "0");
	assert_int_equal(ticket_take(limits, &here.ticket, "c", "h", on_ticket, &here.retry_ms), 0);
	ticket_return(&here.ticket);
	end(&p, limits);
}

static void test_the_end_of_the_store_is_told_and_tickets_may_outlive_all(void **state)
{
	struct limits *limits;
	struct asker held, asking, gone;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 9});
	assert_int_equal(take(&p, limits, &held, "c", "h"), 0);
	ask(limits, &asking, "c", "h");
	ask(limits, &gone, "c", "h");
	ticket_return(&gone.ticket);
	store_free(p.store);
	p.store = NULL;
	assert_int_equal(asking.result, -ECANCELED);
	assert_int_equal(gone.ends, 0);
	ticket_return(&asking.ticket);
	limits_free(limits);
	pool_stage_end(&p);
	ticket_return(&held.ticket);
	assert_null(held.ticket.limits);
}

static void test_what_was_not_sent_before_the_end_is_freed(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits,
		    (struct limits_config){.client_concurrent = 9, .host_concurrent = 9});
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	ticket_return(&a.ticket);
	end(&p, limits);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result;
}

/* pool.h: a newer node has written the pool, nothing is written any more. */
static void test_a_newer_pool_is_left_alone(void **state)
{
	struct limits *limits;
	struct asker a, b;
	struct pool_stage p;
	int result = 0;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits, (struct limits_config){.client_concurrent = 9});
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	assert_int_equal(ticket_take(limits, &b.ticket, "c", "h", on_ticket, &b.retry_ms),
			 REASON_STORE_NEWER);
	redis_ask(&p.redis, "CONFIG RESETSTAT");
	renew(&p, limits);
	ticket_return(&a.ticket);
	settle(&p);
	assert_int_equal(redis_calls(&p.redis, "evalsha") + redis_calls(&p.redis, "zrem"), 0);
	end(&p, limits);
}

static void test_at_maxmemory_requests_come_and_go(void **state)
{
	struct limits *limits;
	struct asker a;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	open_limits(&p, &limits,
		    (struct limits_config){.client_concurrent = 1, .client_rate = 100});
	redis_ask(&p.redis, "CONFIG SET maxmemory 1");
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	renew(&p, limits);
	ticket_return(&a.ticket);
	settle(&p);
	assert_int_equal(take(&p, limits, &a, "c", "h"), 0);
	ticket_return(&a.ticket);
	end(&p, limits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_processes_share_a_limit),
	    cmocka_unit_test(test_two_processes_share_a_rate),
	    cmocka_unit_test(test_both_subjects_are_held_under_one_id),
	    cmocka_unit_test(test_who_leaves_while_asking_holds_nothing),
	    cmocka_unit_test(test_what_ends_together_is_given_back_together),
	    cmocka_unit_test(test_what_is_held_is_renewed),
	    cmocka_unit_test(test_many_are_renewed_in_calls_of_128),
	    cmocka_unit_test(test_what_was_given_back_is_not_renewed),
	    cmocka_unit_test(test_a_lost_answer_is_unknown_and_not_renewed),
	    cmocka_unit_test(test_an_answer_that_is_no_verdict_is_an_error),
	    cmocka_unit_test(test_a_ticket_is_given_back_where_it_was_taken),
	    cmocka_unit_test(test_the_end_of_the_store_is_told_and_tickets_may_outlive_all),
	    cmocka_unit_test(test_what_was_not_sent_before_the_end_is_freed),
	    cmocka_unit_test(test_a_newer_pool_is_left_alone),
	    cmocka_unit_test(test_at_maxmemory_requests_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
