/* test_queue_settle.c - how claims end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue_stage.h"

#define LATER "ZRANGE " Q "later 0 0 WITHSCORES"

/* A claim of the only task, which stands in low. */
static struct claim *begin(struct queue_stage *q, const struct queue_config *config)
{
	queue_stage_begin(q, config);
	redis_ask(&q->redis, "LPUSH {q}:low a");
	return queue_stage_claim_one(q);
}

static void end(struct queue_stage *q, struct claim *claim)
{
	free(claim);
	queue_stage_end(q);
}

static int64_t redis_now(struct queue_stage *q)
{
	return atoll(redis_ask(&q->redis, "TIME")) * 1000;
}

static void test_an_acknowledged_task_is_gone(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_ACK, 0, NULL), 0);
	assert_string_equal(redis_ask(&q.redis, "EXISTS {q}:low " Q "claims " Q "leases " Q "held"),
			    "0");
	end(&q, claim);
}

static void test_ones_own_repeat_is_told_done(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_ACK, 0, NULL), 0);
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_ACK, 0, NULL), 0);
	assert_string_equal(redis_ask(&q.redis, "HGET " Q "stats acked"), "1");
	end(&q, claim);
}

static void test_a_zombie_is_told_stale_and_changes_nothing(void **state)
{
	static const enum settle_verb verbs[] = {SETTLE_ACK, SETTLE_NACK, SETTLE_DEAD,
						 SETTLE_RELEASE, SETTLE_EXTEND};
	struct queue_stage q = {0};
	struct claim *zombie = begin(&q, NULL), *holder;

	(void)state;
	redis_askf(&q.redis, "ZADD " Q "leases 1 %s:%s", zombie->id, zombie->token);
	holder = queue_stage_claim_one(&q);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		assert_int_equal(queue_stage_settle(&q, zombie, verbs[i], 1000, "x"),
				 REASON_CLAIM_STALE);
	assert_int_equal(queue_stage_settle(&q, holder, SETTLE_ACK, 0, NULL), 0);
	free(holder);
	end(&q, zombie);
}

static void test_a_failure_waits_for_the_delay_that_is_given(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);
	int64_t now = redis_now(&q);

	(void)state;
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_NACK, 77000, "why"), 0);
	assert_in_range(atoll(strchr(redis_ask(&q.redis, LATER), ' ') + 1), now + 77000,
			now + 107000);
	end(&q, claim);
}

/* Doubled for each failure before, at most 10 s: anything from half of it to the whole. */
static void test_a_failure_waits_longer_each_time(void **state)
{
	static const int64_t whole_ms[] = {1000, 2000, 4000, 8000, 10000, 10000};
	struct queue_config config = queue_stage_config();
	struct queue_stage q = {0};
	struct claim *claim;

	(void)state;
	config.failures_max = 0;
	claim = begin(&q, &config);
	for (size_t i = 0; i < sizeof(whole_ms) / sizeof(*whole_ms); i++) {
		const int64_t before = redis_now(&q);
		int64_t due;

		assert_int_equal(claim->failures, (int64_t)i);
		assert_int_equal(queue_stage_settle(&q, claim, SETTLE_NACK, -1, NULL), 0);
		due = atoll(strchr(redis_ask(&q.redis, LATER), ' ') + 1);
		assert_true(due >= before + whole_ms[i] / 2);
		assert_true(due <= redis_now(&q) + 1000 + whole_ms[i]);
		redis_askf(&q.redis, "ZADD " Q "later 1 %s", claim->id);
		free(claim);
		claim = queue_stage_claim_one(&q);
	}
	end(&q, claim);
}

/* Of a hundred tasks that failed together, with a second of backoff, some come in the earlier quarter and some in the later. */
static void test_failures_do_not_come_back_together(void **state)
{
	struct queue_outcome outcome, ends[100] = {0};
	struct queue_stage q = {0};
	int64_t first, last;

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 100; i++)
		redis_ask(&q.redis, "LPUSH {q}:low a");
	queue_stage_claim(&q, 100, &outcome);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(
		    queue_settle(q.queue,
				 &(struct settlement){.verb = SETTLE_NACK,
						      .id = outcome.claims[i]->id,
						      .token = outcome.claims[i]->token,
						      .ms = -1},
				 queue_stage_on_end, &ends[i]),
		    0);
	queue_stage_expect(&q, &ends[99], 0);
	first = atoll(strchr(redis_ask(&q.redis, LATER), ' ') + 1);
	last = atoll(strchr(redis_ask(&q.redis, "ZRANGE " Q "later -1 -1 WITHSCORES"), ' ') + 1);
	assert_in_range(last - first, 250, 500);
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_too_many_failures_make_a_dead_letter(void **state)
{
	struct queue_config config = queue_stage_config();
	struct queue_stage q = {0};
	struct claim *claim;
	const char *dead;

	(void)state;
	config.failures_max = 1;
	claim = begin(&q, &config);
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_NACK, 0, "bad\tpayload=\nx"),
			 REASON_CLAIM_DEAD);
	dead = redis_ask(&q.redis, "LRANGE " Q "dead 0 -1");
	assert_non_null(strstr(dead, "\treason=bad payload= x\tlevel=low\t"));
	assert_non_null(strstr(dead, "\tpayload=a"));
	end(&q, claim);
}

static void test_a_dead_letter_is_made_at_once(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_DEAD, 0, "poison"),
			 REASON_CLAIM_DEAD);
	assert_string_equal(redis_ask(&q.redis, "LLEN " Q "dead"), "1");
	end(&q, claim);
}

static void test_a_released_task_comes_back_first(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL), *again;

	(void)state;
	redis_ask(&q.redis, "RPUSH {q}:low urgent");
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_RELEASE, 0, NULL), 0);
	again = queue_stage_claim_one(&q);
	assert_string_equal(again->id, claim->id);
	assert_int_equal(again->released, 1);
	assert_int_equal(again->failures, 0);
	free(again);
	end(&q, claim);
}

static void test_a_claim_is_extended_and_never_shortened(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_EXTEND, 1, NULL), 0);
	assert_true(atoll(redis_askf(&q.redis, "ZSCORE " Q "leases %s:%s", claim->id,
				     claim->token)) >= claim->expires_ms);
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_EXTEND, 600000, NULL), 0);
	assert_true(atoll(redis_askf(&q.redis, "ZSCORE " Q "leases %s:%s", claim->id,
				     claim->token)) >= claim->expires_ms + 540000);
	end(&q, claim);
}

/* 0: by the lease of the queue. */
static void test_a_claim_is_extended_by_the_queues_lease(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);
	int64_t now = redis_now(&q);

	(void)state;
	redis_askf(&q.redis, "ZADD " Q "leases %lld %s:%s", (long long)now + 100, claim->id,
		   claim->token);
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_EXTEND, 0, NULL), 0);
	assert_in_range(
	    atoll(redis_askf(&q.redis, "ZSCORE " Q "leases %s:%s", claim->id, claim->token)),
	    now + 60000, now + 90000);
	end(&q, claim);
}

static void test_settlements_of_one_turn_are_one_call(void **state)
{
	struct queue_outcome outcome, ends[100] = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 100; i++)
		redis_ask(&q.redis, "LPUSH {q}:low a");
	queue_stage_claim(&q, 100, &outcome);
	redis_ask(&q.redis, "CONFIG RESETSTAT");
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(
		    queue_settle(q.queue,
				 &(struct settlement){.verb = SETTLE_ACK,
						      .id = outcome.claims[i]->id,
						      .token = outcome.claims[i]->token},
				 queue_stage_on_end, &ends[i]),
		    0);
	for (size_t i = 0; i < 100; i++)
		queue_stage_expect(&q, &ends[i], 0);
	assert_true(redis_calls(&q.redis, "evalsha") + redis_calls(&q.redis, "eval") <= 2);
	assert_string_equal(redis_ask(&q.redis, "HGET " Q "stats acked"), "100");
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_more_than_one_call_holds_are_several(void **state)
{
	struct queue_outcome outcome, ends[200] = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 200; i++)
		redis_ask(&q.redis, "LPUSH {q}:low a");
	queue_stage_claim(&q, 200, &outcome);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(
		    queue_settle(q.queue,
				 &(struct settlement){.verb = SETTLE_ACK,
						      .id = outcome.claims[i]->id,
						      .token = outcome.claims[i]->token},
				 queue_stage_on_end, &ends[i]),
		    0);
	for (size_t i = 0; i < 200; i++)
		queue_stage_expect(&q, &ends[i], 0);
	assert_string_equal(redis_ask(&q.redis, "HGET " Q "stats acked"), "200");
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_each_is_told_its_own_outcome(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);
	struct queue_outcome ends[2] = {0};
	const struct settlement bad = {.verb = SETTLE_ACK, .id = "99", .token = "1-00000000"},
				good = {.verb = SETTLE_ACK, .id = claim->id, .token = claim->token};

	(void)state;
	assert_int_equal(queue_settle(q.queue, &bad, queue_stage_on_end, &ends[0]), 0);
	assert_int_equal(queue_settle(q.queue, &good, queue_stage_on_end, &ends[1]), 0);
	queue_stage_expect(&q, &ends[0], REASON_CLAIM_STALE);
	queue_stage_expect(&q, &ends[1], 0);
	end(&q, claim);
}

static void test_what_is_no_claim_is_refused_at_once(void **state)
{
	static const char *const ids[] = {"", "x", "1\t", "1234567890123456789012345"};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		assert_int_equal(queue_settle(q.queue,
					      &(struct settlement){.id = ids[i], .token = "1-00"},
					      NULL, NULL),
				 -EINVAL);
	assert_int_equal(
	    queue_settle(q.queue, &(struct settlement){.id = "1", .token = "1-x y"}, NULL, NULL),
	    -EINVAL);
	queue_stage_end(&q);
}

static void test_settlements_go_on_when_the_store_is_full(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	redis_ask(&q.redis, "CONFIG SET maxmemory 1");
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_NACK, 1, "x"), 0);
	end(&q, claim);
}

static void test_a_key_of_another_type_refuses(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);

	(void)state;
	redis_ask(&q.redis, "SET " Q "settled string");
	assert_int_not_equal(queue_stage_settle(&q, claim, SETTLE_ACK, 0, NULL), 0);
	assert_string_equal(redis_ask(&q.redis, "HLEN " Q "claims"), "1");
	end(&q, claim);
}

/* The same words, once more, over the next connection: the name of the claim lets them act only once. */
static void test_a_lost_answer_is_repeated(void **state)
{
	const struct settlement ack = {.verb = SETTLE_ACK, .id = "7", .token = "3-abcd"};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_settle(q.queue, &ack, queue_stage_on_end, &outcome), 0);
	peer_expect(&q.peer, "$3\r\nack\r\n$1\r\n0\r\n$0\r\n\r\n$1\r\n1\r\n$8\r\n7:3-abcd\r\n");
	peer_close(&q.peer);
	queue_stage_greet(&q);
	peer_expect(&q.peer, "$3\r\nack\r\n$1\r\n0\r\n$0\r\n\r\n$1\r\n1\r\n$8\r\n7:3-abcd\r\n");
	peer_say(&q.peer, "*1\r\n:0\r\n");
	queue_stage_expect(&q, &outcome, 0);
	queue_stage_end(&q);
}

/* Those in a row that say the same; what has a reason stands alone. */
static void test_settlements_of_one_kind_go_as_a_group(void **state)
{
	const struct settlement settlements[] = {
	    {.verb = SETTLE_ACK, .id = "7", .token = "3-abcd"},
	    {.verb = SETTLE_ACK, .id = "8", .token = "3-abcd"},
	    {.verb = SETTLE_NACK, .id = "9", .token = "3-abcd", .ms = 50},
	    {.verb = SETTLE_DEAD, .id = "1", .token = "3-abcd", .reason = "x"},
	    {.verb = SETTLE_DEAD, .id = "2", .token = "3-abcd", .reason = "x"},
	};
	struct queue_outcome outcomes[5] = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(
		    queue_settle(q.queue, &settlements[i], queue_stage_on_end, &outcomes[i]), 0);
	peer_expect(&q.peer, "$3\r\nack\r\n$1\r\n0\r\n$0\r\n\r\n$1\r\n2\r\n"
			     "$8\r\n7:3-abcd\r\n$8\r\n8:3-abcd\r\n"
			     "$4\r\nnack\r\n$2\r\n50\r\n$0\r\n\r\n$1\r\n1\r\n$8\r\n9:3-abcd\r\n"
			     "$4\r\ndead\r\n$1\r\n0\r\n$1\r\nx\r\n$1\r\n1\r\n$8\r\n1:3-abcd\r\n"
			     "$4\r\ndead\r\n$1\r\n0\r\n$1\r\nx\r\n$1\r\n1\r\n$8\r\n2:3-abcd\r\n");
	peer_say(&q.peer, "*5\r\n:0\r\n:1\r\n:0\r\n:2\r\n:2\r\n");
	queue_stage_expect(&q, &outcomes[0], 0);
	assert_int_equal(outcomes[1].result, REASON_CLAIM_STALE);
	assert_int_equal(outcomes[2].result, 0);
	assert_int_equal(outcomes[4].result, REASON_CLAIM_DEAD);
	queue_stage_end(&q);
}

static void test_an_answer_without_an_outcome_is_no_success(void **state)
{
	const struct settlement ack = {.verb = SETTLE_ACK, .id = "7", .token = "3-abcd"};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_settle(q.queue, &ack, queue_stage_on_end, &outcome), 0);
	peer_expect(&q.peer, "3-abcd");
	peer_say(&q.peer, "*0\r\n");
	queue_stage_expect(&q, &outcome, REASON_INTERNAL);
	queue_stage_end(&q);
}

static void test_a_store_that_dies_ends_a_settlement(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim = begin(&q, NULL);
	const struct settlement ack = {.verb = SETTLE_ACK, .id = claim->id, .token = claim->token};
	struct queue_outcome outcome = {0};

	(void)state;
	assert_int_equal(queue_settle(q.queue, &ack, queue_stage_on_end, &outcome), 0);
	queue_stage_die(&q);
	STAGE_UNTIL(&q.stage, outcome.ends);
	assert_true(outcome.result == REASON_STORE_NOT_DONE ||
		    outcome.result == REASON_STORE_UNKNOWN);
	end(&q, claim);
}

static void test_settlements_that_were_not_sent_end_with_the_queue(void **state)
{
	const struct settlement ack = {.verb = SETTLE_ACK, .id = "7", .token = "3-abcd"};
	struct queue_outcome sent = {0}, gathered = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_settle(q.queue, &ack, queue_stage_on_end, &sent), 0);
	peer_expect(&q.peer, "3-abcd");
	assert_int_equal(queue_settle(q.queue, &ack, queue_stage_on_end, &gathered), 0);
	queue_stage_cancel(&q);
	assert_int_equal(sent.result, -ECANCELED);
	queue_free(q.queue);
	q.queue = NULL;
	assert_int_equal(gathered.ends, 1);
	assert_int_equal(gathered.result, -ECANCELED);
	queue_stage_end(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_acknowledged_task_is_gone),
	    cmocka_unit_test(test_ones_own_repeat_is_told_done),
	    cmocka_unit_test(test_a_zombie_is_told_stale_and_changes_nothing),
	    cmocka_unit_test(test_a_failure_waits_for_the_delay_that_is_given),
	    cmocka_unit_test(test_a_failure_waits_longer_each_time),
	    cmocka_unit_test(test_failures_do_not_come_back_together),
	    cmocka_unit_test(test_too_many_failures_make_a_dead_letter),
	    cmocka_unit_test(test_a_dead_letter_is_made_at_once),
	    cmocka_unit_test(test_a_released_task_comes_back_first),
	    cmocka_unit_test(test_a_claim_is_extended_and_never_shortened),
	    cmocka_unit_test(test_a_claim_is_extended_by_the_queues_lease),
	    cmocka_unit_test(test_settlements_of_one_turn_are_one_call),
	    cmocka_unit_test(test_more_than_one_call_holds_are_several),
	    cmocka_unit_test(test_each_is_told_its_own_outcome),
	    cmocka_unit_test(test_what_is_no_claim_is_refused_at_once),
	    cmocka_unit_test(test_settlements_go_on_when_the_store_is_full),
	    cmocka_unit_test(test_a_key_of_another_type_refuses),
	    cmocka_unit_test(test_a_lost_answer_is_repeated),
	    cmocka_unit_test(test_settlements_of_one_kind_go_as_a_group),
	    cmocka_unit_test(test_an_answer_without_an_outcome_is_no_success),
	    cmocka_unit_test(test_a_store_that_dies_ends_a_settlement),
	    cmocka_unit_test(test_settlements_that_were_not_sent_end_with_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
