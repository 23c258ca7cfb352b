/* test_wait.c - to claim as soon as there is a task, on a real server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "queue/settle.h"
#include "queue/wait.h"
#include "real_redis.h"
#include "stage.h"

#define ROUNDS 1000
#define WAITERS 20

/* Somebody who waits, and what came of it. */
struct waiter {
	struct wait wait;
	struct process *process;
	int ends, result;
	size_t count;
	char payload[64];
	char id[CLAIM_ID_MAX + 1], token[CLAIM_TOKEN_MAX + 1];
	bool is_keen; /* settles and waits again */
	int served;
};

/* What a process has of its own. */
struct process {
	struct store *store;
	struct queue *queue;
	struct waits *waits;
};

struct wait_stage {
	struct stage stage;
	struct real_redis redis;
	struct process a, b;
	struct waiter waiters[WAITERS];
};

static void process_begin(struct wait_stage *f, struct process *process, const char *userinfo)
{
	static const char *const levels[] = {"high", "normal", "low"};
	struct store_config config = {.timeout_ms = 5000, .wait_ms = 100};
	struct queue_config queue = {
	    .name = "jobs", .levels = levels, .level_count = 3, .lease_ms = 60000, .dead_max = 100};
	char url[160], error[200];

	snprintf(url, sizeof(url), "unix://%s%s", userinfo, f->redis.socket);
	assert_int_equal(store_url_parse(&config.url, url, error, sizeof(error)), 0);
	assert_int_equal(store_new(&process->store, f->stage.loop, &config), 0);
	assert_int_equal(
	    queue_new(&process->queue, f->stage.loop, process->store, &queue, error, sizeof(error)),
	    0);
	assert_int_equal(waits_new(&process->waits, f->stage.loop, process->queue, &config), 0);
}

static void process_end(struct process *process)
{
	waits_free(process->waits);
	store_free(process->store);
	queue_free(process->queue);
}

static void begin_with(struct wait_stage *f, const char *userinfo, const char *rules)
{
	memset(f, 0, sizeof(*f));
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&f->stage);
	redis_start(&f->redis, NULL, NULL);
	if (rules)
		redis_askf(&f->redis, "ACL SETUSER bob on >pw ~* &* +@all %s", rules);
	process_begin(f, &f->a, userinfo);
}

static void begin(struct wait_stage *f)
{
	begin_with(f, "", NULL);
	STAGE_UNTIL(&f->stage, waits_mode(f->a.waits) == WATCH_TRACKING);
}

static void end(struct wait_stage *f)
{
	process_end(&f->a);
	process_end(&f->b);
	stage_fini(&f->stage);
	redis_stop(&f->redis);
}

static void settle(struct waiter *waiter, enum settle_verb verb)
{
	struct settlement settlement = {.verb = verb, .id = waiter->id, .token = waiter->token};

	assert_int_equal(queue_settle(waiter->process->queue, &settlement, NULL, NULL), 0);
}

static void on_end(int result, const char *error, struct claim **claims, size_t count,
		   int64_t next_due_ms, void *arg)
{
	struct waiter *waiter = arg;

	(void)error;
	(void)next_due_ms;
	waiter->ends++;
	waiter->result = result;
	waiter->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(waiter->payload, sizeof(waiter->payload), "%s", claims[i]->payload);
		snprintf(waiter->id, sizeof(waiter->id), "%s", claims[i]->id);
		snprintf(waiter->token, sizeof(waiter->token), "%s", claims[i]->token);
		free(claims[i]);
		if (waiter->is_keen)
			settle(waiter, SETTLE_ACK);
	}
	waiter->served += (int)count;
	if (waiter->is_keen)
		wait_begin(waiter->process->waits, &waiter->wait, 1, on_end, waiter);
}

static void wait_for(struct wait_stage *f, struct process *process, int number, size_t count)
{
	struct waiter *waiter = &f->waiters[number];

	*waiter = (struct waiter){.process = process};
	wait_begin(process->waits, &waiter->wait, count, on_end, waiter);
	assert_int_equal(waiter->ends, 0);
}

static void expect(struct wait_stage *f, int number, const char *payload)
{
	struct waiter *waiter = &f->waiters[number];

	STAGE_UNTIL(&f->stage, waiter->ends);
	assert_int_equal(waiter->result, 0);
	assert_string_equal(waiter->payload, payload);
	assert_int_equal(waiter->ends, 1);
}

static void turn_some(struct wait_stage *f)
{
	for (int i = 0; i < 20; i++)
		stage_turn(&f->stage);
}

static long commands(struct wait_stage *f)
{
	const char *at = strstr(redis_ask(&f->redis, "INFO stats"), "total_commands_processed:");

	assert_non_null(at);
	return atol(strchr(at, ':') + 1);
}

/* Turns until the process sleeps: for a while nothing is asked of the server but by this. */
static void until_asleep(struct wait_stage *f)
{
	int64_t end_ms = stage_real_ms() + STAGE_PATIENCE_MS;
	long before;

	do {
		assert_true(stage_real_ms() < end_ms);
		before = commands(f);
		turn_some(f);
	} while (commands(f) != before + 1);
}

/* --- being woken ----------------------------------------------------------------------------------------------------- */

static void test_a_task_that_is_there_is_taken_at_once(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	redis_ask(&f.redis, "LPUSH {jobs}:normal y");
	wait_for(&f, &f.a, 0, 1);
	expect(&f, 0, "y");
	wait_for(&f, &f.a, 0, 1);
	expect(&f, 0, "x");
	end(&f);
}

static void test_whatever_brings_a_task_wakes(void **state)
{
	static const char *const commands[] = {
	    "LPUSH {jobs}:high x",
	    "RPUSH {jobs}:low x",
	    "MULTI\r\nLPUSH {jobs}:normal x\r\nEXEC",
	    "EVAL \"redis.call('LPUSH', KEYS[1], 'x')\" 1 {jobs}:low",
	    "LMOVE {jobs}:other {jobs}:high LEFT RIGHT",
	    "RENAME {jobs}:other {jobs}:low",
	    ("EVAL \"return redis.call('RESTORE', KEYS[1], 0, redis.call('DUMP', KEYS[2]))\" 2 "
	     "{jobs}:normal {jobs}:other"),
	};
	struct wait_stage f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		redis_ask(&f.redis, "DEL {jobs}:other");
		redis_ask(&f.redis, "RPUSH {jobs}:other x");
		wait_for(&f, &f.a, 0, 1);
		until_asleep(&f);
		assert_int_equal(f.waiters[0].ends, 0);
		redis_ask(&f.redis, commands[i]);
		expect(&f, 0, "x");
	}
	end(&f);
}

static void test_a_flushed_server_is_waited_on(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	wait_for(&f, &f.a, 0, 1);
	until_asleep(&f);
	redis_ask(&f.redis, "FLUSHALL");
	until_asleep(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	expect(&f, 0, "x");
	end(&f);
}

static void test_a_delayed_task_is_taken_when_it_is_due(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	wait_for(&f, &f.a, 0, 1);
	until_asleep(&f);
	redis_ask(
	    &f.redis,
	    "EVAL \"local t = redis.call('TIME') redis.call('HSET', KEYS[2], '1', "
	    "'kind=delayed\\tlevel=low\\tfailures=0\\tlost=0\\treleased=0\\tpayload=later') "
	    "redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + 60, '1')\" 2 "
	    "{jobs}:queue:later {jobs}:queue:held");
	assert_int_equal(f.waiters[0].ends, 0);
	expect(&f, 0, "later");
	end(&f);
}

static void test_a_claim_that_nobody_settles_is_taken_when_it_has_ended(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	wait_for(&f, &f.a, 0, 1);
	expect(&f, 0, "x");
	redis_askf(&f.redis,
		   "EVAL \"local t = redis.call('TIME') redis.call('ZADD', KEYS[1], "
		   "t[1] * 1000 + math.floor(t[2] / 1000) + 150, '%s:%s')\" 1 {jobs}:queue:leases",
		   f.waiters[0].id, f.waiters[0].token);
	wait_for(&f, &f.a, 1, 1);
	expect(&f, 1, "x");
	end(&f);
}

static void test_a_paused_level_costs_nothing_and_wakes_when_it_goes_on(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "SADD {jobs}:queue:paused low");
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	wait_for(&f, &f.a, 0, 1);
	until_asleep(&f);
	assert_int_equal(f.waiters[0].ends, 0);
	redis_ask(&f.redis, "SREM {jobs}:queue:paused low");
	expect(&f, 0, "x");
	end(&f);
}

/* Pushes fall anywhere between a claim, its answer, the arming and the sleep. */
static void test_no_task_is_slept_over(void **state)
{
	struct wait_stage f;

	(void)state;
	srand(1);
	begin(&f);
	for (int i = 0; i < ROUNDS; i++) {
		wait_for(&f, &f.a, 0, 1);
		for (int turns = rand() % 8; turns > 0; turns--)
			stage_turn(&f.stage);
		redis_askf(&f.redis, "%s {jobs}:%s %d", rand() % 2 ? "LPUSH" : "RPUSH",
			   rand() % 2 ? "high" : "low", i);
		for (int turns = rand() % 3; turns > 0; turns--)
			stage_turn(&f.stage);
		STAGE_UNTIL(&f.stage, f.waiters[0].ends);
		assert_int_equal(atoi(f.waiters[0].payload), i);
		settle(&f.waiters[0], SETTLE_ACK);
	}
	end(&f);
}

/* --- many who wait --------------------------------------------------------------------------------------------------- */

static void test_tasks_go_to_waiters_in_the_order_of_arrival(void **state)
{
	static const char *const payloads[] = {"0", "1", "2", "3", "4"};
	struct wait_stage f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 5; i++)
		wait_for(&f, &f.a, i, 1);
	until_asleep(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low 0 1 2");
	for (int i = 0; i < 3; i++)
		expect(&f, i, payloads[i]);
	redis_ask(&f.redis, "LPUSH {jobs}:high 3 4");
	for (int i = 3; i < 5; i++)
		expect(&f, i, payloads[i]);
	end(&f);
}

static void test_who_waits_for_many_gets_what_there_is(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low 0 1 2 3");
	wait_for(&f, &f.a, 0, 3);
	wait_for(&f, &f.a, 1, 3);
	expect(&f, 0, "2");
	expect(&f, 1, "3");
	assert_int_equal(f.waiters[0].count, 3);
	assert_int_equal(f.waiters[1].count, 1);
	end(&f);
}

static void test_all_waiters_share_one_claim(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	turn_some(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
	redis_ask(&f.redis, "CONFIG RESETSTAT");
	for (int i = 0; i < WAITERS; i++)
		wait_for(&f, &f.a, i, 1);
	for (int i = 0; i < WAITERS; i++)
		STAGE_UNTIL(&f.stage, f.waiters[i].ends);
	assert_in_range(redis_calls(&f.redis, "evalsha") + redis_calls(&f.redis, "eval"), 1, 2);
	end(&f);
}

static void test_who_cancels_gets_nothing_and_the_next_gets_it(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	wait_for(&f, &f.a, 0, 1);
	stage_turn(&f.stage);
	wait_cancel(&f.waiters[0].wait);
	wait_cancel(&f.waiters[0].wait);
	wait_for(&f, &f.a, 1, 1);
	expect(&f, 1, "x");
	assert_int_equal(f.waiters[0].ends, 0);
	end(&f);
}

/* One task was given back; `claimed` were claimed, it among them. */
static void expect_released(struct wait_stage *f, const char *claimed)
{
	STAGE_UNTIL(&f->stage, !strcmp(redis_ask(&f->redis, "LLEN {jobs}:queue:retry:low"), "1"));
	assert_string_equal(redis_ask(&f->redis, "HGET {jobs}:queue:stats released"), "1");
	assert_string_equal(redis_ask(&f->redis, "HGET {jobs}:queue:stats claimed:low"), claimed);
}

/* The claim is on its way to a server that cannot answer yet. */
static void begin_a_claim(struct wait_stage *f)
{
	begin(f);
	turn_some(f);
	redis_ask(&f->redis, "LPUSH {jobs}:low x");
	kill(f->redis.pid, SIGSTOP);
	wait_for(f, &f->a, 0, 1);
	turn_some(f);
}

static void test_what_nobody_waits_for_any_more_is_given_back(void **state)
{
	struct wait_stage f;

	(void)state;
	begin_a_claim(&f);
	wait_cancel(&f.waiters[0].wait);
	kill(f.redis.pid, SIGCONT);
	expect_released(&f, "1");
	end(&f);
}

static void test_what_comes_when_waiting_has_ended_is_given_back(void **state)
{
	struct wait_stage f;

	(void)state;
	begin_a_claim(&f);
	waits_free(f.a.waits);
	f.a.waits = NULL;
	kill(f.redis.pid, SIGCONT);
	expect_released(&f, "1");
	assert_int_equal(f.waiters[0].ends, 0);
	end(&f);
}

static void end_all(int result, const char *error, struct claim **claims, size_t count,
		    int64_t next_due_ms, void *arg)
{
	struct wait_stage *f = arg;

	(void)result;
	(void)error;
	(void)count;
	(void)next_due_ms;
	free(claims[0]);
	waits_free(f->a.waits);
	f->a.waits = NULL;
}

static void test_a_callback_may_end_the_waiting(void **state)
{
	struct wait_stage f;
	struct wait wait;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "LPUSH {jobs}:low y x");
	wait_begin(f.a.waits, &wait, 1, end_all, &f);
	wait_for(&f, &f.a, 0, 1);
	STAGE_UNTIL(&f.stage, !f.a.waits);
	expect_released(&f, "2");
	end(&f);
}

static void test_a_busy_process_does_not_starve_another(void **state)
{
	struct wait_stage f;
	int pushed = 0;

	(void)state;
	begin(&f);
	process_begin(&f, &f.b, "");
	for (int i = 0; i < WAITERS; i++) {
		f.waiters[i] =
		    (struct waiter){.process = i < WAITERS - 1 ? &f.a : &f.b, .is_keen = true};
		wait_begin(f.waiters[i].process->waits, &f.waiters[i].wait, 1, on_end,
			   &f.waiters[i]);
	}
	while (f.waiters[0].served < 20 || f.waiters[WAITERS - 1].served < 20) {
		assert_true(++pushed < 20000);
		redis_askf(&f.redis, "LPUSH {jobs}:low %d", pushed);
		stage_turn(&f.stage);
	}
	end(&f);
}

/* --- trouble ----------------------------------------------------------------------------------------------------------- */

static void kill_and_push(struct wait_stage *f, const char *command)
{
	wait_for(f, &f->a, 0, 1);
	until_asleep(f);
	redis_ask(&f->redis, command);
	STAGE_UNTIL(&f->stage, waits_mode(f->a.waits) == WATCH_CONNECTING);
	STAGE_UNTIL(&f->stage, waits_mode(f->a.waits) == WATCH_TRACKING);
	until_asleep(f);
	redis_ask(&f->redis, "LPUSH {jobs}:low x");
	expect(f, 0, "x");
}

static void test_connections_that_are_killed_are_made_anew(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	kill_and_push(&f, "CLIENT KILL TYPE pubsub");
	kill_and_push(&f, "CLIENT KILL TYPE normal");
	end(&f);
}

static void test_what_is_pushed_while_a_connection_is_down_is_taken(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 20; i++) {
		wait_for(&f, &f.a, 0, 1);
		until_asleep(&f);
		redis_ask(&f.redis,
			  i % 2 ? "MULTI\r\nCLIENT KILL TYPE pubsub\r\nLPUSH {jobs}:low x\r\nEXEC"
				: "MULTI\r\nLPUSH {jobs}:low x\r\nCLIENT KILL TYPE pubsub\r\nEXEC");
		expect(&f, 0, "x");
	}
	end(&f);
}

static void test_a_server_that_restarts_is_waited_for(void **state)
{
	struct wait_stage f;

	(void)state;
	begin(&f);
	wait_for(&f, &f.a, 0, 1);
	until_asleep(&f);
	redis_restart(&f.redis);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	expect(&f, 0, "x");
	end(&f);
}

static void test_a_refusal_is_told_to_all(void **state)
{
	struct wait_stage f;

	(void)state;
	begin_with(&f, "bob:pw@", "-evalsha -eval");
	wait_for(&f, &f.a, 0, 1);
	wait_for(&f, &f.a, 1, 1);
	for (int i = 0; i < 2; i++) {
		STAGE_UNTIL(&f.stage, f.waiters[i].ends);
		assert_int_equal(f.waiters[i].result, REASON_STORE_REFUSED);
		assert_int_equal(f.waiters[i].count, 0);
	}
	end(&f);
}

static void test_without_tracking_it_asks_from_time_to_time(void **state)
{
	struct wait_stage f;

	(void)state;
	begin_with(&f, "bob:pw@", "-client");
	wait_for(&f, &f.a, 0, 1);
	STAGE_UNTIL(&f.stage, waits_mode(f.a.waits) == WATCH_POLLING);
	for (int i = 0; i < 100; i++)
		stage_turn(&f.stage);
	assert_int_equal(f.waiters[0].ends, 0);
	redis_ask(&f.redis, "LPUSH {jobs}:low x");
	expect(&f, 0, "x");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_task_that_is_there_is_taken_at_once),
	    cmocka_unit_test(test_whatever_brings_a_task_wakes),
	    cmocka_unit_test(test_a_flushed_server_is_waited_on),
	    cmocka_unit_test(test_a_delayed_task_is_taken_when_it_is_due),
	    cmocka_unit_test(test_a_claim_that_nobody_settles_is_taken_when_it_has_ended),
	    cmocka_unit_test(test_a_paused_level_costs_nothing_and_wakes_when_it_goes_on),
	    cmocka_unit_test(test_no_task_is_slept_over),
	    cmocka_unit_test(test_tasks_go_to_waiters_in_the_order_of_arrival),
	    cmocka_unit_test(test_who_waits_for_many_gets_what_there_is),
	    cmocka_unit_test(test_all_waiters_share_one_claim),
	    cmocka_unit_test(test_who_cancels_gets_nothing_and_the_next_gets_it),
	    cmocka_unit_test(test_what_nobody_waits_for_any_more_is_given_back),
	    cmocka_unit_test(test_what_comes_when_waiting_has_ended_is_given_back),
	    cmocka_unit_test(test_a_callback_may_end_the_waiting),
	    cmocka_unit_test(test_a_busy_process_does_not_starve_another),
	    cmocka_unit_test(test_connections_that_are_killed_are_made_anew),
	    cmocka_unit_test(test_what_is_pushed_while_a_connection_is_down_is_taken),
	    cmocka_unit_test(test_a_server_that_restarts_is_waited_for),
	    cmocka_unit_test(test_a_refusal_is_told_to_all),
	    cmocka_unit_test(test_without_tracking_it_asks_from_time_to_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
