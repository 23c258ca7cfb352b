/* test_change.c - adding, parking, restoring and removing members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/change.h"
#include "pool_stage.h"

#define A "http://192.0.2.1:80"
#define B "http://192.0.2.2:80"
#define SECRET_ID "http://192.0.2.9:80#0123456789abcdef"

struct outcome {
	int ends, result;
	char error[200];
	size_t count;
	enum placed placed[CHANGE_MAX];
};

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct outcome *outcome = arg;

	outcome->ends++;
	outcome->result = result;
	outcome->count = count;
	snprintf(outcome->error, sizeof(outcome->error), "%s", error);
	memcpy(outcome->placed, placed, count * sizeof(*placed));
}

static struct outcome change(struct pool_stage *p, enum change change,
			     const struct change_item *items, size_t count)
{
	struct outcome outcome = {0};

	assert_int_equal(pool_change(p->pool, change, "list:x", items, count, on_changed, &outcome),
			 0);
	assert_int_equal(outcome.ends, 0);
	STAGE_UNTIL(&p->stage, outcome.ends);
	assert_int_equal(outcome.count, count);
	return outcome;
}

/* Changes one member, which must end with `placed`. */
static void change_one(struct pool_stage *p, enum change kind, const char *id, enum placed placed)
{
	struct outcome outcome = change(p, kind, &(struct change_item){.id = id}, 1);

	if (outcome.result)
		fail_msg("%s: %s", result_word(outcome.result), outcome.error);
	assert_int_equal(outcome.placed[0], placed);
}

static void assert_scores(struct pool_stage *p, const char *pool, const char *parked)
{
	assert_string_equal(redis_ask(&p->redis, "ZRANGE pool 0 -1 WITHSCORES"), pool);
	assert_string_equal(redis_ask(&p->redis, "ZRANGE {pool}:pool:parked 0 -1 WITHSCORES"),
			    parked);
}

static void test_an_added_member_is_eligible_at_once(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	change_one(&p, CHANGE_ADD, A, PLACED_ELIGIBLE);
	assert_scores(&p, A " 0", "");
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:proxies " A), "sources=list:x");
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:health " A), "state=up");
	pool_stage_end(&p);
}

static void test_a_candidate_is_parked_until_it_is_judged(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_CANDIDATE, A, PLACED_CANDIDATE);
	change_one(&p, CHANGE_CANDIDATE, A, PLACED_PARKED);
	assert_scores(&p, "", A " 0");
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	assert_scores(&p, A " 0", "");
	pool_stage_end(&p);
}

static void test_a_parked_member_keeps_its_count_and_comes_back_by_the_rule(void **state)
{
	static const struct {
		const char *rule, *restored;
	} rows[] = {{"keep", A " 5 " B " 9"}, {"zero", A " 0 " B " 9"}, {"floor", A " 9 " B " 9"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pool_stage p;

		pool_stage_begin(&p);
		redis_askf(&p.redis, "HSET {pool}:pool:rules join %s", rows[i].rule);
		change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
		change_one(&p, CHANGE_ADD, B, PLACED_JOINED);
		redis_ask(&p.redis, "ZADD pool 5 " A " 9 " B);
		change_one(&p, CHANGE_PAUSE, A, PLACED_LEFT);
		assert_scores(&p, B " 9", A " 5");
		change_one(&p, CHANGE_PAUSE, A, PLACED_PARKED);
		change_one(&p, CHANGE_RESTORE, A, PLACED_JOINED);
		assert_scores(&p, rows[i].restored, "");
		change_one(&p, CHANGE_RESTORE, A, PLACED_ELIGIBLE);
		pool_stage_end(&p);
	}
}

static void test_a_paused_member_is_not_brought_back_by_a_list(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	change_one(&p, CHANGE_PAUSE, A, PLACED_LEFT);
	change_one(&p, CHANGE_ADD, A, PLACED_PARKED);
	assert_scores(&p, "", A " 0");
	pool_stage_end(&p);
}

static void test_credentials_come_with_the_member_and_go_with_it(void **state)
{
	const struct change_item item = {.id = SECRET_ID, .secret = "user:p%40ss"};
	struct outcome outcome;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	outcome = change(&p, CHANGE_ADD, &item, 1);
	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.placed[0], PLACED_JOINED);
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:secrets " SECRET_ID),
			    "user:p%40ss");
	change_one(&p, CHANGE_REMOVE, SECRET_ID, PLACED_REMOVED);
	assert_string_equal(redis_ask(&p.redis, "KEYS *"), "");
	pool_stage_end(&p);
}

static void test_credentials_stand_before_the_member(void **state)
{
	const struct change_item item = {.id = SECRET_ID, .secret = "u:p"};
	struct outcome outcome = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_play(&p);
	assert_int_equal(pool_change(p.pool, CHANGE_ADD, "cli", &item, 1, on_changed, &outcome), 0);
	peer_expect(&p.peer, "\r\nu:p\r\n");
	assert_int_equal(peer_count(&p.peer, "HSET"), 1);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	/* Refused: the chain ends here, before anybody could be handed the member. */
	peer_say(&p.peer, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
	STAGE_UNTIL(&p.stage, outcome.ends);
	assert_int_equal(outcome.result, REASON_STORE_REFUSED);
	assert_non_null(strstr(outcome.error, "OOM"));
	peer_listen_up(&p.peer);
	assert_int_equal(peer_count(&p.peer, "EVALSHA"), 0);
	pool_stage_end(&p);
}

static void test_removing_forgets_all_but_the_others(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	change_one(&p, CHANGE_ADD, B, PLACED_JOINED);
	change_one(&p, CHANGE_REMOVE, A, PLACED_REMOVED);
	change_one(&p, CHANGE_REMOVE, A, PLACED_UNKNOWN);
	assert_scores(&p, B " 0", "");
	assert_string_equal(redis_ask(&p.redis, "HKEYS {pool}:pool:proxies"), B);
	assert_string_equal(redis_ask(&p.redis, "HKEYS {pool}:pool:health"), B);
	pool_stage_end(&p);
}

static void test_an_unknown_member_gets_no_field(void **state)
{
	static const enum change kinds[] = {CHANGE_PAUSE, CHANGE_RESTORE, CHANGE_REMOVE};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct pool_stage p;

		pool_stage_begin(&p);
		change_one(&p, kinds[i], A, PLACED_UNKNOWN);
		assert_string_equal(redis_ask(&p.redis, "KEYS *"), "");
		pool_stage_end(&p);
	}
}

static void test_unknown_members_among_known_ones_keep_their_places(void **state)
{
	const struct change_item items[] = {
	    {.id = "http://192.0.2.7:80"}, {.id = A}, {.id = "nonsense"}, {.id = B}};
	struct outcome outcome;
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	change_one(&p, CHANGE_ADD, B, PLACED_JOINED);
	outcome = change(&p, CHANGE_PAUSE, items, 4);
	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.placed[0], PLACED_UNKNOWN);
	assert_int_equal(outcome.placed[1], PLACED_LEFT);
	assert_int_equal(outcome.placed[2], PLACED_UNKNOWN);
	assert_int_equal(outcome.placed[3], PLACED_LEFT);
	assert_string_equal(redis_ask(&p.redis, "HLEN {pool}:pool:admin"), "2");
	pool_stage_end(&p);
}

static void test_a_foreign_member_can_be_parked(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 3 foreign:1");
	change_one(&p, CHANGE_PAUSE, "foreign:1", PLACED_LEFT);
	assert_scores(&p, "", "foreign:1 3");
	change_one(&p, CHANGE_RESTORE, "foreign:1", PLACED_JOINED);
	assert_scores(&p, "foreign:1 3", "");
	pool_stage_end(&p);
}

static void test_as_many_as_fit_are_changed_and_no_more(void **state)
{
	static struct change_item items[CHANGE_MAX + 1];
	static char ids[CHANGE_MAX + 1][40];
	struct outcome outcome;
	struct pool_stage p;

	(void)state;
	for (size_t i = 0; i <= CHANGE_MAX; i++) {
		snprintf(ids[i], sizeof(ids[i]), "http://192.0.2.1:%zu", i + 1);
		items[i] = (struct change_item){.id = ids[i], .secret = "u:p"};
	}
	pool_stage_begin(&p);
	outcome = change(&p, CHANGE_ADD, items, CHANGE_MAX);
	assert_int_equal(outcome.result, 0);
	for (size_t i = 0; i < CHANGE_MAX; i++)
		assert_int_equal(outcome.placed[i], PLACED_JOINED);
	assert_string_equal(redis_ask(&p.redis, "ZCARD pool"), "128");
	assert_int_equal(
	    pool_change(p.pool, CHANGE_ADD, "x", items, CHANGE_MAX + 1, on_changed, NULL), -EINVAL);
	assert_int_equal(pool_change(p.pool, CHANGE_ADD, "x", items, 0, on_changed, NULL), -EINVAL);
	pool_stage_end(&p);
}

static void test_a_change_that_was_cut_off_is_completed_by_the_same(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	change_one(&p, CHANGE_ADD, A, PLACED_JOINED);
	/* Who parked died after the field and before the placing. */
	redis_ask(&p.redis, "HSET {pool}:pool:admin " A " state=paused");
	change_one(&p, CHANGE_PAUSE, A, PLACED_PARKED);
	assert_scores(&p, "", A " 0");
	pool_stage_end(&p);
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

static void on_rules(int result, const char *error, void *arg)
{
	struct outcome *outcome = arg;

	outcome->ends++;
	outcome->result = result;
	snprintf(outcome->error, sizeof(outcome->error), "%s", error);
}

static struct outcome write_rules(struct pool_stage *p, const char *name, const char *value)
{
	struct word words[2] = {WORD(name), WORD(value)};
	struct outcome outcome = {0};

	assert_int_equal(pool_write_rules(p->pool, words, *name ? 2 : 0, on_rules, &outcome), 0);
	STAGE_UNTIL(&p->stage, outcome.ends);
	return outcome;
}

static void test_rules_are_written_and_the_salt_stays(void **state)
{
	struct pool_stage p;
	char salt[80];

	(void)state;
	pool_stage_begin(&p);
	assert_int_equal(write_rules(&p, "", "").result, 0);
	assert_true(pool_rules(p.pool)->has_salt);
	assert_true(pool_rules(p.pool)->wire == POOL_WIRE);
	snprintf(salt, sizeof(salt), "%s", redis_ask(&p.redis, "HGET {pool}:pool:rules salt"));
	assert_int_equal(strlen(salt), 64);
	assert_int_equal(write_rules(&p, "join", "keep").result, 0);
	assert_string_equal(pool_rules(p.pool)->value[RULE_JOIN], "keep");
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:rules salt"), salt);
	pool_stage_end(&p);
}

static void test_a_newer_pool_is_not_written(void **state)
{
	struct outcome outcome = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "HSET {pool}:pool:rules wire 2");
	assert_int_equal(write_rules(&p, "join", "keep").result, REASON_STORE_NEWER);
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:rules join"), "nil");
	assert_int_equal(pool_read_rules(p.pool, on_rules, &outcome), 0);
	STAGE_UNTIL(&p.stage, outcome.ends);
	assert_int_equal(outcome.result, REASON_STORE_NEWER);
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_added_member_is_eligible_at_once),
	    cmocka_unit_test(test_a_candidate_is_parked_until_it_is_judged),
	    cmocka_unit_test(test_a_parked_member_keeps_its_count_and_comes_back_by_the_rule),
	    cmocka_unit_test(test_a_paused_member_is_not_brought_back_by_a_list),
	    cmocka_unit_test(test_credentials_come_with_the_member_and_go_with_it),
	    cmocka_unit_test(test_credentials_stand_before_the_member),
	    cmocka_unit_test(test_removing_forgets_all_but_the_others),
	    cmocka_unit_test(test_an_unknown_member_gets_no_field),
	    cmocka_unit_test(test_unknown_members_among_known_ones_keep_their_places),
	    cmocka_unit_test(test_a_foreign_member_can_be_parked),
	    cmocka_unit_test(test_as_many_as_fit_are_changed_and_no_more),
	    cmocka_unit_test(test_a_change_that_was_cut_off_is_completed_by_the_same),
	    cmocka_unit_test(test_rules_are_written_and_the_salt_stays),
	    cmocka_unit_test(test_a_newer_pool_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
