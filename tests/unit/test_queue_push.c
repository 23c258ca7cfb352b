/* test_queue_push.c - tasks on their way into the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue_stage.h"

static void push(struct queue_stage *q, const struct push *how, const struct push_item *items,
		 size_t count, int result, struct queue_outcome *outcome)
{
	*outcome = (struct queue_outcome){0};
	assert_int_equal(queue_push(q->queue, how, items, count, queue_stage_on_push, outcome), 0);
	assert_int_equal(outcome->ends, 0);
	queue_stage_expect(q, outcome, result);
}

static void test_a_task_stands_raw_in_its_list(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	queue_stage_push(&q, "low", "a");
	queue_stage_push(&q, "low", "b");
	assert_string_equal(redis_ask(&q.redis, "LRANGE {q}:low 0 -1"), "b a");
	queue_stage_end(&q);
}

static void test_an_urgent_task_goes_to_the_head(void **state)
{
	const struct push urgent = {.level = "low", .is_urgent = true};
	const struct push_item item = {.payload = WORD("u")};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	queue_stage_push(&q, "low", "a");
	push(&q, &urgent, &item, 1, 0, &outcome);
	assert_string_equal(redis_ask(&q.redis, "RPOP {q}:low"), "u");
	queue_stage_end(&q);
}

static void test_a_delayed_task_waits_outside_of_its_list(void **state)
{
	const struct push delayed = {.level = "high", .when_ms = 60000};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome;
	struct queue_stage q = {0};
	int64_t now, due;

	(void)state;
	queue_stage_begin(&q, NULL);
	now = atoll(redis_ask(&q.redis, "TIME")) * 1000;
	push(&q, &delayed, &item, 1, 0, &outcome);
	assert_string_equal(redis_ask(&q.redis, "LLEN {q}:high"), "0");
	due = atoll(strchr(redis_ask(&q.redis, "ZRANGE " Q "later 0 0 WITHSCORES"), ' ') + 1);
	assert_in_range(due, now + 60000, now + 90000);
	queue_stage_end(&q);
}

static void test_a_task_with_a_time_is_due_then(void **state)
{
	const struct push timed = {.level = "high", .is_at = true, .when_ms = 4102444800000};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	push(&q, &timed, &item, 1, 0, &outcome);
	assert_non_null(
	    strstr(redis_ask(&q.redis, "ZRANGE " Q "later 0 0 WITHSCORES"), " 4102444800000"));
	queue_stage_end(&q);
}

static void test_a_key_lets_a_task_in_once(void **state)
{
	const struct push how = {.level = "high", .window_ms = 60000};
	const struct push_item items[] = {{.payload = WORD("a"), .key = WORD("k")},
					  {.payload = WORD("b")},
					  {.payload = WORD("c"), .key = WORD("k")}};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	push(&q, &how, items, 3, 0, &outcome);
	assert_int_equal(outcome.pushed_count, 3);
	assert_true(outcome.pushed[0]);
	assert_true(outcome.pushed[1]);
	assert_false(outcome.pushed[2]);
	push(&q, &how, items, 1, 0, &outcome);
	assert_false(outcome.pushed[0]);
	assert_string_equal(redis_ask(&q.redis, "LRANGE {q}:high 0 -1"), "b a");
	queue_stage_end(&q);
}

static void test_what_cannot_be_pushed_is_refused_at_once(void **state)
{
	const struct push_item item = {.payload = WORD("a")},
			       huge = {.payload = {"", (size_t)66 << 20}};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	assert_int_equal(queue_push(q.queue, &(struct push){.level = "gone"}, &item, 1,
				    queue_stage_on_push, NULL),
			 -EINVAL);
	assert_int_equal(queue_push(q.queue, &(struct push){.level = "low"}, &item, 0,
				    queue_stage_on_push, NULL),
			 -EINVAL);
	assert_int_equal(queue_push(q.queue, &(struct push){.level = "low"}, &item, PUSH_MAX + 1,
				    queue_stage_on_push, NULL),
			 -EINVAL);
	assert_int_equal(queue_push(q.queue, &(struct push){.level = "low"}, &huge, 1,
				    queue_stage_on_push, NULL),
			 -EMSGSIZE);
	queue_stage_end(&q);
}

static void test_a_full_store_refuses_all_of_a_push_with_its_words(void **state)
{
	const struct push how = {.level = "low"};
	const struct push_item items[] = {{.payload = WORD("a")}, {.payload = WORD("b")}};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "CONFIG SET maxmemory 1");
	push(&q, &how, items, 2, REASON_STORE_REFUSED, &outcome);
	assert_non_null(strstr(outcome.error, "OOM"));
	assert_string_equal(redis_ask(&q.redis, "EXISTS {q}:low"), "0");
	queue_stage_end(&q);
}

static void test_a_key_of_another_type_refuses_a_push(void **state)
{
	const struct push how = {.level = "low"};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "SET {q}:low string");
	outcome = (struct queue_outcome){0};
	assert_int_equal(queue_push(q.queue, &how, &item, 1, queue_stage_on_push, &outcome), 0);
	STAGE_UNTIL(&q.stage, outcome.ends);
	assert_int_not_equal(outcome.result, 0);
	assert_non_null(strstr(outcome.error, "WRONGTYPE"));
	queue_stage_end(&q);
}

/* At its cap of payloads, and beside it a small one. */
static void test_64_mebibytes_come_back_as_they_went(void **state)
{
	const size_t size = (size_t)64 << 20;
	char *payload = malloc(size);
	const struct push how = {.level = "low"};
	const struct push_item items[] = {{.payload = {payload, size}}, {.payload = WORD("small")}};
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	for (size_t i = 0; i < size; i++)
		payload[i] = (char)(i * 2654435761u >> 24);
	queue_stage_begin(&q, NULL);
	push(&q, &how, items, 2, 0, &outcome);
	queue_stage_claim(&q, 2, &outcome);
	assert_int_equal(outcome.count, 1); /* one fills an answer */
	assert_int_equal(outcome.claims[0]->len, size);
	assert_memory_equal(outcome.claims[0]->payload, payload, size);
	queue_outcome_free(&outcome);
	queue_stage_claim(&q, 2, &outcome);
	assert_string_equal(outcome.claims[0]->payload, "small");
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
	free(payload);
}

static void test_a_lost_answer_is_unknown_and_not_repeated(void **state)
{
	const struct push how = {.level = "low"};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_push(q.queue, &how, &item, 1, queue_stage_on_push, &outcome), 0);
	peer_expect(&q.peer, "$1\r\na\r\n");
	peer_close(&q.peer);
	queue_stage_expect(&q, &outcome, REASON_STORE_UNKNOWN);
	queue_stage_greet(&q);
	peer_listen_up(&q.peer);
	assert_int_equal(peer_count(&q.peer, "EVALSHA"), 0);
	queue_stage_end(&q);
}

static void test_a_store_that_dies_ends_a_push(void **state)
{
	const struct push how = {.level = "low"};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	assert_int_equal(queue_push(q.queue, &how, &item, 1, queue_stage_on_push, &outcome), 0);
	queue_stage_die(&q);
	STAGE_UNTIL(&q.stage, outcome.ends);
	assert_true(outcome.result == REASON_STORE_NOT_DONE ||
		    outcome.result == REASON_STORE_UNKNOWN);
	queue_stage_end(&q);
}

static void test_a_push_under_way_ends_with_the_store(void **state)
{
	const struct push how = {.level = "low"};
	const struct push_item item = {.payload = WORD("a")};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_push(q.queue, &how, &item, 1, queue_stage_on_push, &outcome), 0);
	queue_stage_cancel(&q);
	assert_int_equal(outcome.ends, 1);
	assert_int_equal(outcome.result, -ECANCELED);
	queue_stage_end(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_task_stands_raw_in_its_list),
	    cmocka_unit_test(test_an_urgent_task_goes_to_the_head),
	    cmocka_unit_test(test_a_delayed_task_waits_outside_of_its_list),
	    cmocka_unit_test(test_a_task_with_a_time_is_due_then),
	    cmocka_unit_test(test_a_key_lets_a_task_in_once),
	    cmocka_unit_test(test_what_cannot_be_pushed_is_refused_at_once),
	    cmocka_unit_test(test_a_full_store_refuses_all_of_a_push_with_its_words),
	    cmocka_unit_test(test_a_key_of_another_type_refuses_a_push),
	    cmocka_unit_test(test_64_mebibytes_come_back_as_they_went),
	    cmocka_unit_test(test_a_lost_answer_is_unknown_and_not_repeated),
	    cmocka_unit_test(test_a_store_that_dies_ends_a_push),
	    cmocka_unit_test(test_a_push_under_way_ends_with_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
