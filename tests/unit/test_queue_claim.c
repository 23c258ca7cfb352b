/* test_queue_claim.c - tasks on their way out, with a lease. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue_stage.h"

static void test_an_empty_queue_gives_nothing(void **state)
{
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	queue_stage_claim(&q, 1, &outcome);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(outcome.next_due_ms, -1);
	queue_stage_end(&q);
}

static void test_levels_are_tried_in_their_order(void **state)
{
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low l1 l2");
	redis_ask(&q.redis, "LPUSH {q}:high h1");
	queue_stage_claim(&q, 5, &outcome);
	assert_int_equal(outcome.count, 3);
	assert_string_equal(outcome.claims[0]->payload, "h1");
	assert_int_equal(outcome.claims[0]->level, 0);
	assert_string_equal(outcome.claims[1]->payload, "l1");
	assert_string_equal(outcome.claims[2]->payload, "l2");
	assert_int_equal(outcome.claims[2]->level, 1);
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_a_claim_says_how_long_it_lives(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim;
	int64_t before_ms, now;

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	before_ms = clock_ms();
	now = atoll(redis_ask(&q.redis, "TIME")) * 1000;
	claim = queue_stage_claim_one(&q);
	assert_true(claim->deadline_ms >= before_ms + 60000);
	assert_true(claim->deadline_ms <= clock_ms() + 60000);
	assert_in_range(claim->expires_ms, now + 60000, now + 90000);
	assert_int_equal(claim->failures + claim->lost + claim->released, 0);
	free(claim);
	queue_stage_end(&q);
}

/* The clock stands still: the lease is counted from the asking, whenever the answer comes. */
static void test_the_deadline_is_counted_from_the_asking(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	clock_set(clock_ms());
	const int64_t asked_ms = clock_ms();
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	stage_turn(&q.stage);
	clock_set(asked_ms + 500);
	queue_stage_expect(&q, &outcome, 0);
	assert_int_equal(outcome.claims[0]->deadline_ms, asked_ms + 60000);
	clock_set(-1);
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_each_claim_has_a_name_of_its_own(void **state)
{
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a b");
	queue_stage_claim(&q, 2, &outcome);
	assert_string_equal(outcome.claims[0]->token, outcome.claims[1]->token);
	assert_string_not_equal(outcome.claims[0]->id, outcome.claims[1]->id);
	assert_int_equal(strlen(strchr(outcome.claims[0]->token, '-') + 1), 16);
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_hostile_payloads_come_back_as_they_are(void **state)
{
	static const struct {
		const char *at;
		size_t len;
	} payloads[] = {{"", 0},
			{"\0", 1},
			{"a\0b\r\n\tpayload=\t", 15},
			{"\xff\xfe\xc0\x80", 4},
			{"9007199254740993", 16},
			{"[]", 2}};
	enum { COUNT = sizeof(payloads) / sizeof(*payloads) };
	struct push_item items[COUNT];
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (size_t i = 0; i < COUNT; i++)
		items[i] = (struct push_item){.payload = {payloads[i].at, payloads[i].len}};
	assert_int_equal(queue_push(q.queue, &(struct push){.level = "low"}, items, COUNT,
				    queue_stage_on_push, &outcome),
			 0);
	queue_stage_expect(&q, &outcome, 0);
	queue_stage_claim(&q, COUNT, &outcome);
	assert_int_equal(outcome.count, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(outcome.claims[i]->len, payloads[i].len);
		assert_memory_equal(outcome.claims[i]->payload, payloads[i].at, payloads[i].len);
		assert_int_equal(outcome.claims[i]->payload[payloads[i].len], '\0');
	}
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_no_call_claims_more_than_its_cap(void **state)
{
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 300; i++)
		redis_ask(&q.redis, "LPUSH {q}:low a");
	queue_stage_claim(&q, 1000, &outcome);
	assert_int_equal(outcome.count, CLAIM_MAX);
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
}

static void test_large_payloads_are_claimed_few_at_a_time(void **state)
{
	const size_t size = (size_t)3 << 20;
	char *payload = calloc(1, size);
	struct queue_outcome outcome;
	struct queue_stage q = {0};

	(void)state;
	memset(payload, 'x', size - 1);
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 4; i++)
		queue_stage_push(&q, "low", payload);
	queue_stage_claim(&q, 4, &outcome);
	assert_int_equal(outcome.count, 3); /* the third goes over 8 MiB */
	queue_outcome_free(&outcome);
	queue_stage_end(&q);
	free(payload);
}

static void test_aging_takes_every_kth_claim_from_the_bottom(void **state)
{
	struct queue_config config = queue_stage_config();
	struct queue_stage q = {0};
	int from_bottom = 0;

	(void)state;
	config.aging = 4;
	queue_stage_begin(&q, &config);
	redis_ask(&q.redis, "LPUSH {q}:high a b c d e f g h");
	redis_ask(&q.redis, "LPUSH {q}:low a b c d e f g h");
	for (int i = 0; i < 8; i++) {
		struct claim *claim = queue_stage_claim_one(&q);

		assert_int_equal(claim->payload[0],
				 'a' + (claim->level ? from_bottom : i - from_bottom));
		from_bottom += claim->level == 1;
		free(claim);
	}
	assert_int_equal(from_bottom, 2);
	queue_stage_end(&q);
}

static void test_strict_order_never_takes_from_the_bottom(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:high a b c d e f g h");
	redis_ask(&q.redis, "LPUSH {q}:low a");
	for (int i = 0; i < 8; i++) {
		struct claim *claim = queue_stage_claim_one(&q);

		assert_int_equal(claim->level, 0);
		free(claim);
	}
	queue_stage_end(&q);
}

static void test_a_claim_tells_when_to_come_again(void **state)
{
	const struct push delayed = {.level = "low", .when_ms = 40000};
	const struct push_item item = {.payload = WORD("later")};
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	assert_int_equal(queue_push(q.queue, &delayed, &item, 1, queue_stage_on_push, &outcome), 0);
	queue_stage_expect(&q, &outcome, 0);
	queue_stage_claim(&q, 1, &outcome);
	assert_int_equal(outcome.count, 0);
	assert_in_range(outcome.next_due_ms, 10000, 40000);
	queue_stage_is_due(&q);
	queue_stage_claim(&q, 1, &outcome);
	assert_string_equal(outcome.claims[0]->payload, "later");
	queue_outcome_free(&outcome);
	queue_stage_claim(&q, 1, &outcome);
	assert_in_range(outcome.next_due_ms, 30000, 60000); /* the end of the lease */
	queue_stage_end(&q);
}

static void test_a_claim_whose_lease_has_ended_comes_back_as_lost(void **state)
{
	struct queue_stage q = {0};
	struct claim *first, *second;

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	first = queue_stage_claim_one(&q);
	redis_askf(&q.redis, "ZADD " Q "leases 1 %s:%s", first->id, first->token);
	second = queue_stage_claim_one(&q);
	assert_string_equal(second->id, first->id);
	assert_string_not_equal(second->token, first->token);
	assert_string_equal(second->payload, "a");
	assert_int_equal(second->lost, 1);
	free(first);
	free(second);
	queue_stage_end(&q);
}

static void test_claims_go_on_when_the_store_is_full(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	redis_ask(&q.redis, "CONFIG SET maxmemory 1");
	free(queue_stage_claim_one(&q));
	queue_stage_end(&q);
}

static void test_a_key_of_another_type_refuses_before_anything_is_written(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	redis_ask(&q.redis, "SET " Q "claims string");
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	STAGE_UNTIL(&q.stage, outcome.ends);
	assert_int_not_equal(outcome.result, 0);
	assert_int_equal(outcome.count, 0);
	assert_non_null(strstr(outcome.error, "WRONGTYPE"));
	assert_string_equal(redis_ask(&q.redis, "LRANGE {q}:low 0 -1"), "a");
	queue_stage_end(&q);
}

static void test_a_lost_answer_is_unknown_and_not_repeated(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	peer_expect(&q.peer, "EVALSHA");
	peer_say(&q.peer, "*6\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n*8\r\n$1\r\n1");
	peer_reset(&q.peer);
	queue_stage_expect(&q, &outcome, REASON_STORE_UNKNOWN);
	assert_int_equal(outcome.count, 0);
	queue_stage_greet(&q);
	peer_listen_up(&q.peer);
	assert_int_equal(peer_count(&q.peer, "EVALSHA"), 0);
	queue_stage_end(&q);
}

static void test_an_answer_that_makes_no_sense_is_no_claim(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	peer_expect(&q.peer, "EVALSHA");
	peer_say(&q.peer,
		 "*6\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n"
		 "*8\r\n$1\r\n1\r\n$3\r\n1-a\r\n$4\r\ngone\r\n:0\r\n:0\r\n:0\r\n:9\r\n$0\r\n\r\n");
	queue_stage_expect(&q, &outcome, REASON_INTERNAL);
	assert_int_equal(outcome.count, 0);
	queue_stage_end(&q);
}

static void test_a_store_that_dies_ends_a_claim(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	queue_stage_die(&q);
	STAGE_UNTIL(&q.stage, outcome.ends);
	assert_true(outcome.result == REASON_STORE_NOT_DONE ||
		    outcome.result == REASON_STORE_UNKNOWN);
	queue_stage_end(&q);
}

static void test_a_claim_under_way_ends_with_the_store(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_play(&q);
	assert_int_equal(queue_claim(q.queue, 1, queue_stage_on_claim, &outcome), 0);
	queue_stage_cancel(&q);
	assert_int_equal(outcome.ends, 1);
	assert_int_equal(outcome.result, -ECANCELED);
	queue_stage_end(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_empty_queue_gives_nothing),
	    cmocka_unit_test(test_levels_are_tried_in_their_order),
	    cmocka_unit_test(test_a_claim_says_how_long_it_lives),
	    cmocka_unit_test(test_the_deadline_is_counted_from_the_asking),
	    cmocka_unit_test(test_each_claim_has_a_name_of_its_own),
	    cmocka_unit_test(test_hostile_payloads_come_back_as_they_are),
	    cmocka_unit_test(test_no_call_claims_more_than_its_cap),
	    cmocka_unit_test(test_large_payloads_are_claimed_few_at_a_time),
	    cmocka_unit_test(test_aging_takes_every_kth_claim_from_the_bottom),
	    cmocka_unit_test(test_strict_order_never_takes_from_the_bottom),
	    cmocka_unit_test(test_a_claim_tells_when_to_come_again),
	    cmocka_unit_test(test_a_claim_whose_lease_has_ended_comes_back_as_lost),
	    cmocka_unit_test(test_claims_go_on_when_the_store_is_full),
	    cmocka_unit_test(test_a_key_of_another_type_refuses_before_anything_is_written),
	    cmocka_unit_test(test_a_lost_answer_is_unknown_and_not_repeated),
	    cmocka_unit_test(test_an_answer_that_makes_no_sense_is_no_claim),
	    cmocka_unit_test(test_a_store_that_dies_ends_a_claim),
	    cmocka_unit_test(test_a_claim_under_way_ends_with_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
