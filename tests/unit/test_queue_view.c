/* test_queue_view.c - what people see of a queue, and what they do to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/view.h"
#include "queue_stage.h"

/* Entries in their order, each as "where level id payload failures/lost/released reason;". */
struct seen {
	int ends, result;
	size_t count;
	int64_t at_ms;
	char text[1 << 14], error[200];
};

static void on_entry(int result, const char *error, const struct queue_entry *entry, void *arg)
{
	struct seen *seen = arg;
	size_t used = strlen(seen->text);

	if (!entry) {
		seen->ends++;
		seen->result = result;
		snprintf(seen->error, sizeof(seen->error), "%s", error);
		return;
	}
	assert_int_equal(seen->ends, 0);
	seen->count++;
	seen->at_ms = entry->at_ms;
	snprintf(seen->text + used, sizeof(seen->text) - used, "%s %s %s %.*s %lld/%lld/%lld %s;",
		 entry->where, entry->level, entry->id,
		 (int)(entry->payload.len < 20 ? entry->payload.len : 20),
		 (const char *)entry->payload.at, (long long)entry->failures,
		 (long long)entry->lost, (long long)entry->released, entry->reason);
}

static struct seen *peek(struct queue_stage *q, enum queue_place place, const char *level,
			 size_t count)
{
	static struct seen seen;

	seen = (struct seen){0};
	assert_int_equal(queue_peek(q->queue, place, level, count, on_entry, &seen), 0);
	assert_int_equal(seen.ends, 0);
	STAGE_UNTIL(&q->stage, seen.ends);
	assert_int_equal(seen.ends, 1);
	return &seen;
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct queue_view **ret = arg;

	assert_string_equal(error, "");
	assert_int_equal(result, 0);
	*ret = malloc(sizeof(*view));
	**ret = *view;
}

/* The caller's to free(). */
static struct queue_view *view_of(struct queue_stage *q)
{
	struct queue_view *view = NULL;

	assert_int_equal(queue_view(q->queue, on_view, &view), 0);
	STAGE_UNTIL(&q->stage, view);
	return view;
}

/* A packed task in the hash of what is held. */
static void hold(struct queue_stage *q, int id, const char *kind, const char *level,
		 const char *payload)
{
	redis_askf(&q->redis,
		   "HSET " Q "held %d \"kind=%s\\tlevel=%s\\tfailures=1\\tlost=2\\treleased=3"
		   "\\tpayload=%s\"",
		   id, kind, level, payload);
}

static void bury(struct queue_stage *q, int id, const char *level, const char *payload)
{
	redis_askf(&q->redis,
		   "LPUSH " Q "dead \"id=%d\\treason=why not\\tlevel=%s\\tfailures=5\\tlost=0"
		   "\\tat=1700000000000\\tpayload=%s\"",
		   id, level, payload);
}

/* --- view --------------------------------------------------------------------------------------------------------- */

static void test_an_empty_queue_is_all_zero(void **state)
{
	struct queue_stage q = {0};
	struct queue_view *view;

	(void)state;
	queue_stage_begin(&q, NULL);
	view = view_of(&q);
	assert_int_equal(view->level_count, 2);
	assert_string_equal(view->levels[1].name, "low");
	assert_int_equal(view->levels[0].ready + view->levels[0].returned, 0);
	assert_int_equal(view->levels[0].stall_ms, 0);
	assert_int_equal(view->later + view->in_flight + view->dead + view->acked, 0);
	assert_true(view->oldest_claim_ms == INT64_MAX);
	free(view);
	queue_stage_end(&q);
}

static void test_depths_and_counters_are_those_of_the_store(void **state)
{
	struct queue_stage q = {0};
	struct queue_view *view;
	struct claim *claim;

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 3; i++)
		queue_stage_push(&q, "low", "a");
	claim = queue_stage_claim_one(&q);
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_RELEASE, 0, NULL), 0);
	free(claim);
	claim = queue_stage_claim_one(&q);
	free(queue_stage_claim_one(&q));
	assert_int_equal(queue_stage_settle(&q, claim, SETTLE_NACK, 60000, NULL), 0);
	bury(&q, 9, "low", "x");
	view = view_of(&q);
	assert_int_equal(view->levels[1].ready, 1);
	assert_int_equal(view->levels[1].returned, 0);
	assert_int_equal(view->levels[1].pushed, 3);
	assert_int_equal(view->levels[1].claimed, 3);
	assert_int_equal(view->later, 1);
	assert_int_equal(view->in_flight, 1);
	assert_int_equal(view->dead, 1);
	assert_int_equal(view->failed, 1);
	assert_int_equal(view->released, 1);
	assert_in_range(view->oldest_claim_ms, 30000, 60000);
	free(view);
	free(claim);
	queue_stage_end(&q);
}

static void test_a_level_that_nobody_serves_stalls(void **state)
{
	struct queue_stage q = {0};
	struct queue_view *view;

	(void)state;
	queue_stage_begin(&q, NULL);
	queue_stage_push(&q, "low", "a");
	redis_askf(&q.redis, "HSET " Q "stats stall:low %lld stall:high 1",
		   (atoll(redis_ask(&q.redis, "TIME")) - 60) * 1000);
	view = view_of(&q);
	assert_in_range(view->levels[1].stall_ms, 59000, 120000);
	assert_int_equal(view->levels[0].stall_ms, 0); /* it is empty */
	free(view);
	queue_stage_end(&q);
}

/* The time when what is set aside by lua/claim.lua came is not known any more. */
static void test_a_claim_of_an_unknown_level_has_ended(void **state)
{
	struct queue_stage q = {0};
	struct queue_view *view;

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "ZADD " Q "leases 4503599627370497 7");
	view = view_of(&q);
	assert_true(view->oldest_claim_ms < 0);
	free(view);
	queue_stage_end(&q);
}

static void test_a_key_of_another_type_is_named(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "SADD {q}:low x");
	assert_int_equal(queue_check_types(q.queue, queue_stage_on_end, &outcome), 0);
	queue_stage_expect(&q, &outcome, REASON_STORE_REFUSED);
	assert_string_equal(outcome.error, "WRONGTYPE the key {q}:low holds a set, not a list");
	queue_stage_end(&q);
}

static void test_right_types_are_no_trouble(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	queue_stage_push(&q, "low", "a");
	assert_int_equal(queue_check_types(q.queue, queue_stage_on_end, &outcome), 0);
	queue_stage_expect(&q, &outcome, 0);
	queue_stage_end(&q);
}

/* --- peek --------------------------------------------------------------------------------------------------------- */

static void test_ready_tasks_are_seen_in_the_order_in_which_they_come(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a b c d e");
	redis_ask(&q.redis, "LPUSH {q}:high h");
	redis_ask(&q.redis, "LPUSH " Q "retry:low 7 8");
	hold(&q, 7, "returned", "low", "r7");
	hold(&q, 8, "returned", "low", "r8");
	assert_string_equal(
	    peek(&q, QUEUE_READY, NULL, 6)->text,
	    "ready high  h 0/0/0 ;returned low 7 r7 1/2/3 ;returned low 8 r8 1/2/3 ;"
	    "ready low  a 0/0/0 ;ready low  b 0/0/0 ;ready low  c 0/0/0 ;");
	assert_string_equal(peek(&q, QUEUE_READY, "high", 6)->text, "ready high  h 0/0/0 ;");
	queue_stage_end(&q);
}

static void test_delayed_tasks_are_seen_in_the_order_of_their_times(void **state)
{
	struct queue_stage q = {0};
	struct seen *seen;

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 1; i <= 5; i++) {
		hold(&q, i, "delayed", i % 2 ? "low" : "high", "x");
		redis_askf(&q.redis, "ZADD " Q "later %d %d", 1000 - i, i);
	}
	seen = peek(&q, QUEUE_IN_LATER, NULL, 2);
	assert_string_equal(seen->text, "later low 5 x 1/2/3 ;later high 4 x 1/2/3 ;");
	assert_int_equal(seen->at_ms, 996);
	assert_string_equal(peek(&q, QUEUE_IN_LATER, "high", 9)->text,
			    "later high 4 x 1/2/3 ;later high 2 x 1/2/3 ;");
	queue_stage_end(&q);
}

static void test_claims_are_seen_with_the_end_of_their_lease(void **state)
{
	struct queue_stage q = {0};
	struct claim *claim;
	struct seen *seen;
	char expected[80];

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	claim = queue_stage_claim_one(&q);
	seen = peek(&q, QUEUE_IN_FLIGHT, NULL, 9);
	snprintf(expected, sizeof(expected), "claimed low %s a 0/0/0 ;", claim->id);
	assert_string_equal(seen->text, expected);
	assert_true(seen->at_ms == claim->expires_ms);
	free(claim);
	queue_stage_end(&q);
}

static void test_dead_letters_are_seen_the_oldest_first(void **state)
{
	struct queue_stage q = {0};
	struct seen *seen;

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 1; i <= 4; i++)
		bury(&q, i, "low", "x");
	seen = peek(&q, QUEUE_DEAD_LETTERS, NULL, 4);
	assert_string_equal(seen->text, "dead low 1 x 5/0/0 why not;dead low 2 x 5/0/0 why not;"
					"dead low 3 x 5/0/0 why not;dead low 4 x 5/0/0 why not;");
	assert_true(seen->at_ms == 1700000000000);
	queue_stage_end(&q);
}

static void test_large_payloads_are_read_few_at_a_time(void **state)
{
	const size_t size = (size_t)1 << 20;
	char *payload = calloc(1, size);
	struct queue_stage q = {0};

	(void)state;
	memset(payload, 'x', size - 1);
	queue_stage_begin(&q, NULL);
	for (int i = 0; i < 7; i++)
		queue_stage_push(&q, "low", payload);
	redis_ask(&q.redis, "CONFIG RESETSTAT");
	assert_int_equal(peek(&q, QUEUE_READY, "low", 100)->count, 7);
	assert_true(redis_calls(&q.redis, "lrange") >= 4);
	queue_stage_end(&q);
	free(payload);
}

static void test_what_is_no_entry_does_not_stop_the_others(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH " Q "retry:low gone 7");
	redis_ask(&q.redis, "HSET " Q "held 7 nonsense");
	redis_ask(&q.redis, "LPUSH {q}:low a");
	assert_string_equal(peek(&q, QUEUE_READY, "low", 9)->text,
			    "returned low 7  0/0/0 ;ready low  a 0/0/0 ;");
	queue_stage_end(&q);
}

static void test_a_failure_ends_a_peek(void **state)
{
	struct queue_stage q = {0};
	struct seen *seen;

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "SET {q}:low x");
	seen = peek(&q, QUEUE_READY, "low", 9);
	assert_int_equal(seen->result, REASON_STORE_REFUSED);
	assert_non_null(strstr(seen->error, "WRONGTYPE"));
	assert_int_equal(queue_peek(q.queue, QUEUE_READY, "gone", 1, on_entry, seen), -EINVAL);
	queue_stage_end(&q);
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

static int64_t moved(struct queue_stage *q, int queued, struct queue_outcome *outcome)
{
	assert_int_equal(queued, 0);
	assert_int_equal(outcome->ends, 0);
	queue_stage_expect(q, outcome, 0);
	return outcome->moved;
}

static void test_dead_letters_go_back_raw_to_their_levels(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 1; i <= 300; i++)
		bury(&q, i, i == 1 ? "gone" : i % 2 ? "low" : "high", "x");
	assert_int_equal(
	    moved(&q, queue_dead_retry(q.queue, queue_stage_on_moved, &outcome), &outcome), 299);
	assert_string_equal(redis_ask(&q.redis, "LLEN {q}:low"), "149");
	assert_string_equal(redis_ask(&q.redis, "LLEN {q}:high"), "150");
	assert_string_equal(redis_ask(&q.redis, "LLEN " Q "dead"), "1");
	queue_stage_end(&q);
}

static void test_dead_letters_are_purged(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	for (int i = 1; i <= 3; i++)
		bury(&q, i, "low", "x");
	assert_int_equal(
	    moved(&q, queue_dead_purge(q.queue, queue_stage_on_moved, &outcome), &outcome), 3);
	assert_string_equal(redis_ask(&q.redis, "EXISTS " Q "dead"), "0");
	queue_stage_end(&q);
}

static void test_returned_tasks_go_to_the_public_list_in_their_order(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low fresh");
	redis_ask(&q.redis, "LPUSH " Q "retry:low 7 8");
	hold(&q, 7, "returned", "low", "r7");
	hold(&q, 8, "returned", "low", "r8");
	assert_int_equal(
	    moved(&q, queue_retry_public(q.queue, NULL, queue_stage_on_moved, &outcome), &outcome),
	    2);
	assert_string_equal(redis_ask(&q.redis, "LRANGE {q}:low 0 -1"), "fresh r8 r7");
	assert_string_equal(redis_ask(&q.redis, "EXISTS " Q "held " Q "retry:low"), "0");
	queue_stage_end(&q);
}

/* Fills both levels: a list, a retry list, and what is due later. */
static void fill(struct queue_stage *q)
{
	for (int i = 1; i <= 300; i++) {
		const char *level = i % 2 ? "low" : "high";

		hold(q, i, "returned", level, "x");
		if (i <= 150)
			redis_askf(&q->redis, "LPUSH " Q "retry:%s %d", level, i);
		else
			redis_askf(&q->redis, "ZADD " Q "later %d %d", i, i);
	}
	redis_ask(&q->redis, "LPUSH {q}:low a b");
	redis_ask(&q->redis, "LPUSH {q}:high a b c");
}

static void test_a_level_is_purged_and_the_others_stay(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	fill(&q);
	assert_int_equal(
	    moved(&q, queue_purge(q.queue, "low", queue_stage_on_moved, &outcome), &outcome),
	    2 + 75 + 75);
	assert_string_equal(redis_ask(&q.redis, "EXISTS {q}:low " Q "retry:low"), "0");
	assert_string_equal(redis_ask(&q.redis, "LLEN " Q "retry:high"), "75");
	assert_string_equal(redis_ask(&q.redis, "ZCARD " Q "later"), "75");
	assert_string_equal(redis_ask(&q.redis, "HLEN " Q "held"), "150");
	queue_stage_end(&q);
}

static void test_a_whole_queue_is_purged_but_for_claims_and_dead_letters(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low claimed");
	free(queue_stage_claim_one(&q));
	bury(&q, 900, "low", "x");
	redis_ask(&q.redis, "HSET " Q "stats next_id 1000");
	fill(&q);
	assert_int_equal(
	    moved(&q, queue_purge(q.queue, NULL, queue_stage_on_moved, &outcome), &outcome),
	    5 + 300);
	assert_string_equal(redis_ask(&q.redis, "EXISTS {q}:low {q}:high " Q "retry:low " Q
						"retry:high " Q "later " Q "held"),
			    "0");
	assert_string_equal(redis_ask(&q.redis, "HLEN " Q "claims"), "1");
	assert_string_equal(redis_ask(&q.redis, "LLEN " Q "dead"), "1");
	queue_stage_end(&q);
}

static void test_a_paused_level_gives_nothing_until_it_is_resumed(void **state)
{
	struct queue_outcome outcome = {0};
	struct queue_stage q = {0};
	struct queue_view *view;

	(void)state;
	queue_stage_begin(&q, NULL);
	redis_ask(&q.redis, "LPUSH {q}:low a");
	assert_int_equal(queue_pause(q.queue, "low", true, queue_stage_on_end, &outcome), 0);
	queue_stage_expect(&q, &outcome, 0);
	view = view_of(&q);
	assert_true(view->levels[1].is_paused);
	assert_false(view->levels[0].is_paused);
	free(view);
	queue_stage_claim(&q, 1, &outcome);
	assert_int_equal(outcome.count, 0);
	outcome = (struct queue_outcome){0};
	assert_int_equal(queue_pause(q.queue, NULL, false, queue_stage_on_end, &outcome), 0);
	queue_stage_expect(&q, &outcome, 0);
	free(queue_stage_claim_one(&q));
	queue_stage_end(&q);
}

static void test_unknown_levels_are_refused_at_once(void **state)
{
	struct queue_stage q = {0};

	(void)state;
	queue_stage_begin(&q, NULL);
	assert_int_equal(queue_purge(q.queue, "gone", queue_stage_on_moved, NULL), -EINVAL);
	assert_int_equal(queue_retry_public(q.queue, "gone", queue_stage_on_moved, NULL), -EINVAL);
	assert_int_equal(queue_pause(q.queue, "gone", true, queue_stage_on_end, NULL), -EINVAL);
	queue_stage_end(&q);
}

/* Each of them is cut off at every one of its answers. */
static void test_whatever_is_under_way_ends_with_the_store(void **state)
{
	for (int turns = 0; turns < 12; turns++) {
		struct queue_outcome outcomes[4] = {0};
		struct queue_stage q = {0};
		struct seen seen = {0};

		(void)state;
		queue_stage_begin(&q, NULL);
		fill(&q);
		assert_int_equal(queue_purge(q.queue, NULL, queue_stage_on_moved, &outcomes[0]), 0);
		assert_int_equal(queue_dead_retry(q.queue, queue_stage_on_moved, &outcomes[1]), 0);
		assert_int_equal(queue_dead_purge(q.queue, queue_stage_on_moved, &outcomes[2]), 0);
		assert_int_equal(
		    queue_retry_public(q.queue, NULL, queue_stage_on_moved, &outcomes[3]), 0);
		assert_int_equal(queue_peek(q.queue, QUEUE_READY, NULL, 100, on_entry, &seen), 0);
		for (int i = 0; i < turns; i++)
			stage_turn(&q.stage);
		queue_stage_cancel(&q);
		for (int i = 0; i < 4; i++)
			assert_int_equal(outcomes[i].ends, 1);
		assert_int_equal(seen.ends, 1);
		queue_stage_end(&q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_empty_queue_is_all_zero),
	    cmocka_unit_test(test_depths_and_counters_are_those_of_the_store),
	    cmocka_unit_test(test_a_level_that_nobody_serves_stalls),
	    cmocka_unit_test(test_a_claim_of_an_unknown_level_has_ended),
	    cmocka_unit_test(test_a_key_of_another_type_is_named),
	    cmocka_unit_test(test_right_types_are_no_trouble),
	    cmocka_unit_test(test_ready_tasks_are_seen_in_the_order_in_which_they_come),
	    cmocka_unit_test(test_delayed_tasks_are_seen_in_the_order_of_their_times),
	    cmocka_unit_test(test_claims_are_seen_with_the_end_of_their_lease),
	    cmocka_unit_test(test_dead_letters_are_seen_the_oldest_first),
	    cmocka_unit_test(test_large_payloads_are_read_few_at_a_time),
	    cmocka_unit_test(test_what_is_no_entry_does_not_stop_the_others),
	    cmocka_unit_test(test_a_failure_ends_a_peek),
	    cmocka_unit_test(test_dead_letters_go_back_raw_to_their_levels),
	    cmocka_unit_test(test_dead_letters_are_purged),
	    cmocka_unit_test(test_returned_tasks_go_to_the_public_list_in_their_order),
	    cmocka_unit_test(test_a_level_is_purged_and_the_others_stay),
	    cmocka_unit_test(test_a_whole_queue_is_purged_but_for_claims_and_dead_letters),
	    cmocka_unit_test(test_a_paused_level_gives_nothing_until_it_is_resumed),
	    cmocka_unit_test(test_unknown_levels_are_refused_at_once),
	    cmocka_unit_test(test_whatever_is_under_way_ends_with_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
