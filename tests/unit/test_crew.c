/* test_crew.c - a worker's main loop, on a real server: how many tasks it claims, keeps, loses, settles, and when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "crew_stage.h"

#define CLAIMED "HLEN " Q "claims"
#define STAT(name) "HGET " Q "stats " name
#define LONG_MS 3600000

/* A crew of `concurrency` for `tasks` that are there already. */
static void begin(struct crew_stage *c, int tasks, size_t concurrency)
{
	crew_stage_begin(c, NULL, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_push(c, tasks);
	crew_stage_hire(c, concurrency, false, LONG_MS);
}

static void begin_with_lease(struct crew_stage *c, int64_t lease_ms, int tasks)
{
	struct queue_config config = queue_stage_config();

	config.lease_ms = lease_ms;
	crew_stage_begin(c, &config, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_push(c, tasks);
	crew_stage_hire(c, (size_t)tasks, false, LONG_MS);
	STAGE_UNTIL(&c->q.stage, c->begun == tasks);
}

/* --- claiming ----------------------------------------------------------------------------------------------------- */

static void test_never_more_is_claimed_than_may_be_carried_out(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 10, 3);
	STAGE_UNTIL(&c.q.stage, c.begun == 3);
	for (int i = 0; i < 7; i++) {
		crew_stage_done(&c, i, OUTCOME_DONE);
		STAGE_UNTIL(&c.q.stage, c.begun == 4 + i);
	}
	crew_stage_settle(&c);
	assert_int_equal(c.begun, 10);
	assert_int_equal(c.most, 3);
	assert_int_equal(crew_stage_number(&c, CLAIMED), 3);
	crew_stage_end(&c);
}

static void test_free_places_are_claimed_for_in_one_call(void **state)
{
	struct crew_stage c;
	long calls;

	(void)state;
	begin(&c, 40, 20);
	STAGE_UNTIL(&c.q.stage, c.begun == 20);
	crew_stage_settle(&c);
	calls = redis_calls(&c.q.redis, "evalsha");
	for (int i = 0; i < 20; i++)
		crew_stage_done(&c, i, OUTCOME_DONE);
	STAGE_UNTIL(&c.q.stage, c.begun == 40);
	crew_stage_settle(&c);
	/* One claim for twenty, one settlement of twenty. */
	assert_in_range(redis_calls(&c.q.redis, "evalsha") - calls, 1, 2);
	crew_stage_end(&c);
}

static void test_a_task_pushed_later_is_claimed(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 0, 2);
	STAGE_UNTIL(&c.q.stage, waits_mode(c.waits) == WATCH_TRACKING);
	crew_stage_push(&c, 1);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	assert_string_equal(c.jobs[0]->claim->payload, "0");
	crew_stage_end(&c);
}

static void test_a_paused_crew_claims_nothing_until_it_resumes(void **state)
{
	struct crew_stage c;

	(void)state;
	crew_stage_begin(&c, NULL, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_hire(&c, 2, false, LONG_MS);
	crew_pause(c.crew, clock_ms() + LONG_MS);
	crew_stage_push(&c, 1);
	for (int i = 0; i < 20; i++)
		stage_turn(&c.q.stage);
	assert_int_equal(crew_stage_number(&c, "LLEN {q}:low"), 1);
	crew_resume(c.crew);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	crew_stage_end(&c);
}

static void test_a_pause_ends_by_itself(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 1, 1);
	crew_pause(c.crew, clock_ms() + 20);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	crew_stage_end(&c);
}

static void test_a_job_that_cannot_begin_is_released(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 1, 1);
	c.is_out_of_memory = true;
	STAGE_UNTIL(&c.q.stage, crew_stage_number(&c, STAT("released")) == 1);
	assert_int_equal(crew_in_flight(c.crew), 0);
	assert_int_equal(crew_stage_number(&c, CLAIMED), 0);
	crew_stage_end(&c);
}

/* --- settling ----------------------------------------------------------------------------------------------------- */

static void test_each_outcome_settles_in_its_way(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 4, 4);
	STAGE_UNTIL(&c.q.stage, c.begun == 4);
	crew_pause(c.crew, clock_ms() + LONG_MS);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_stage_done(&c, 1, OUTCOME_RETRY);
	crew_stage_done(&c, 2, OUTCOME_RELEASE);
	crew_stage_done(&c, 3, OUTCOME_DEAD);
	crew_stage_settle(&c);
	assert_string_equal(redis_ask(&c.q.redis, "HMGET " Q "stats acked failed released dead"),
			    "1 1 1 1");
	assert_int_equal(crew_stage_number(&c, CLAIMED), 0);
	assert_non_null(strstr(redis_ask(&c.q.redis, "LINDEX " Q "dead 0"), "reason=why"));
	crew_stage_end(&c);
}

static void test_a_settlement_is_repeated_until_the_store_is_back(void **state)
{
	struct crew_stage c;

	(void)state;
	crew_stage_begin(&c, NULL, 1000);
	crew_stage_push(&c, 1);
	crew_stage_hire(&c, 1, false, LONG_MS);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	kill(c.q.redis.pid, SIGSTOP);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_stop(c.crew);
	crew_stage_settle(&c);
	assert_int_equal(c.ends, 0);
	kill(c.q.redis.pid, SIGCONT);
	STAGE_UNTIL(&c.q.stage, c.ends == 1);
	assert_int_equal(crew_stage_number(&c, STAT("acked")), 1);
	crew_stage_end(&c);
}

static void test_who_lost_its_claim_is_refused_and_ends(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 1, 1);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	/* Somebody else has collected it. */
	redis_ask(&c.q.redis, "DEL " Q "claims " Q "leases");
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_stage_settle(&c);
	assert_int_equal(crew_in_flight(c.crew), 0);
	assert_int_equal(crew_stage_number(&c, STAT("acked")), 0);
	crew_stage_end(&c);
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

static void test_a_claim_outlives_its_lease_while_its_job_lasts(void **state)
{
	struct queue_outcome other;
	struct crew_stage c;
	int64_t began_ms;

	(void)state;
	begin_with_lease(&c, 2000, 1);
	began_ms = stage_real_ms();
	STAGE_UNTIL(&c.q.stage, stage_real_ms() > began_ms + 2500);
	/* Whoever comes now would collect a claim whose lease has ended. */
	queue_stage_claim(&c.q, 1, &other);
	assert_int_equal(other.count, 0);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_stage_settle(&c);
	assert_int_equal(crew_stage_number(&c, STAT("acked")), 1);
	assert_int_equal(c.given_up, 0);
	crew_stage_end(&c);
}

static void test_a_job_whose_claim_is_lost_is_given_up(void **state)
{
	struct crew_stage c;

	(void)state;
	begin_with_lease(&c, 300, 2);
	redis_askf(&c.q.redis, "HDEL " Q "claims %s:%s", c.jobs[0]->claim->id,
		   c.jobs[0]->claim->token);
	redis_askf(&c.q.redis, "ZREM " Q "leases %s:%s", c.jobs[0]->claim->id,
		   c.jobs[0]->claim->token);
	STAGE_UNTIL(&c.q.stage, c.given_up == 1);
	assert_null(c.jobs[0]);
	assert_non_null(c.jobs[1]);
	assert_int_equal(crew_in_flight(c.crew), 1);
	crew_stage_end(&c);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void test_a_drained_queue_ends_the_crew(void **state)
{
	struct crew_stage c;

	(void)state;
	crew_stage_begin(&c, NULL, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_push(&c, 2);
	crew_stage_hire(&c, 1, true, LONG_MS);
	STAGE_UNTIL(&c.q.stage, c.begun == 1);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	STAGE_UNTIL(&c.q.stage, c.begun == 2);
	assert_int_equal(c.ends, 0);
	crew_stage_done(&c, 1, OUTCOME_DONE);
	STAGE_UNTIL(&c.q.stage, c.ends == 1);
	assert_int_equal(crew_stage_number(&c, STAT("acked")), 2);
	crew_stage_end(&c);
}

static void test_what_comes_later_or_is_in_other_hands_is_waited_for(void **state)
{
	struct crew_stage c;
	struct claim *claim;

	(void)state;
	crew_stage_begin(&c, NULL, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_push(&c, 1);
	claim = queue_stage_claim_one(&c.q);
	crew_stage_hire(&c, 1, true, LONG_MS);
	for (int64_t end = stage_real_ms() + 500; stage_real_ms() < end;)
		stage_turn(&c.q.stage);
	assert_int_equal(c.ends, 0);
	assert_int_equal(queue_stage_settle(&c.q, claim, SETTLE_ACK, 0, NULL), 0);
	STAGE_UNTIL(&c.q.stage, c.ends == 1);
	free(claim);
	crew_stage_end(&c);
}

static void test_a_stopped_crew_lets_its_jobs_end(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 3, 2);
	STAGE_UNTIL(&c.q.stage, c.begun == 2);
	crew_stop(c.crew);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_stage_settle(&c);
	assert_int_equal(c.ends, 0);
	crew_stage_done(&c, 1, OUTCOME_DONE);
	STAGE_UNTIL(&c.q.stage, c.ends == 1);
	assert_int_equal(c.begun, 2);
	assert_int_equal(crew_stage_number(&c, "LLEN {q}:low"), 1);
	crew_stage_end(&c);
}

static void test_the_grace_period_ends_in_release(void **state)
{
	struct crew_stage c;

	(void)state;
	crew_stage_begin(&c, NULL, QUEUE_STAGE_PATIENCE_MS);
	crew_stage_push(&c, 2);
	crew_stage_hire(&c, 2, false, 20);
	STAGE_UNTIL(&c.q.stage, c.begun == 2);
	crew_stop(c.crew);
	STAGE_UNTIL(&c.q.stage, c.ends == 1);
	assert_int_equal(c.given_up, 2);
	assert_int_equal(crew_stage_number(&c, STAT("released")), 2);
	assert_int_equal(crew_stage_number(&c, CLAIMED), 0);
	crew_stage_end(&c);
}

static void test_a_crew_that_goes_gives_back_what_it_has(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 2, 2);
	STAGE_UNTIL(&c.q.stage, c.begun == 2);
	crew_free(c.crew);
	c.crew = NULL;
	crew_stage_settle(&c);
	assert_int_equal(c.given_up, 2);
	assert_int_equal(crew_stage_number(&c, STAT("released")), 2);
	crew_stage_end(&c);
}

static void test_a_crew_may_go_before_its_answers_come(void **state)
{
	struct crew_stage c;

	(void)state;
	begin(&c, 2, 2);
	STAGE_UNTIL(&c.q.stage, c.begun == 2);
	crew_stage_done(&c, 0, OUTCOME_DONE);
	crew_free(c.crew);
	c.crew = NULL;
	crew_stage_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_never_more_is_claimed_than_may_be_carried_out),
	    cmocka_unit_test(test_free_places_are_claimed_for_in_one_call),
	    cmocka_unit_test(test_a_task_pushed_later_is_claimed),
	    cmocka_unit_test(test_a_paused_crew_claims_nothing_until_it_resumes),
	    cmocka_unit_test(test_a_pause_ends_by_itself),
	    cmocka_unit_test(test_a_job_that_cannot_begin_is_released),
	    cmocka_unit_test(test_each_outcome_settles_in_its_way),
	    cmocka_unit_test(test_a_settlement_is_repeated_until_the_store_is_back),
	    cmocka_unit_test(test_who_lost_its_claim_is_refused_and_ends),
	    cmocka_unit_test(test_a_claim_outlives_its_lease_while_its_job_lasts),
	    cmocka_unit_test(test_a_job_whose_claim_is_lost_is_given_up),
	    cmocka_unit_test(test_a_drained_queue_ends_the_crew),
	    cmocka_unit_test(test_what_comes_later_or_is_in_other_hands_is_waited_for),
	    cmocka_unit_test(test_a_stopped_crew_lets_its_jobs_end),
	    cmocka_unit_test(test_the_grace_period_ends_in_release),
	    cmocka_unit_test(test_a_crew_that_goes_gives_back_what_it_has),
	    cmocka_unit_test(test_a_crew_may_go_before_its_answers_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
