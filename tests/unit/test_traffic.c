/* test_traffic.c - bytes by member and client: gathered, reported, surveyed, forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pool/change.h"
#include "pool/survey.h"
#include "pool/traffic.h"
#include "pool/view.h"
#include "pool_stage.h"

#define A "http://192.0.2.1:80"
#define B "http://192.0.2.2:80"
#define TRAFFIC "{pool}:pool:traffic"

static void send_and_wait(struct pool_stage *p)
{
	pool_traffic_send(p->pool);
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
}

static void check_field(struct pool_stage *p, const char *hash, const char *field,
			const char *bytes)
{
	assert_string_equal(redis_askf(&p->redis, "HGET {pool}:pool:%s %s", hash, field), bytes);
}

static void test_bytes_are_added_up_and_sent(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	for (int round = 0; round < 2; round++) {
		pool_traffic_add(p.pool, A, "alice", 1, 20);
		pool_traffic_add(p.pool, A, "", 300, 0);
		pool_traffic_add(p.pool, B, "alice", 4000, 50000);
		send_and_wait(&p);
	}
	check_field(&p, "traffic", "in:" A, "602");
	check_field(&p, "traffic", "out:" A, "40");
	check_field(&p, "traffic", "in:" B, "8000");
	check_field(&p, "traffic", "in:", "8602");
	check_field(&p, "traffic", "out:", "100040");
	check_field(&p, "clients", "in:alice", "8002");
	check_field(&p, "clients", "out:alice", "100040");
	assert_string_equal(redis_ask(&p.redis, "HLEN {pool}:pool:clients"), "2");
	pool_stage_end(&p);
}

static void test_nothing_is_sent_when_there_is_nothing(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	pool_traffic_send(p.pool);
	pool_traffic_add(p.pool, A, "alice", 0, 0);
	send_and_wait(&p);
	pool_traffic_add(p.pool, A, "alice", 1, 0);
	send_and_wait(&p);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 2);
	send_and_wait(&p);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 2);
	pool_stage_end(&p);
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

/* All timers fire, at whatever time it is. */
static void fire_timers(struct pool_stage *p)
{
	struct timers timers = {0};

	event_base_foreach_event(loop_base(p->stage.loop), keep_timer, &timers);
	for (int i = 0; i < timers.count; i++)
		event_active(timers.events[i], EV_TIMEOUT, 0);
	stage_turn(&p->stage);
}

static void test_what_gathers_is_sent_after_two_seconds(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	clock_set(clock_ms());
	pool_traffic_add(p.pool, A, "", 1, 2);
	clock_set(clock_ms() + 1999);
	pool_traffic_add(p.pool, A, "", 1, 2);
	fire_timers(&p);
	assert_false(store_is_busy(p.store));
	clock_set(clock_ms() + 1);
	fire_timers(&p);
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	check_field(&p, "traffic", "in:" A, "2");
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_a_full_table_is_sent_early_and_whole(void **state)
{
	char member[40];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	for (int i = 0; i < 6000; i++) {
		snprintf(member, sizeof(member), "http://m%d.example:80", i);
		pool_traffic_add(p.pool, member, "", 1, 2);
	}
	assert_true(store_is_busy(p.store));
	send_and_wait(&p);
	assert_string_equal(redis_ask(&p.redis, "HLEN " TRAFFIC), "12002");
	check_field(&p, "traffic", "in:", "6000");
	check_field(&p, "traffic", "out:http://m4095.example:80", "2");
	pool_stage_end(&p);
}

static void test_a_lost_answer_is_not_repeated(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	pool_traffic_add(p.pool, A, "", 1, 2);
	pool_traffic_send(p.pool);
	peer_expect(&p.peer, "in:" A);
	pool_stage_greet(&p); /* closes the connection first */
	pool_traffic_send(p.pool);
	stage_turn(&p.stage);
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	assert_false(store_is_busy(p.store));
	pool_stage_end(&p);
}

static void on_rules(int result, const char *error, void *arg)
{
	(void)error;
	*(int *)arg = result;
}

static void test_a_newer_pool_gets_no_report(void **state)
{
	struct pool_stage p;
	int result = 0;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	pool_traffic_add(p.pool, A, "", 1, 2);
	send_and_wait(&p);
	assert_string_equal(redis_ask(&p.redis, "EXISTS " TRAFFIC), "0");
	pool_stage_end(&p);
}

static void test_a_pool_may_end_before_its_report(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	pool_traffic_add(p.pool, A, "alice", 1, 2);
	pool_stage_end(&p);
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void on_change(int result, const char *error, const enum placed *placed, size_t count,
		      void *arg)
{
	(void)error;
	(void)placed;
	(void)count;
	assert_int_equal(result, 0);
	*(bool *)arg = true;
}

static void test_removing_a_member_forgets_its_bytes_and_keeps_the_sum(void **state)
{
	const struct change_item items[] = {{.id = A}};
	struct pool_stage p;
	bool is_done = false;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " A);
	pool_traffic_add(p.pool, A, "", 1, 2);
	pool_traffic_add(p.pool, B, "", 10, 20);
	send_and_wait(&p);
	assert_int_equal(
	    pool_change(p.pool, CHANGE_REMOVE, "operator", items, 1, on_change, &is_done), 0);
	STAGE_UNTIL(&p.stage, is_done);
	check_field(&p, "traffic", "in:" A, "nil");
	check_field(&p, "traffic", "out:" A, "nil");
	check_field(&p, "traffic", "in:" B, "10");
	check_field(&p, "traffic", "in:", "11");
	pool_stage_end(&p);
}

static void on_story(int result, const char *error, const struct member_story *story, void *arg)
{
	(void)error;
	assert_int_equal(result, 0);
	assert_true(story->bytes_in == 7 && story->bytes_out == 8000000000);
	*(bool *)arg = true;
}

static void test_a_member_s_story_tells_its_bytes(void **state)
{
	struct pool_stage p;
	bool is_done = false;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " A);
	pool_traffic_add(p.pool, A, "", 7, 8000000000);
	send_and_wait(&p);
	assert_int_equal(pool_story(p.pool, A, on_story, &is_done), 0);
	STAGE_UNTIL(&p.stage, is_done);
	pool_stage_end(&p);
}

struct told {
	int ends, result;
	int64_t bytes_in, bytes_out;
	size_t busiest_count, client_count;
	char first[64], last[64];
};

static void on_survey(int result, const char *error, const struct survey *survey, void *arg)
{
	struct told *told = arg;

	(void)error;
	told->ends++;
	told->result = result;
	told->bytes_in = survey->bytes_in;
	told->bytes_out = survey->bytes_out;
	told->busiest_count = survey->busiest_count;
	told->client_count = survey->client_count;
	if (survey->busiest_count == 0)
		return;
	snprintf(told->first, sizeof(told->first), "%s", survey->busiest[0].name);
	snprintf(told->last, sizeof(told->last), "%s",
		 survey->busiest[survey->busiest_count - 1].name);
}

static struct told survey(struct pool_stage *p)
{
	struct told told = {0};

	assert_int_equal(pool_survey(p->pool, on_survey, &told), 0);
	STAGE_UNTIL(&p->stage, told.ends);
	return told;
}

static void test_a_survey_lists_the_hundred_busiest_clients(void **state)
{
	struct pool_stage p;
	struct told told;
	char client[20];

	(void)state;
	pool_stage_begin(&p);
	for (int i = 1; i <= 1500; i++) {
		snprintf(client, sizeof(client), "c%d", i);
		pool_traffic_add(p.pool, A, client, i % 2 ? 10 : 10 * (uint64_t)i,
				 i % 2 ? 10 * (uint64_t)i : 10);
	}
	send_and_wait(&p);
	told = survey(&p);
	assert_int_equal(told.result, 0);
	assert_true(told.bytes_in + told.bytes_out == 10 * (1500 * 1501 / 2) + 10 * 1500);
	assert_int_equal(told.client_count, 1500);
	assert_int_equal(told.busiest_count, 100);
	assert_string_equal(told.first, "c1500");
	assert_string_equal(told.last, "c1401");
	pool_stage_end(&p);
}

static void test_a_survey_of_nothing_is_empty(void **state)
{
	struct pool_stage p;
	struct told told;

	(void)state;
	pool_stage_begin(&p);
	told = survey(&p);
	assert_int_equal(told.result, 0);
	assert_true(told.bytes_in == 0 && told.bytes_out == 0);
	assert_int_equal(told.client_count + told.busiest_count, 0);
	redis_ask(&p.redis, "SET {pool}:pool:clients text");
	assert_int_equal(survey(&p).result, REASON_STORE_REFUSED);
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bytes_are_added_up_and_sent),
	    cmocka_unit_test(test_nothing_is_sent_when_there_is_nothing),
	    cmocka_unit_test(test_what_gathers_is_sent_after_two_seconds),
	    cmocka_unit_test(test_a_full_table_is_sent_early_and_whole),
	    cmocka_unit_test(test_a_lost_answer_is_not_repeated),
	    cmocka_unit_test(test_a_newer_pool_gets_no_report),
	    cmocka_unit_test(test_a_pool_may_end_before_its_report),
	    cmocka_unit_test(test_removing_a_member_forgets_its_bytes_and_keeps_the_sum),
	    cmocka_unit_test(test_a_member_s_story_tells_its_bytes),
	    cmocka_unit_test(test_a_survey_lists_the_hundred_busiest_clients),
	    cmocka_unit_test(test_a_survey_of_nothing_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
