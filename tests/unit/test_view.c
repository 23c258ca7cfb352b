/* test_view.c - what a pool holds, for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/view.h"
#include "pool_stage.h"

struct outcome {
	int ends, result;
	size_t count;
	char text[4000]; /* "id state score allocations;" for each of the first members */
};

static void on_view(int result, const char *error, struct member_view *views, size_t count,
		    void *arg)
{
	struct outcome *outcome = arg;
	size_t len = 0;

	(void)error;
	outcome->ends++;
	outcome->result = result;
	outcome->count = count;
	for (size_t i = 0; i < count && len < 3000; i++)
		len += (size_t)snprintf(outcome->text + len, sizeof(outcome->text) - len,
					"%s %s %g %g;", views[i].id,
					views[i].is_eligible ? "eligible" : "parked",
					views[i].score, views[i].allocations);
}

static struct outcome view(struct pool_stage *p)
{
	struct outcome outcome = {0};

	assert_int_equal(pool_view(p->pool, on_view, &outcome), 0);
	assert_int_equal(outcome.ends, 0);
	STAGE_UNTIL(&p->stage, outcome.ends);
	return outcome;
}

static void test_an_empty_pool_shows_nothing(void **state)
{
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	pool_stage_begin(&p);
	outcome = view(&p);
	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.count, 0);
	pool_stage_end(&p);
}

static void test_members_stand_in_the_order_in_which_they_would_be_handed_out(void **state)
{
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 5 b 5 a 10 a0 -1.5 z");
	redis_ask(&p.redis, "ZADD {pool}:pool:parked 2 p 1 q");
	redis_ask(&p.redis, "HSET {pool}:pool:offset a 2 z -1.5 p 2 gone 7 b x");
	outcome = view(&p);
	assert_int_equal(outcome.result, 0);
	assert_string_equal(outcome.text, "z eligible -1.5 0;a eligible 5 3;b eligible 5 5;"
					  "a0 eligible 10 10;q parked 1 1;p parked 2 0;");
	pool_stage_end(&p);
}

static void test_a_member_in_both_sets_is_listed_once(void **state)
{
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 5 a");
	redis_ask(&p.redis, "ZADD {pool}:pool:parked 2 a");
	outcome = view(&p);
	assert_string_equal(outcome.text, "a eligible 5 5;");
	pool_stage_end(&p);
}

/* More than a page of ZSCAN, more than a slice of HMGET. */
static void test_a_large_pool_is_shown_whole(void **state)
{
	static char command[60000];
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	pool_stage_begin(&p);
	for (int set = 0; set < 3; set++) {
		size_t len = (size_t)sprintf(command, set == 2 ? "HSET {pool}:pool:offset"
						      : set    ? "ZADD {pool}:pool:parked"
							       : "ZADD pool");

		for (int i = 0; i < 2500; i++)
			len += (size_t)sprintf(command + len, set == 2 ? " m%d.0 %d" : " %d m%d.%d",
					       i, i, set);
		redis_ask(&p.redis, command);
	}
	outcome = view(&p);
	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.count, 5000);
	assert_memory_equal(outcome.text, "m0.0 eligible 0 0;m1.0 eligible 1 0;", 36);
	pool_stage_end(&p);
}

static void test_a_store_s_error_is_told(void **state)
{
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "SET {pool}:pool:parked x");
	redis_ask(&p.redis, "ZADD pool 1 a");
	outcome = view(&p);
	assert_int_equal(outcome.result, REASON_STORE_REFUSED);
	assert_int_equal(outcome.count, 0);
	pool_stage_end(&p);
}

/* --- one member --------------------------------------------------------------------------------------------------- */

struct told {
	int ends, result;
	struct member_story story;
	char proxies[100], admin[100], health[100];
};

static void on_story(int result, const char *error, const struct member_story *story, void *arg)
{
	struct told *told = arg;

	(void)error;
	told->ends++;
	told->result = result;
	told->story = *story;
	snprintf(told->proxies, sizeof(told->proxies), "%s", story->proxies);
	snprintf(told->admin, sizeof(told->admin), "%s", story->admin);
	snprintf(told->health, sizeof(told->health), "%s", story->health);
}

static struct told tell(struct pool_stage *p, const char *id)
{
	struct told told = {0};

	assert_int_equal(pool_story(p->pool, id, on_story, &told), 0);
	STAGE_UNTIL(&p->stage, told.ends);
	return told;
}

static void test_the_story_of_a_member_is_told(void **state)
{
	struct pool_stage p;
	struct told told;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 7.5 a");
	redis_ask(&p.redis, "HSET {pool}:pool:offset a 2");
	redis_ask(&p.redis, "HSET {pool}:pool:proxies a \"sources=x\\ttags=y\"");
	redis_ask(&p.redis, "HSET {pool}:pool:health a state=up");
	redis_ask(&p.redis, "HSET {pool}:pool:secrets a u:p");
	told = tell(&p, "a");
	assert_int_equal(told.result, 0);
	assert_true(told.story.is_known && told.story.has_score && told.story.view.is_eligible);
	assert_true(told.story.view.score == 7.5 && told.story.view.allocations == 5.5);
	assert_true(told.story.has_secret);
	assert_string_equal(told.proxies, "sources=x\ttags=y");
	assert_string_equal(told.admin, "");
	assert_string_equal(told.health, "state=up");
	pool_stage_end(&p);
}

static void test_a_parked_a_recorded_and_an_unknown_member_are_told_apart(void **state)
{
	struct pool_stage p;
	struct told told;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD {pool}:pool:parked 3 parked");
	redis_ask(&p.redis, "HSET {pool}:pool:proxies recorded sources=x");
	told = tell(&p, "parked");
	assert_true(told.story.is_known && told.story.has_score);
	assert_false(told.story.view.is_eligible);
	assert_false(told.story.has_secret);
	told = tell(&p, "recorded");
	assert_true(told.story.is_known);
	assert_false(told.story.has_score);
	told = tell(&p, "unknown");
	assert_int_equal(told.result, 0);
	assert_false(told.story.is_known);
	pool_stage_end(&p);
}

static void test_a_story_that_the_store_cannot_tell_is_an_error(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "SET {pool}:pool:admin x");
	assert_int_equal(tell(&p, "a").result, REASON_STORE_REFUSED);
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_empty_pool_shows_nothing),
	    cmocka_unit_test(test_members_stand_in_the_order_in_which_they_would_be_handed_out),
	    cmocka_unit_test(test_a_member_in_both_sets_is_listed_once),
	    cmocka_unit_test(test_a_large_pool_is_shown_whole),
	    cmocka_unit_test(test_a_store_s_error_is_told),
	    cmocka_unit_test(test_the_story_of_a_member_is_told),
	    cmocka_unit_test(test_a_parked_a_recorded_and_an_unknown_member_are_told_apart),
	    cmocka_unit_test(test_a_story_that_the_store_cannot_tell_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
