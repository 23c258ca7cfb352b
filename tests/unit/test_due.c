/* test_due.c - whose check is due, and that every member has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pool/change.h"
#include "pool/due.h"
#include "pool_stage.h"

#define A "http://192.0.2.1:80"
#define B "http://192.0.2.2:80"
#define SECRET_ID "http://192.0.2.9:80#0123456789abcdef"
#define DUE "{pool}:pool:due"

struct taken {
	int ends, result;
	size_t count;
	struct member *members[DUE_MAX];
	int64_t next_ms;
};

static void on_taken(int result, struct member **members, size_t count, int64_t next_ms, void *arg)
{
	struct taken *taken = arg;

	taken->ends++;
	taken->result = result;
	taken->count = count;
	taken->next_ms = next_ms;
	if (count)
		memcpy(taken->members, members, count * sizeof(*members));
}

static struct taken take(struct pool_stage *p, size_t count)
{
	struct taken taken = {0};

	assert_int_equal(pool_due_take(p->pool, count, 60000, on_taken, &taken), 0);
	assert_int_equal(taken.ends, 0);
	STAGE_UNTIL(&p->stage, taken.ends);
	return taken;
}

static void drop(struct taken *taken)
{
	for (size_t i = 0; i < taken->count; i++)
		member_unref(taken->members[i]);
}

static void test_members_come_with_their_credentials(void **state)
{
	struct pool_stage p;
	struct taken taken;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD " DUE " 1 " A " 2 " SECRET_ID);
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " alice:sesame");
	taken = take(&p, DUE_MAX);
	assert_int_equal(taken.result, 0);
	assert_int_equal(taken.count, 2);
	for (size_t i = 0; i < 2; i++)
		if (strchr(taken.members[i]->id, '#'))
			assert_string_equal(taken.members[i]->endpoint.secret, "alice:sesame");
	drop(&taken);
	pool_stage_end(&p);
}

static void test_nobody_gets_a_member_twice_within_its_lease(void **state)
{
	struct pool_stage p;
	struct taken first, second;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD " DUE " 1 " A " 2 " B);
	first = take(&p, 1);
	assert_int_equal(first.next_ms, 0);
	assert_string_equal(first.members[0]->id, A);
	second = take(&p, 9);
	assert_int_equal(second.count, 1);
	assert_string_equal(second.members[0]->id, B);
	assert_in_range(second.next_ms, 50000, 60000);
	assert_int_equal(take(&p, 9).count, 0);
	drop(&first);
	drop(&second);
	pool_stage_end(&p);
}

static void test_an_empty_list_is_told(void **state)
{
	struct pool_stage p;
	struct taken taken;

	(void)state;
	pool_stage_begin(&p);
	taken = take(&p, 9);
	assert_int_equal(taken.result, 0);
	assert_int_equal(taken.count, 0);
	assert_true(taken.next_ms == -1);
	assert_int_equal(pool_due_take(p.pool, 0, 1000, on_taken, &taken), -EINVAL);
	pool_stage_end(&p);
}

static void test_members_that_are_given_back_are_due_at_once(void **state)
{
	struct pool_stage p;
	struct taken taken;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD " DUE " 1 " A " 2 " B);
	taken = take(&p, 2);
	redis_ask(&p.redis, "ZREM " DUE " " B);
	pool_due_return(p.pool, taken.members, taken.count);
	drop(&taken);
	taken = take(&p, 2);
	assert_int_equal(taken.count, 1);
	assert_string_equal(taken.members[0]->id, A);
	drop(&taken);
	pool_stage_end(&p);
}

static void test_a_member_that_cannot_be_read_is_told_as_a_failure(void **state)
{
	struct pool_stage p;
	struct taken taken;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 0 " A " 0 prose 0 " SECRET_ID);
	redis_ask(&p.redis, "ZADD " DUE " 1 " A " 2 prose 3 " SECRET_ID);
	taken = take(&p, 9);
	assert_int_equal(taken.count, 1);
	STAGE_UNTIL(&p.stage, !store_is_busy(p.store));
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:streaks prose"), "-1");
	assert_string_equal(redis_ask(&p.redis, "HGET {pool}:pool:streaks " SECRET_ID), "-1");
	assert_string_equal(redis_ask(&p.redis, "HLEN {pool}:pool:streaks"), "2");
	drop(&taken);
	pool_stage_end(&p);
}

static void test_a_store_s_error_is_told(void **state)
{
	struct pool_stage p;
	struct taken taken;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "SET " DUE " x");
	taken = take(&p, 9);
	assert_int_not_equal(taken.result, 0);
	assert_int_equal(taken.count, 0);
	pool_stage_end(&p);
}

/* --- mending ------------------------------------------------------------------------------------------------------ */

struct mended {
	int ends, result;
	bool is_complete;
};

static void on_mended(int result, bool is_complete, void *arg)
{
	struct mended *mended = arg;

	mended->ends++;
	mended->result = result;
	mended->is_complete = is_complete;
}

/* Slices until the walk is complete; returns how many. */
static int mend(struct pool_stage *p)
{
	struct mended mended = {0};

	for (int slices = 1; slices < 1000; slices++) {
		mended.ends = 0;
		assert_int_equal(pool_due_mend(p->pool, 60000, on_mended, &mended), 0);
		STAGE_UNTIL(&p->stage, mended.ends);
		assert_int_equal(mended.result, 0);
		if (mended.is_complete)
			return slices;
	}
	fail_msg("the walk has no end");
	return 0;
}

static void test_all_members_get_a_check_and_strangers_lose_theirs(void **state)
{
	static char command[40000];
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	for (int set = 0; set < 3; set++) {
		static const char *const sets[] = {"pool", "{pool}:pool:parked", DUE};
		size_t len = (size_t)sprintf(command, "ZADD %s", sets[set]);

		for (int i = 0; i < 1000; i++)
			len += (size_t)sprintf(command + len, " 1 http://%d.%d.example:80", i, set);
		redis_ask(&p.redis, command);
	}
	assert_true(mend(&p) > 3 * 1000 / 128);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " DUE), "2000");
	assert_string_equal(redis_ask(&p.redis, "ZSCORE " DUE " http://5.2.example:80"), "nil");
	pool_stage_end(&p);
}

/* A set that is kept packed is given whole, whatever number is asked for. */
static void test_a_small_set_comes_in_parts(void **state)
{
	static char command[20000];
	struct pool_stage p;
	size_t len = (size_t)sprintf(command, "ZADD pool");

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "CONFIG SET zset-max-ziplist-entries 1000");
	for (int i = 0; i < 300; i++)
		len += (size_t)sprintf(command + len, " 1 http://%d.example:80", i);
	redis_ask(&p.redis, command);
	assert_int_equal(mend(&p), 3);
	assert_string_equal(redis_ask(&p.redis, "ZCARD " DUE), "300");
	pool_stage_end(&p);
}

static void test_two_nodes_give_a_member_the_same_place(void **state)
{
	struct pool_stage p;
	double first, second;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 1 " A " 1 " B);
	mend(&p);
	first = atof(redis_ask(&p.redis, "ZSCORE " DUE " " B));
	first -= atof(redis_ask(&p.redis, "ZSCORE " DUE " " A));
	redis_ask(&p.redis, "DEL " DUE);
	mend(&p);
	second = atof(redis_ask(&p.redis, "ZSCORE " DUE " " B));
	second -= atof(redis_ask(&p.redis, "ZSCORE " DUE " " A));
	assert_true(first == second && first != 0);
	pool_stage_end(&p);
}

static void test_who_has_expired_is_parked_and_a_day_later_forgotten(void **state)
{
	const long long now = clock_wall_ms();
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 1 " A " 1 " B " 1 " SECRET_ID);
	redis_ask(&p.redis, "HSET {pool}:pool:secrets " SECRET_ID " u:p");
	redis_askf(&p.redis, "HSET {pool}:pool:admin %s expires_at=%lld", A, now - 1000);
	redis_askf(&p.redis, "HSET {pool}:pool:admin %s expires_at=%lld", B, now + 3600000);
	redis_askf(&p.redis, "HSET {pool}:pool:admin %s expires_at=%lld", SECRET_ID,
		   now - 86400000 - 1000);
	mend(&p);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE pool 0 -1"), B);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE {pool}:pool:parked 0 -1"), A);
	assert_string_equal(redis_ask(&p.redis, "EXISTS {pool}:pool:secrets"), "0");
	pool_stage_end(&p);
}

static void test_a_walk_goes_on_after_a_failure(void **state)
{
	struct mended mended = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "SET {pool}:pool:admin x");
	redis_ask(&p.redis, "ZADD pool 1 " A);
	assert_int_equal(pool_due_mend(p.pool, 1000, on_mended, &mended), 0);
	assert_int_equal(pool_due_mend(p.pool, 1000, on_mended, &mended), -EINVAL);
	STAGE_UNTIL(&p.stage, mended.ends);
	assert_int_not_equal(mended.result, 0);
	redis_ask(&p.redis, "DEL {pool}:pool:admin");
	mend(&p);
	mend(&p);
	assert_string_equal(redis_ask(&p.redis, "ZRANGE " DUE " 0 -1"), A);
	pool_stage_end(&p);
}

static void test_a_pool_may_end_before_its_walk(void **state)
{
	struct mended mended = {0};
	struct taken taken = {0};
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 1 " A);
	assert_int_equal(pool_due_mend(p.pool, 1000, on_mended, &mended), 0);
	assert_int_equal(pool_due_take(p.pool, 1, 1000, on_taken, &taken), 0);
	pool_stage_end(&p);
	assert_int_equal(mended.result, -ECANCELED);
	assert_int_equal(taken.result, -ECANCELED);
}

/* --- newcomers ---------------------------------------------------------------------------------------------------- */

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	(void)error;
	(void)placed;
	(void)count;
	assert_int_equal(result, 0);
	*(bool *)arg = true;
}

static void change(struct pool_stage *p, enum change kind, const struct change_item *items,
		   size_t count)
{
	bool is_done = false;

	assert_int_equal(pool_change(p->pool, kind, "x", items, count, on_changed, &is_done), 0);
	STAGE_UNTIL(&p->stage, is_done);
}

static void test_newcomers_are_due_a_hundred_within_a_second(void **state)
{
	static const enum change kinds[] = {CHANGE_ADD, CHANGE_CANDIDATE, CHANGE_SUPPLY};
	struct change_item items[101];
	char ids[101][30];
	struct pool_stage p;
	double first;

	(void)state;
	pool_stage_begin(&p);
	for (size_t kind = 0; kind < 3; kind++) {
		for (int i = 0; i < 101; i++) {
			sprintf(ids[i], "http://m%03d.example:80", i);
			items[i] = (struct change_item){.id = ids[i]};
		}
		redis_ask(&p.redis, "FLUSHALL");
		change(&p, kinds[kind], items, 101);
		assert_string_equal(redis_ask(&p.redis, "ZCARD " DUE), "101");
		first = atof(redis_askf(&p.redis, "ZSCORE " DUE " %s", ids[0]));
		assert_true(atof(redis_askf(&p.redis, "ZSCORE " DUE " %s", ids[100])) ==
			    first + 1000);
	}
	pool_stage_end(&p);
}

static void test_who_is_known_keeps_its_time(void **state)
{
	struct pool_stage p;

	(void)state;
	pool_stage_begin(&p);
	redis_ask(&p.redis, "ZADD pool 1 " A);
	redis_ask(&p.redis, "ZADD " DUE " 5 " A);
	change(&p, CHANGE_ADD, &(struct change_item){.id = A}, 1);
	assert_string_equal(redis_ask(&p.redis, "ZSCORE " DUE " " A), "5");
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_members_come_with_their_credentials),
	    cmocka_unit_test(test_nobody_gets_a_member_twice_within_its_lease),
	    cmocka_unit_test(test_an_empty_list_is_told),
	    cmocka_unit_test(test_members_that_are_given_back_are_due_at_once),
	    cmocka_unit_test(test_a_member_that_cannot_be_read_is_told_as_a_failure),
	    cmocka_unit_test(test_a_store_s_error_is_told),
	    cmocka_unit_test(test_all_members_get_a_check_and_strangers_lose_theirs),
	    cmocka_unit_test(test_a_small_set_comes_in_parts),
	    cmocka_unit_test(test_two_nodes_give_a_member_the_same_place),
	    cmocka_unit_test(test_who_has_expired_is_parked_and_a_day_later_forgotten),
	    cmocka_unit_test(test_a_walk_goes_on_after_a_failure),
	    cmocka_unit_test(test_a_pool_may_end_before_its_walk),
	    cmocka_unit_test(test_newcomers_are_due_a_hundred_within_a_second),
	    cmocka_unit_test(test_who_is_known_keeps_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
