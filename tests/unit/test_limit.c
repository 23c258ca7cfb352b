/* test_limit.c - requests at a time and a second, counted in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pool/limit.h"
#include "pool_stage.h"

#define NOW 1000000

struct fixture {
	struct stage stage;
	struct limits *limits;
	int64_t retry_ms; /* of the last refusal */
};

static void begin(struct fixture *f, struct limits_config config)
{
	*f = (struct fixture){0};
	clock_set(NOW);
	stage_init(&f->stage);
	assert_int_equal(limits_new(&f->limits, f->stage.loop, NULL), 0);
	limits_set(f->limits, &config);
}

static void end(struct fixture *f)
{
	limits_free(f->limits);
	stage_fini(&f->stage);
	clock_set(-1);
}

static int take(struct fixture *f, struct ticket *ticket, const char *client, const char *host)
{
	f->retry_ms = 0;
	return ticket_take(f->limits, ticket, client, host, NULL, &f->retry_ms);
}

/* A request that begins and ends. */
static int pass(struct fixture *f, const char *client, const char *host)
{
	struct ticket ticket;
	int r = take(f, &ticket, client, host);

	ticket_return(&ticket);
	return r;
}

static bool holds_nothing(const struct ticket *ticket)
{
	return !ticket->limits && !ticket->cb && !ticket->call && !ticket->client && !ticket->host;
}

static void test_one_comes_when_one_ends(void **state)
{
	struct ticket tickets[3];
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.client_concurrent = 2});
	assert_int_equal(take(&f, &tickets[0], "c", "a"), 0);
	assert_int_equal(take(&f, &tickets[1], "c", "b"), 0);
	assert_int_equal(take(&f, &tickets[2], "c", "c"), REASON_CLIENT_LIMIT);
	assert_int_equal(f.retry_ms, 1000);
	assert_true(holds_nothing(&tickets[2]));
	assert_int_equal(pass(&f, "another", "c"), 0);
	ticket_return(&tickets[0]);
	assert_int_equal(take(&f, &tickets[2], "c", "c"), 0);
	ticket_return(&tickets[1]);
	ticket_return(&tickets[2]);
	end(&f);
}

/* By hand: four a second are 250 ms apart, and four may come at once. */
static void test_a_rate_is_a_burst_and_then_even(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.host_rate = 4});
	for (int i = 0; i < 4; i++)
		assert_int_equal(pass(&f, "c", "h"), 0);
	assert_int_equal(pass(&f, "c", "h"), REASON_HOST_RATE);
	assert_int_equal(f.retry_ms, 250);
	clock_set(NOW + 249);
	assert_int_equal(pass(&f, "d", "h"), REASON_HOST_RATE);
	assert_int_equal(f.retry_ms, 1);
	clock_set(NOW + 250);
	assert_int_equal(pass(&f, "c", "h"), 0);
	assert_int_equal(pass(&f, "c", "h"), REASON_HOST_RATE);
	assert_int_equal(f.retry_ms, 250);
	assert_int_equal(pass(&f, "c", "another"), 0);
	end(&f);
}

/* 30 a second are 33,334 us apart, so that a burst takes 20 us more than a second. */
static void test_after_a_change_nobody_waits_for_more_than_a_burst(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.host_rate = 30});
	for (int i = 0; i < 30; i++)
		assert_int_equal(pass(&f, "c", "h"), 0);
	limits_set(f.limits, &(struct limits_config){.host_rate = 1});
	assert_int_equal(pass(&f, "c", "h"), REASON_HOST_RATE);
	assert_int_equal(f.retry_ms, 1000);
	end(&f);
}

static void test_both_are_counted_or_neither(void **state)
{
	struct ticket ticket;
	struct fixture f;

	(void)state;
	begin(&f,
	      (struct limits_config){
		  .client_concurrent = 1, .client_rate = 2, .host_concurrent = 1, .host_rate = 1});
	assert_int_equal(take(&f, &ticket, "a", "h"), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pass(&f, "b", "h"), REASON_HOST_LIMIT);
	ticket_return(&ticket);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pass(&f, "b", "h"), REASON_HOST_RATE);
	/* None of these took anything of b's two a second. */
	assert_int_equal(pass(&f, "b", "i"), 0);
	assert_int_equal(pass(&f, "b", "j"), 0);
	assert_int_equal(pass(&f, "b", "k"), REASON_CLIENT_RATE);
	assert_int_equal(f.retry_ms, 500);
	end(&f);
}

static void test_a_client_and_a_host_of_one_name_are_two(void **state)
{
	struct ticket ticket;
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.client_concurrent = 1, .host_concurrent = 1});
	assert_int_equal(take(&f, &ticket, "x", "y"), 0);
	assert_int_equal(pass(&f, "y", "x"), 0);
	assert_int_equal(pass(&f, "x", "z"), REASON_CLIENT_LIMIT);
	assert_int_equal(pass(&f, "z", "y"), REASON_HOST_LIMIT);
	ticket_return(&ticket);
	end(&f);
}

static void test_without_limits_nothing_is_held(void **state)
{
	struct ticket ticket;
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){0});
	assert_int_equal(take(&f, &ticket, "c", "h"), 0);
	assert_true(holds_nothing(&ticket));
	ticket_return(&ticket);
	end(&f);
}

static void test_a_ticket_is_given_back_once(void **state)
{
	struct ticket tickets[2];
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.client_concurrent = 2});
	assert_int_equal(take(&f, &tickets[0], "c", "h"), 0);
	assert_int_equal(take(&f, &tickets[1], "c", "h"), 0);
	for (int i = 0; i < 3; i++)
		ticket_return(&tickets[0]);
	assert_true(holds_nothing(&tickets[0]));
	assert_int_equal(take(&f, &tickets[0], "c", "h"), 0);
	assert_int_equal(pass(&f, "c", "h"), REASON_CLIENT_LIMIT);
	ticket_return(&tickets[0]);
	ticket_return(&tickets[1]);
	end(&f);
}

static void test_changed_limits_hold_for_the_next_and_the_count_stays(void **state)
{
	static const struct {
		int64_t limit;
		int held, result; /* of one more, while so many of three are held */
	} rows[] = {{3, 3, REASON_CLIENT_LIMIT},
		    {4, 3, 0},
		    {1, 2, REASON_CLIENT_LIMIT},
		    {0, 2, 0},
		    {2, 1, 0},
		    {1, 1, REASON_CLIENT_LIMIT},
		    {1, 0, 0}};
	struct ticket tickets[3];
	int held = 3;
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.client_concurrent = 3});
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(&f, &tickets[i], "c", "h"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		while (held > rows[i].held)
			ticket_return(&tickets[--held]);
		limits_set(f.limits, &(struct limits_config){.client_concurrent = rows[i].limit});
		assert_int_equal(pass(&f, "c", "h"), rows[i].result);
	}
	end(&f);
}

static void pass_many(struct fixture *f, int count)
{
	char host[32];

	for (int i = 0; i < count; i++) {
		snprintf(host, sizeof(host), "host%d.example", i);
		assert_int_equal(pass(f, "c", host), 0);
	}
}

/* 65,536 are remembered: the first goes for the one that is too many, its rate with it. */
static void test_the_oldest_idle_one_goes_when_there_are_too_many(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.host_rate = 1});
	assert_int_equal(pass(&f, "c", "first"), 0);
	pass_many(&f, 65535);
	assert_int_equal(pass(&f, "c", "first"), REASON_HOST_RATE);
	assert_int_equal(pass(&f, "c", "one too many"), 0);
	assert_int_equal(pass(&f, "c", "first"), 0);
	end(&f);
}

static void test_one_that_holds_does_not_go(void **state)
{
	struct ticket ticket;
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.host_concurrent = 1, .host_rate = 1});
	assert_int_equal(take(&f, &ticket, "c", "kept"), 0);
	pass_many(&f, 70000);
	assert_int_equal(pass(&f, "c", "kept"), REASON_HOST_LIMIT);
	ticket_return(&ticket);
	assert_int_equal(pass(&f, "c", "kept"), REASON_HOST_RATE);
	end(&f);
}

/* Each that comes takes two with it that have recovered; who has no rate goes at once. */
static void test_memory_returns_when_rates_have_recovered(void **state)
{
	struct fixture f;
	size_t before;

	(void)state;
	begin(&f, (struct limits_config){.host_concurrent = 9});
	before = mallinfo2().uordblks;
	pass_many(&f, 1000);
	assert_true(mallinfo2().uordblks <= before);
	limits_set(f.limits, &(struct limits_config){.host_rate = 1});
	pass_many(&f, 1000);
	assert_true(mallinfo2().uordblks >= before); /* equal under ASan, which counts nothing */
	clock_set(NOW + 1000);
	limits_set(f.limits, &(struct limits_config){.host_concurrent = 1});
	for (int i = 0; i < 1000; i++)
		assert_int_equal(pass(&f, "c", "h"), 0);
	assert_true(mallinfo2().uordblks <= before);
	end(&f);
}

static void test_tickets_may_outlive_the_limits(void **state)
{
	struct ticket tickets[2];
	struct fixture f;

	(void)state;
	begin(&f, (struct limits_config){.client_concurrent = 2, .host_rate = 5});
	assert_int_equal(take(&f, &tickets[0], "c", "h"), 0);
	assert_int_equal(take(&f, &tickets[1], "c", "h"), 0);
	end(&f);
	ticket_return(&tickets[0]);
	ticket_return(&tickets[1]);
	assert_true(holds_nothing(&tickets[0]) && holds_nothing(&tickets[1]));
}

/* --- the same as the script --------------------------------------------------------------------------------------- */

struct judgement {
	bool is_there;
	int64_t code, wait_ms;
};

static void on_verdict(int result, const struct reply *reply, void *arg)
{
	struct judgement *verdict = arg;

	assert_int_equal(result, 0);
	*verdict = (struct judgement){true, reply_integer(reply_at(reply, 0), -1),
				      reply_integer(reply_at(reply, 1), -1)};
}

/* Asks limit.lua at a time of the test; the rate does not run out by the real clock. */
static struct judgement ask_script(struct pool_stage *p, int64_t now_ms, int id, const char *rate)
{
	struct judgement verdict = {0};
	char now[32], holder[16];

	snprintf(now, sizeof(now), "%lld000", (long long)now_ms);
	snprintf(holder, sizeof(holder), "h%d", id);
	assert_int_equal(
	    store_script(p->store, SCRIPT_LIMIT, 0,
			 (struct word[]){WORD("c"), WORD("cr"), WORD("h"), WORD("hr"), WORD(now),
					 WORD(holder), WORD("0"), WORD(rate), WORD("0"), WORD("0")},
			 10, on_verdict, &verdict),
	    0);
	assert_int_equal(
	    store_command(p->store, 0, (struct word[]){WORD("PERSIST"), WORD("cr")}, 2, NULL, NULL),
	    0);
	STAGE_UNTIL(&p->stage, verdict.is_there);
	return verdict;
}

static void test_rates_are_those_of_the_script(void **state)
{
	static const char *const rates[] = {"1", "3", "7", "30", "2"};
	struct pool_stage p;
	struct fixture f = {0};
	int64_t now_ms = NOW;

	(void)state;
	pool_stage_begin(&p);
	assert_int_equal(limits_new(&f.limits, p.stage.loop, NULL), 0);
	srandom(7);
	for (int i = 0; i < 600; i++) {
		const char *rate = rates[i / 120];
		struct judgement verdict;

		now_ms += random() % 3 ? random() % 60 : random() % 900;
		clock_set(now_ms);
		limits_set(f.limits, &(struct limits_config){.client_rate = atoi(rate)});
		verdict = ask_script(&p, now_ms, i, rate);
		assert_int_equal(pass(&f, "c", "h"), verdict.code ? REASON_CLIENT_RATE : 0);
		assert_true(f.retry_ms == verdict.wait_ms);
	}
	clock_set(-1);
	limits_free(f.limits);
	pool_stage_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_comes_when_one_ends),
	    cmocka_unit_test(test_a_rate_is_a_burst_and_then_even),
	    cmocka_unit_test(test_after_a_change_nobody_waits_for_more_than_a_burst),
	    cmocka_unit_test(test_both_are_counted_or_neither),
	    cmocka_unit_test(test_a_client_and_a_host_of_one_name_are_two),
	    cmocka_unit_test(test_without_limits_nothing_is_held),
	    cmocka_unit_test(test_a_ticket_is_given_back_once),
	    cmocka_unit_test(test_changed_limits_hold_for_the_next_and_the_count_stays),
	    cmocka_unit_test(test_the_oldest_idle_one_goes_when_there_are_too_many),
	    cmocka_unit_test(test_one_that_holds_does_not_go),
	    cmocka_unit_test(test_memory_returns_when_rates_have_recovered),
	    cmocka_unit_test(test_tickets_may_outlive_the_limits),
	    cmocka_unit_test(test_rates_are_those_of_the_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
