/* test_schedule.c - who is due is probed, judged and reported; against a redis-server and listeners of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/net.h"
#include "check/schedule.h"
#include "pool/change.h"
#include "pool_stage.h"

#define DUE "{pool}:pool:due"
#define PARKED "{pool}:pool:parked"
#define MEMBERS_MAX 8

struct stand {
	struct pool_stage p;
	struct crowd *crowd;
	struct schedule *schedule;
	int fds[MEMBERS_MAX]; /* listeners: whoever connects is kept waiting */
	size_t count;
	int ends;
};

static void on_rules(int result, const char *error, void *arg)
{
	struct stand *s = arg;

	(void)error;
	assert_int_equal(result, 0);
	s->ends++;
}

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct stand *s = arg;

	(void)error;
	(void)placed;
	(void)count;
	assert_int_equal(result, 0);
	s->ends++;
}

static void set_rule(struct stand *s, const char *name, const char *value)
{
	struct word words[] = {WORD(name), WORD(value)};

	s->ends = 0;
	assert_int_equal(pool_write_rules(s->p.pool, words, 2, on_rules, s), 0);
	STAGE_UNTIL(&s->p.stage, s->ends);
}

static void begin(struct stand *s)
{
	memset(s, 0, sizeof(*s));
	pool_stage_begin(&s->p);
	set_rule(s, "allow_private", "1");
	set_rule(s, "check_interval_ms", "100");
	set_rule(s, "min_state_ms", "0");
}

static void watch(struct stand *s, size_t concurrency)
{
	struct schedule_config config = {0};

	assert_int_equal(crowd_new(&s->crowd, s->p.stage.loop, concurrency), 0);
	config.crowd = s->crowd;
	assert_int_equal(schedule_new(&s->schedule, s->p.stage.loop, s->p.pool, &config), 0);
}

static void unwatch(struct stand *s)
{
	crowd_free(s->crowd);
	schedule_free(s->schedule);
	STAGE_UNTIL(&s->p.stage, !store_is_busy(s->p.store));
}

static void end(struct stand *s)
{
	for (size_t i = 0; i < s->count; i++)
		close(s->fds[i]);
	pool_stage_end(&s->p);
}

/* A listener that nobody accepts from: a connection is made, and then there is silence. */
static void listen_at(struct stand *s, char *member, size_t size)
{
	struct net_place place;

	assert_int_equal(net_place_parse(&place, "127.0.0.1:0"), 0);
	s->fds[s->count] = net_listen(&place);
	assert_true(s->fds[s->count] >= 0);
	assert_int_equal(net_local_place(s->fds[s->count], &place), 0);
	snprintf(member, size, "http://127.0.0.1:%d",
		 ntohs(((const struct sockaddr_in *)&place.sa)->sin_port));
	s->count++;
}

static void enter(struct stand *s, enum change change, const char *member)
{
	struct change_item item = {.id = member};

	s->ends = 0;
	assert_int_equal(pool_change(s->p.pool, change, "list:x", &item, 1, on_changed, s), 0);
	STAGE_UNTIL(&s->p.stage, s->ends);
}

static int card(struct stand *s, const char *key)
{
	return atoi(redis_askf(&s->p.redis, "ZCARD %s", key));
}

/* How many checks are due later than in `ms` milliseconds. */
static int due_after(struct stand *s, int64_t ms)
{
	return atoi(redis_askf(&s->p.redis, "ZCOUNT " DUE " (%lld +inf",
			       (long long)(clock_wall_ms() + ms)));
}

static void test_a_candidate_that_can_be_reached_is_admitted(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	listen_at(&s, member, sizeof(member));
	enter(&s, CHANGE_CANDIDATE, member);
	assert_int_equal(card(&s, "pool"), 0);
	watch(&s, 10);
	assert_int_equal(schedule_age_ms(s.schedule), -1);
	STAGE_UNTIL(&s.p.stage, card(&s, "pool") == 1);
	STAGE_UNTIL(&s.p.stage, schedule_age_ms(s.schedule) >= 0);
	unwatch(&s);
	end(&s);
}

static void test_a_member_that_refuses_is_parked(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	set_rule(&s, "fall", "2");
	listen_at(&s, member, sizeof(member));
	close(s.fds[--s.count]);
	enter(&s, CHANGE_ADD, member);
	watch(&s, 10);
	STAGE_UNTIL(&s.p.stage, card(&s, PARKED) == 1);
	assert_int_equal(card(&s, "pool"), 0);
	unwatch(&s);
	end(&s);
}

static void test_no_more_are_taken_than_there_is_room_for(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	set_rule(&s, "check_target", "origin.test:443");
	for (int i = 0; i < 5; i++) {
		listen_at(&s, member, sizeof(member));
		enter(&s, CHANGE_CANDIDATE, member);
	}
	watch(&s, 2);
	STAGE_UNTIL(&s.p.stage, crowd_room(s.crowd) == 0);
	assert_int_equal(card(&s, DUE), 5);
	assert_int_equal(due_after(&s, 2000), 2);
	unwatch(&s);
	end(&s);
}

static void test_who_was_taken_is_given_back_at_the_end(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	set_rule(&s, "check_target", "origin.test:443");
	for (int i = 0; i < 3; i++) {
		listen_at(&s, member, sizeof(member));
		enter(&s, CHANGE_CANDIDATE, member);
	}
	watch(&s, 10);
	STAGE_UNTIL(&s.p.stage, crowd_room(s.crowd) == 7);
	assert_int_equal(due_after(&s, 2000), 3);
	unwatch(&s);
	assert_int_equal(card(&s, DUE), 3);
	assert_int_equal(due_after(&s, 0), 0);
	end(&s);
}

static void test_rules_that_cannot_be_followed_check_nobody_until_they_can(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	set_rule(&s, "check_target", "ftp://origin.test/");
	listen_at(&s, member, sizeof(member));
	enter(&s, CHANGE_CANDIDATE, member);
	watch(&s, 10);
	/* By then the pool was mended, which comes after the first look. */
	STAGE_UNTIL(&s.p.stage, !store_is_busy(s.p.store));
	assert_int_equal(due_after(&s, 2000), 0);
	assert_int_equal(card(&s, "pool"), 0);
	set_rule(&s, "check_target", "");
	STAGE_UNTIL(&s.p.stage, card(&s, "pool") == 1);
	unwatch(&s);
	end(&s);
}

static void test_a_schedule_may_end_while_it_waits_for_the_store(void **state)
{
	struct stand s;
	char member[40];

	(void)state;
	begin(&s);
	listen_at(&s, member, sizeof(member));
	enter(&s, CHANGE_CANDIDATE, member);
	watch(&s, 10);
	STAGE_UNTIL(&s.p.stage, store_is_busy(s.p.store));
	unwatch(&s);
	assert_int_equal(due_after(&s, 1000), 0);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_candidate_that_can_be_reached_is_admitted),
	    cmocka_unit_test(test_a_member_that_refuses_is_parked),
	    cmocka_unit_test(test_no_more_are_taken_than_there_is_room_for),
	    cmocka_unit_test(test_who_was_taken_is_given_back_at_the_end),
	    cmocka_unit_test(test_rules_that_cannot_be_followed_check_nobody_until_they_can),
	    cmocka_unit_test(test_a_schedule_may_end_while_it_waits_for_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
