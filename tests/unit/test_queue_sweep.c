/* test_queue_sweep.c - the janitor of a queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/sweep.h"
#include "queue_stage.h"

struct sweep_stage {
	struct queue_stage q;
	struct queue_sweep *sweep;
};

static void begin(struct sweep_stage *s)
{
	memset(s, 0, sizeof(*s));
	queue_stage_begin(&s->q, NULL);
	redis_ask(&s->q.redis, "CONFIG RESETSTAT");
}

static void start(struct sweep_stage *s)
{
	assert_int_equal(queue_sweep_new(&s->sweep, s->q.stage.loop, s->q.queue), 0);
}

static void end(struct sweep_stage *s)
{
	queue_stage_cancel(&s->q);
	queue_sweep_free(s->sweep);
	queue_stage_end(&s->q);
}

/* Turns until Redis answers so. */
static void await(struct sweep_stage *s, const char *command, const char *answer)
{
	STAGE_UNTIL(&s->q.stage, !strcmp(redis_ask(&s->q.redis, command), answer));
}

/* Puts a delayed task into low, due now. */
static void delay(struct sweep_stage *s, const char *payload)
{
	const struct push delayed = {.level = "low", .when_ms = 3600000};
	const struct push_item item = {.payload = WORD(payload)};
	struct queue_outcome outcome = {0};

	assert_int_equal(queue_push(s->q.queue, &delayed, &item, 1, queue_stage_on_push, &outcome),
			 0);
	queue_stage_expect(&s->q, &outcome, 0);
	queue_stage_is_due(&s->q);
}

static void test_due_tasks_go_raw_to_their_list(void **state)
{
	struct sweep_stage s;

	(void)state;
	begin(&s);
	delay(&s, "a");
	start(&s);
	await(&s, "LRANGE {q}:low 0 -1", "a");
	assert_string_equal(redis_ask(&s.q.redis, "EXISTS " Q "later " Q "held"), "0");
	end(&s);
}

static void test_claims_of_the_dead_come_back(void **state)
{
	struct sweep_stage s;
	struct claim *lost, *again;

	(void)state;
	begin(&s);
	redis_ask(&s.q.redis, "LPUSH {q}:low a");
	lost = queue_stage_claim_one(&s.q);
	redis_askf(&s.q.redis, "ZADD " Q "leases 1 %s:%s", lost->id, lost->token);
	start(&s);
	await(&s, "LLEN " Q "retry:low", "1");
	again = queue_stage_claim_one(&s.q);
	assert_string_equal(again->id, lost->id);
	assert_int_equal(again->lost, 1);
	free(again);
	free(lost);
	end(&s);
}

static void test_a_claim_that_lives_is_left_alone(void **state)
{
	struct sweep_stage s;
	struct claim *claim;

	(void)state;
	begin(&s);
	redis_ask(&s.q.redis, "LPUSH {q}:low a");
	claim = queue_stage_claim_one(&s.q);
	delay(&s, "b");
	start(&s);
	await(&s, "LRANGE {q}:low 0 -1", "b");
	assert_string_equal(redis_ask(&s.q.redis, "HLEN " Q "claims"), "1");
	assert_int_equal(queue_stage_settle(&s.q, claim, SETTLE_ACK, 0, NULL), 0);
	free(claim);
	end(&s);
}

static void test_a_task_that_loses_claim_after_claim_is_a_dead_letter(void **state)
{
	struct queue_config config = queue_stage_config();
	struct sweep_stage s = {0};
	struct claim *claim;

	(void)state;
	config.lost_max = 1;
	queue_stage_begin(&s.q, &config);
	redis_ask(&s.q.redis, "LPUSH {q}:low poison");
	claim = queue_stage_claim_one(&s.q);
	redis_askf(&s.q.redis, "ZADD " Q "leases 1 %s:%s", claim->id, claim->token);
	start(&s);
	await(&s, "LLEN " Q "dead", "1");
	assert_non_null(strstr(redis_ask(&s.q.redis, "LINDEX " Q "dead 0"), "reason=claims-lost"));
	free(claim);
	end(&s);
}

/* One call promotes 256: all are there long before the second call by the clock would be due. */
static void test_a_full_call_is_followed_by_another_at_once(void **state)
{
	struct sweep_stage s;
	int64_t frozen_ms;

	(void)state;
	begin(&s);
	for (int i = 1; i <= 600; i++) {
		redis_askf(&s.q.redis, "HSET " Q "held %d \"kind=delayed\\tlevel=low\\tpayload=x\"",
			   i);
		redis_askf(&s.q.redis, "ZADD " Q "later 1 %d", i);
	}
	frozen_ms = clock_ms();
	clock_set(frozen_ms);
	start(&s);
	await(&s, "LLEN {q}:low", "600");
	assert_int_equal(clock_ms(), frozen_ms);
	clock_set(-1);
	end(&s);
}

static void test_an_idle_queue_is_looked_at_once_a_period(void **state)
{
	struct sweep_stage s;
	int64_t frozen_ms;

	(void)state;
	begin(&s);
	frozen_ms = clock_ms();
	clock_set(frozen_ms);
	start(&s);
	await(&s, "EXISTS " Q "stats", "1");
	for (int i = 0; i < 50; i++)
		stage_turn(&s.q.stage);
	assert_true(redis_calls(&s.q.redis, "evalsha") <= 1);
	assert_int_equal(redis_calls(&s.q.redis, "eval"), 1);
	clock_set(frozen_ms + 1000);
	STAGE_UNTIL(&s.q.stage, redis_calls(&s.q.redis, "evalsha") == 2);
	clock_set(-1);
	end(&s);
}

/* The answer says that something is due in 200 ms: then, and not before. */
static void test_the_next_due_time_is_waited_for(void **state)
{
	struct queue_stage q = {0};
	struct queue_sweep *sweep;
	int64_t frozen_ms;

	(void)state;
	queue_stage_play(&q);
	frozen_ms = clock_ms();
	clock_set(frozen_ms);
	assert_int_equal(queue_sweep_new(&sweep, q.stage.loop, q.queue), 0);
	peer_expect(&q.peer, "$3\r\n256\r\n");
	peer_forget(&q.peer);
	peer_say(&q.peer, "*5\r\n:1000\r\n:1200\r\n:5000\r\n:0\r\n:0\r\n");
	STAGE_UNTIL(&q.stage, !store_is_busy(q.store));
	clock_set(frozen_ms + 199);
	for (int i = 0; i < 50; i++)
		stage_turn(&q.stage);
	peer_listen_up(&q.peer);
	assert_int_equal(peer_count(&q.peer, "EVALSHA"), 0);
	clock_set(frozen_ms + 201);
	peer_expect(&q.peer, "EVALSHA");
	clock_set(-1);
	queue_stage_cancel(&q);
	queue_sweep_free(sweep);
	queue_stage_end(&q);
}

static void test_it_goes_on_after_the_store_was_lost(void **state)
{
	struct queue_stage q = {0};
	struct queue_sweep *sweep;

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_sweep_new(&sweep, q.stage.loop, q.queue), 0);
	peer_expect(&q.peer, "EVALSHA");
	peer_reset(&q.peer);
	queue_stage_greet(&q);
	peer_expect(&q.peer, "EVALSHA");
	queue_stage_cancel(&q);
	queue_sweep_free(sweep);
	queue_stage_end(&q);
}

static void test_it_goes_on_when_the_store_is_full(void **state)
{
	struct sweep_stage s;

	(void)state;
	begin(&s);
	delay(&s, "a");
	redis_ask(&s.q.redis, "CONFIG SET maxmemory 1");
	start(&s);
	await(&s, "LRANGE {q}:low 0 -1", "a");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_due_tasks_go_raw_to_their_list),
	    cmocka_unit_test(test_claims_of_the_dead_come_back),
	    cmocka_unit_test(test_a_claim_that_lives_is_left_alone),
	    cmocka_unit_test(test_a_task_that_loses_claim_after_claim_is_a_dead_letter),
	    cmocka_unit_test(test_a_full_call_is_followed_by_another_at_once),
	    cmocka_unit_test(test_an_idle_queue_is_looked_at_once_a_period),
	    cmocka_unit_test(test_the_next_due_time_is_waited_for),
	    cmocka_unit_test(test_it_goes_on_after_the_store_was_lost),
	    cmocka_unit_test(test_it_goes_on_when_the_store_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
