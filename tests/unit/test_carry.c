/* test_carry.c - one task through a pool on a real server, whose members the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pool_stage.h"
#include "worker/carry.h"

#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define SLOW_DOWN "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
#define MEMBERS 3
#define LONG_MS 60000

struct outcome_seen {
	int ends, reason, status, tries;
	bool has_answer;
	int64_t retry_after_ms;
	char member[80], detail[120], body[16];
};

struct carry_stage {
	struct pool_stage p;
	struct peer members[MEMBERS];
	struct visits *visits;
	struct limits *limits;
	struct carry_config config;
	struct task task;
	struct carry *carry;
	struct outcome_seen seen;
};

static bool admit_all(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	(void)address;
	(void)port;
	(void)is_target;
	(void)arg;
	return true;
}

static void begin(struct carry_stage *c)
{
	memset(c, 0, sizeof(*c));
	pool_stage_begin(&c->p);
	assert_int_equal(visits_new(&c->visits, c->p.stage.loop), 0);
	assert_int_equal(limits_new(&c->limits, c->p.stage.loop, c->p.pool), 0);
	c->config = (struct carry_config){.loop = c->p.stage.loop,
					  .pool = c->p.pool,
					  .visits = c->visits,
					  .limits = c->limits,
					  .tries = 3,
					  .timeout_ms = LONG_MS,
					  .connect_ms = LONG_MS,
					  .max_bytes = 1000,
					  .is_admitted = admit_all};
	c->task = (struct task){.url = (char *)"http://target.test/a",
				.shown = (char *)"http://target.test/a",
				.host = (char *)"target.test",
				.method = (char *)"GET"};
}

static void end(struct carry_stage *c)
{
	carry_cancel(c->carry);
	visits_free(c->visits);
	for (int i = 0; i < MEMBERS; i++)
		if (c->members[i].stage)
			peer_fini(&c->members[i]);
	store_free(c->p.store);
	c->p.store = NULL;
	limits_free(c->limits);
	pool_stage_end(&c->p);
}

/* A member that the test plays; the one with the lowest count comes first. */
static struct peer *add(struct carry_stage *c, int index)
{
	peer_listen(&c->members[index], &c->p.stage, "127.0.0.1");
	redis_askf(&c->p.redis, "ZADD pool %d.5 http://127.0.0.1:%u", index,
		   c->members[index].port);
	return &c->members[index];
}

/* A member that refuses every connection. */
static void add_dead(struct carry_stage *c, int index)
{
	struct peer peer;

	peer_listen(&peer, &c->p.stage, "127.0.0.1");
	redis_askf(&c->p.redis, "ZADD pool %d.5 http://127.0.0.1:%u", index, peer.port);
	peer_fini(&peer);
}

static void on_carried(const struct carried *carried, void *arg)
{
	struct carry_stage *c = arg;
	struct outcome_seen *seen = &c->seen;

	c->carry = NULL;
	seen->ends++;
	seen->reason = carried->reason;
	seen->tries = carried->tries;
	seen->has_answer = carried->answer;
	seen->status = carried->answer ? carried->answer->status : 0;
	seen->retry_after_ms = carried->retry_after_ms;
	snprintf(seen->member, sizeof(seen->member), "%s", carried->member ? carried->member : "");
	snprintf(seen->detail, sizeof(seen->detail), "%s", carried->detail);
	snprintf(seen->body, sizeof(seen->body), "%s",
		 carried->answer ? carried->answer->body : "");
}

static void start(struct carry_stage *c)
{
	c->seen = (struct outcome_seen){0};
	assert_int_equal(carry_start(&c->carry, &c->config, &c->task, on_carried, c), 0);
	assert_int_equal(c->seen.ends, 0);
}

static void finish(struct carry_stage *c, int reason, int tries)
{
	STAGE_UNTIL(&c->p.stage, c->seen.ends);
	assert_string_equal(result_word(c->seen.reason), result_word(reason));
	assert_int_equal(c->seen.tries, tries);
}

static void serve(struct peer *peer, const char *answer)
{
	peer_accept(peer);
	peer_expect(peer, "GET http://target.test/a HTTP/1.1\r\n");
	peer_say(peer, answer);
}

static const char *score(struct carry_stage *c, int index)
{
	return redis_askf(&c->p.redis, "ZSCORE pool http://127.0.0.1:%u", c->members[index].port);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static void test_a_task_goes_through_the_member_with_the_lowest_count(void **state)
{
	struct carry_stage c;
	char expected[80];

	(void)state;
	begin(&c);
	add(&c, 1);
	add(&c, 0);
	start(&c);
	serve(&c.members[0], FINE);
	finish(&c, REASON_OK, 1);
	assert_int_equal(c.seen.status, 200);
	assert_string_equal(c.seen.body, "hi");
	snprintf(expected, sizeof(expected), "http://127.0.0.1:%u", c.members[0].port);
	assert_string_equal(c.seen.member, expected);
	assert_string_equal(score(&c, 0), "1.5");
	assert_string_equal(score(&c, 1), "1.5");
	end(&c);
}

static void test_without_a_member_there_is_no_request(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	start(&c);
	finish(&c, REASON_POOL_EMPTY, 0);
	assert_false(c.seen.has_answer);
	assert_string_equal(c.seen.member, "");
	end(&c);
}

static void test_members_that_cannot_be_used_are_none(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	redis_ask(&c.p.redis, "ZADD pool 0 ???");
	start(&c);
	finish(&c, REASON_POOL_EMPTY, 0);
	assert_string_equal(c.seen.detail, "none of the eligible members can be used");
	end(&c);
}

static void test_a_proxys_fault_brings_another_member_at_once(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add_dead(&c, 0);
	add(&c, 1);
	start(&c);
	serve(&c.members[1], FINE);
	finish(&c, REASON_OK, 2);
	assert_int_equal(c.seen.status, 200);
	end(&c);
}

static void test_the_fault_is_reported_to_the_pools_health(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add_dead(&c, 0);
	add(&c, 1);
	start(&c);
	serve(&c.members[1], FINE);
	finish(&c, REASON_OK, 2);
	STAGE_UNTIL(&c.p.stage, !store_is_busy(c.p.store));
	assert_non_null(strstr(redis_ask(&c.p.redis, "HVALS {pool}:pool:streaks"), "-1"));
	end(&c);
}

static void test_no_member_is_tried_twice(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add_dead(&c, 0);
	add_dead(&c, 1);
	start(&c);
	finish(&c, REASON_PROXY_REFUSED, 2);
	assert_false(c.seen.has_answer);
	end(&c);
}

static void test_no_more_members_are_tried_than_was_said(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	c.config.tries = 2;
	add_dead(&c, 0);
	add_dead(&c, 1);
	add(&c, 2);
	start(&c);
	finish(&c, REASON_PROXY_REFUSED, 2);
	assert_false(peer_is_called(&c.members[2]));
	end(&c);
}

/* --- what hosts say ----------------------------------------------------------------------------------------------- */

static void test_a_host_that_is_asked_too_often_says_when(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add(&c, 0);
	start(&c);
	serve(&c.members[0], SLOW_DOWN);
	finish(&c, REASON_OK, 1);
	assert_int_equal(c.seen.status, 429);
	assert_int_equal(c.seen.retry_after_ms, 7000);
	end(&c);
}

static void test_the_member_then_cools_down_for_that_host(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add(&c, 0);
	add(&c, 1);
	start(&c);
	serve(&c.members[0], SLOW_DOWN);
	finish(&c, REASON_OK, 1);
	redis_askf(&c.p.redis, "ZADD pool 0 http://127.0.0.1:%u", c.members[0].port);
	start(&c);
	serve(&c.members[1], FINE);
	finish(&c, REASON_OK, 1);
	end(&c);
}

static void test_who_cools_down_is_used_if_there_is_no_other(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	add(&c, 0);
	start(&c);
	serve(&c.members[0], SLOW_DOWN);
	finish(&c, REASON_OK, 1);
	start(&c);
	serve(&c.members[0], FINE);
	finish(&c, REASON_OK, 1);
	end(&c);
}

static void test_no_more_requests_go_to_a_host_at_a_time_than_may(void **state)
{
	struct carry_stage c;
	struct ticket ticket;
	int64_t ignored;

	(void)state;
	begin(&c);
	limits_set(c.limits, &(struct limits_config){.host_concurrent = 1});
	assert_int_equal(ticket_take(c.limits, &ticket, "", "target.test", NULL, &ignored), 0);
	add(&c, 0);
	start(&c);
	for (int i = 0; i < 50; i++)
		stage_turn(&c.p.stage);
	assert_false(peer_is_called(&c.members[0]));
	assert_int_equal(c.seen.ends, 0);
	ticket_return(&ticket);
	serve(&c.members[0], FINE);
	finish(&c, REASON_OK, 1);
	end(&c);
}

/* --- leases ------------------------------------------------------------------------------------------------------- */

static void on_rules(int result, const char *error, void *arg)
{
	int *reads = arg;

	(void)error;
	assert_int_equal(result, 0);
	(*reads)++;
}

static void want_leases(struct carry_stage *c)
{
	int reads = 0;

	redis_ask(&c->p.redis, "HSET {pool}:pool:rules policy least-concurrent");
	assert_int_equal(pool_read_rules(c->p.pool, on_rules, &reads), 0);
	STAGE_UNTIL(&c->p.stage, reads);
}

static void test_a_lease_is_held_while_the_request_lasts(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	want_leases(&c);
	add(&c, 0);
	start(&c);
	peer_accept(&c.members[0]);
	assert_string_equal(redis_ask(&c.p.redis, "ZCARD {pool}:pool:leases"), "1");
	peer_say(&c.members[0], FINE);
	finish(&c, REASON_OK, 1);
	STAGE_UNTIL(&c.p.stage, !strcmp(redis_ask(&c.p.redis, "ZCARD {pool}:pool:leases"), "0"));
	end(&c);
}

static void test_all_at_their_cap_is_no_fault_of_the_task(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	redis_ask(&c.p.redis, "HSET {pool}:pool:rules max_concurrent 1");
	want_leases(&c);
	add(&c, 0);
	redis_askf(&c.p.redis, "ZADD {pool}:pool:busy 1099511627776 http://127.0.0.1:%u",
		   c.members[0].port);
	redis_askf(&c.p.redis, "HSET {pool}:pool:live http://127.0.0.1:%u 1", c.members[0].port);
	start(&c);
	finish(&c, REASON_POOL_FULL, 0);
	end(&c);
}

static void test_who_is_cancelled_gives_back_its_lease(void **state)
{
	struct carry_stage c;

	(void)state;
	begin(&c);
	want_leases(&c);
	add(&c, 0);
	start(&c);
	peer_accept(&c.members[0]);
	carry_cancel(c.carry);
	c.carry = NULL;
	STAGE_UNTIL(&c.p.stage, !strcmp(redis_ask(&c.p.redis, "ZCARD {pool}:pool:leases"), "0"));
	assert_int_equal(c.seen.ends, 0);
	end(&c);
}

static void test_what_cannot_be_sent_can_never_work(void **state)
{
	struct task_header header = {(char *)"X", (char *)"a\r\nb"};
	struct carry_stage c;

	(void)state;
	begin(&c);
	c.task.headers = &header;
	c.task.header_count = 1;
	add(&c, 0);
	start(&c);
	finish(&c, REASON_TASK_INVALID, 1);
	assert_false(peer_is_called(&c.members[0]));
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_task_goes_through_the_member_with_the_lowest_count),
	    cmocka_unit_test(test_without_a_member_there_is_no_request),
	    cmocka_unit_test(test_members_that_cannot_be_used_are_none),
	    cmocka_unit_test(test_a_proxys_fault_brings_another_member_at_once),
	    cmocka_unit_test(test_the_fault_is_reported_to_the_pools_health),
	    cmocka_unit_test(test_no_member_is_tried_twice),
	    cmocka_unit_test(test_no_more_members_are_tried_than_was_said),
	    cmocka_unit_test(test_a_host_that_is_asked_too_often_says_when),
	    cmocka_unit_test(test_the_member_then_cools_down_for_that_host),
	    cmocka_unit_test(test_who_cools_down_is_used_if_there_is_no_other),
	    cmocka_unit_test(test_no_more_requests_go_to_a_host_at_a_time_than_may),
	    cmocka_unit_test(test_a_lease_is_held_while_the_request_lasts),
	    cmocka_unit_test(test_all_at_their_cap_is_no_fault_of_the_task),
	    cmocka_unit_test(test_who_is_cancelled_gives_back_its_lease),
	    cmocka_unit_test(test_what_cannot_be_sent_can_never_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
