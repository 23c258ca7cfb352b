/* test_report.c - verdicts on their way to the store: of probes, and of clients' requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pool/change.h"
#include "pool/report.h"
#include "pool_stage.h"

#define A "http://192.0.2.1:80"
#define B "http://192.0.2.2:80"
#define HEALTH "{pool}:pool:health"
#define STREAKS "{pool}:pool:streaks"
#define FAILING "{pool}:pool:failing"

struct outcome {
	int ends, result;
	size_t count;
	struct report_result results[REPORT_MAX];
};

static void on_reported(int result, const char *error, const struct report_result *results,
			size_t count, void *arg)
{
	struct outcome *outcome = arg;

	(void)error;
	outcome->ends++;
	outcome->result = result;
	outcome->count = count;
	memcpy(outcome->results, results, count * sizeof(*results));
}

static struct outcome report(struct pool_stage *p, const struct probe_report *reports, size_t count)
{
	struct outcome outcome = {0};

	assert_int_equal(pool_report_probes(p->pool, reports, count, on_reported, &outcome), 0);
	assert_int_equal(outcome.ends, 0);
	STAGE_UNTIL(&p->stage, outcome.ends);
	return outcome;
}

static struct report_result report_one(struct pool_stage *p, const char *member, int reason)
{
	struct outcome outcome =
	    report(p, &(struct probe_report){.member = member, .reason = reason}, 1);

	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.count, 1);
	return outcome.results[0];
}

/* A and B are eligible, and one failure parks. */
static void begin(struct pool_stage *p)
{
	pool_stage_begin(p);
	redis_ask(&p->redis, "ZADD pool 1 " A " 1 " B);
	redis_ask(&p->redis, "HSET " HEALTH " " A " state=up " B " state=up");
	redis_ask(&p->redis, "HSET {pool}:pool:rules fall 1 rise 1 min_state_ms 0");
}

static void test_a_probe_that_fails_parks_and_one_that_passes_brings_back(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	assert_int_equal(report_one(&p, A, REASON_PROXY_REFUSED).placed, PLACED_LEFT);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1"), B);
	assert_int_equal(report_one(&p, A, REASON_OK).placed, PLACED_JOINED);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "1");
	pool_stage_end(&p);
}

static void test_several_are_told_in_their_order(void **state)
{
	const struct probe_report reports[] = {{.member = "http://gone.example:80"},
					       {.member = A},
					       {.member = B, .reason = REASON_PROXY_AUTH}};
	struct outcome outcome;
	struct pool_stage p;

	(void)state;
	begin(&p);
	outcome = report(&p, reports, 3);
	assert_int_equal(outcome.count, 3);
	assert_int_equal(outcome.results[0].placed, PLACED_UNKNOWN);
	assert_int_equal(outcome.results[1].placed, PLACED_ELIGIBLE);
	assert_int_equal(outcome.results[2].placed, PLACED_LEFT);
	assert_non_null(strstr(redis_ask(&p.redis, "HGET " HEALTH " " B), "auth=failed"));
	pool_stage_end(&p);
}

static void test_a_guarded_member_is_held(void **state)
{
	struct pool_stage p;
	struct report_result second;

	(void)state;
	begin(&p);
	assert_int_equal(report_one(&p, A, REASON_PROXY_REFUSED).placed, PLACED_LEFT);
	second = report_one(&p, B, REASON_PROXY_REFUSED);
	assert_true(second.is_held);
	assert_int_equal(second.placed, PLACED_ELIGIBLE);
	assert_string_equal(redis_ask(&p.redis, "EXISTS {pool}:pool:alarm"), "1");
	pool_stage_end(&p);
}

static void test_what_a_pass_showed_is_kept(void **state)
{
	const struct probe_report pass = {
	    .member = A, .latency_ms = 42, .facts = "exit=192.0.2.9\tcountry=de"};
	struct pool_stage p;
	const char *health;

	(void)state;
	begin(&p);
	report(&p, &pass, 1);
	health = redis_ask(&p.redis, "HGET " HEALTH " " A);
	assert_non_null(strstr(health, "exit=192.0.2.9\tcountry=de"));
	assert_non_null(strstr(health, "latency=42"));
	pool_stage_end(&p);
}

static void test_an_inconclusive_probe_only_sets_the_next_check(void **state)
{
	const struct probe_report unclear = {
	    .member = A, .reason = REASON_TARGET_TIMEOUT, .is_inconclusive = true};
	struct pool_stage p;

	(void)state;
	begin(&p);
	assert_int_equal(report(&p, &unclear, 1).results[0].placed, PLACED_ELIGIBLE);
	assert_string_equal(redis_ask(&p.redis, "EXISTS " STREAKS), "0");
	assert_string_equal(redis_ask(&p.redis, "ZCARD {pool}:pool:due"), "1");
	pool_stage_end(&p);
}

static void test_an_attempt_that_began_before_the_last_failure_does_not_count(void **state)
{
	const struct probe_report old = {
	    .member = A, .reason = REASON_PROXY_RESET, .age_ms = 60000};
	struct pool_stage p;

	(void)state;
	begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules fall 2");
	report_one(&p, A, REASON_PROXY_RESET);
	assert_int_equal(report(&p, &old, 1).results[0].placed, PLACED_ELIGIBLE);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "-1");
	pool_stage_end(&p);
}

static void test_too_few_and_too_many_are_refused(void **state)
{
	struct probe_report reports[REPORT_MAX + 1] = {{.member = A}};
	struct pool_stage p;

	(void)state;
	begin(&p);
	assert_int_equal(pool_report_probes(p.pool, reports, 0, on_reported, NULL), -EINVAL);
	assert_int_equal(pool_report_probes(p.pool, reports, REPORT_MAX + 1, on_reported, NULL),
			 -EINVAL);
	pool_stage_end(&p);
}

static void test_a_store_s_error_is_told(void **state)
{
	struct pool_stage p;
	struct outcome outcome;

	(void)state;
	begin(&p);
	redis_ask(&p.redis, "SET " STREAKS " x");
	outcome = report(&p, &(struct probe_report){.member = A}, 1);
	assert_int_equal(outcome.count, 0);
	assert_int_not_equal(outcome.result, 0);
	pool_stage_end(&p);
}

/* --- of clients' requests ----------------------------------------------------------------------------------------- */

static struct member member_a = {.id = (char[]){A}, .id_len = sizeof(A) - 1};

static void idle(struct pool_stage *p)
{
	stage_turn(&p->stage);
	STAGE_UNTIL(&p->stage, !store_is_busy(p->store));
}

static void test_a_request_s_failure_is_reported_and_its_target_s_is_not(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	pool_report(p.pool, &member_a, REASON_TARGET_REFUSED, clock_ms());
	pool_report(p.pool, &member_a, REASON_CLIENT_GONE, clock_ms());
	idle(&p);
	assert_int_equal(redis_calls(&p.redis, "evalsha"), 0);
	pool_report(p.pool, &member_a, REASON_PROXY_SILENT, clock_ms());
	STAGE_UNTIL(&p.stage, !strcmp(redis_ask(&p.redis, "ZRANGE pool 0 -1"), B));
	assert_string_equal(redis_ask(&p.redis, "EXISTS {pool}:pool:due"), "0");
	pool_stage_end(&p);
}

static void test_two_hundred_failures_of_a_turn_are_one_report(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules fall 3");
	for (int i = 0; i < 200; i++)
		pool_report(p.pool, &member_a, REASON_PROXY_SILENT, clock_ms() - 1);
	idle(&p);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "-1");
	/* EVALSHA, and EVAL since the server did not know the script. */
	assert_int_equal(redis_calls(&p.redis, "evalsha") + redis_calls(&p.redis, "eval"), 2);
	pool_stage_end(&p);
}

static void test_passes_are_reported_only_of_members_that_are_failing(void **state)
{
	struct pool_stage p;

	(void)state;
	begin(&p);
	pool_report(p.pool, &member_a, REASON_OK, clock_ms());
	idle(&p);
	assert_string_equal(redis_ask(&p.redis, "EXISTS " STREAKS), "0");
	redis_ask(&p.redis, "HSET {pool}:pool:rules fall 3");
	pool_report(p.pool, &member_a, REASON_PROXY_SILENT, clock_ms());
	idle(&p);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "-1");
	pool_report(p.pool, &member_a, REASON_OK, clock_ms());
	idle(&p);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "1");
	pool_stage_end(&p);
}

static void test_who_is_failing_is_asked_once_a_second(void **state)
{
	struct pool_stage p;
	int64_t now = clock_ms();

	(void)state;
	begin(&p);
	clock_set(now);
	for (int i = 0; i < 5; i++)
		pool_report(p.pool, &member_a, REASON_OK, now);
	idle(&p);
	assert_int_equal(redis_calls(&p.redis, "zrange"), 1);
	redis_ask(&p.redis, "HSET " STREAKS " " A " -2");
	redis_ask(&p.redis, "ZADD " FAILING " 1 " A);
	clock_set(now + 999);
	pool_report(p.pool, &member_a, REASON_OK, now);
	assert_int_equal(redis_calls(&p.redis, "zrange"), 1);
	clock_set(now + 1000);
	pool_report(p.pool, &member_a, REASON_OK, now);
	idle(&p);
	assert_int_equal(redis_calls(&p.redis, "zrange"), 2);
	pool_report(p.pool, &member_a, REASON_OK, now);
	idle(&p);
	assert_string_equal(redis_ask(&p.redis, "HGET " STREAKS " " A), "1");
	clock_set(-1);
	pool_stage_end(&p);
}

static void test_one_call_is_in_flight_and_the_table_is_bounded(void **state)
{
	struct pool_stage p;
	char id[40];

	(void)state;
	pool_stage_play(&p);
	for (int i = 0; i < 3000; i++) {
		struct member member = {.id = id, .id_len = (size_t)sprintf(id, "m%d:80", i)};

		pool_report(p.pool, &member, REASON_PROXY_SILENT, clock_ms());
	}
	peer_expect(&p.peer, "m63:80");
	stage_turn(&p.stage);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 1);
	assert_int_equal(peer_count(&p.peer, "m64:80"), 0);
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
	begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &result), 0);
	STAGE_UNTIL(&p.stage, result);
	pool_report(p.pool, &member_a, REASON_PROXY_SILENT, clock_ms());
	idle(&p);
	assert_int_equal(
	    pool_report_probes(p.pool, &(struct probe_report){.member = A}, 1, on_reported, NULL),
	    -EPERM);
	assert_string_equal(redis_ask(&p.redis, "EXISTS " STREAKS), "0");
	pool_stage_end(&p);
}

static void test_a_pool_may_end_before_its_reports(void **state)
{
	struct outcome outcome = {0};
	struct pool_stage p;

	(void)state;
	begin(&p);
	pool_report(p.pool, &member_a, REASON_PROXY_SILENT, clock_ms());
	assert_int_equal(pool_report_probes(p.pool, &(struct probe_report){.member = A}, 1,
					    on_reported, &outcome),
			 0);
	pool_stage_end(&p);
	assert_int_equal(outcome.result, -ECANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_probe_that_fails_parks_and_one_that_passes_brings_back),
	    cmocka_unit_test(test_several_are_told_in_their_order),
	    cmocka_unit_test(test_a_guarded_member_is_held),
	    cmocka_unit_test(test_what_a_pass_showed_is_kept),
	    cmocka_unit_test(test_an_inconclusive_probe_only_sets_the_next_check),
	    cmocka_unit_test(test_an_attempt_that_began_before_the_last_failure_does_not_count),
	    cmocka_unit_test(test_too_few_and_too_many_are_refused),
	    cmocka_unit_test(test_a_store_s_error_is_told),
	    cmocka_unit_test(test_a_request_s_failure_is_reported_and_its_target_s_is_not),
	    cmocka_unit_test(test_two_hundred_failures_of_a_turn_are_one_report),
	    cmocka_unit_test(test_passes_are_reported_only_of_members_that_are_failing),
	    cmocka_unit_test(test_who_is_failing_is_asked_once_a_second),
	    cmocka_unit_test(test_one_call_is_in_flight_and_the_table_is_bounded),
	    cmocka_unit_test(test_a_newer_pool_gets_no_report),
	    cmocka_unit_test(test_a_pool_may_end_before_its_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
