/* test_store_life.c - greeting, waiting, coming back; and a real server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "real_redis.h"
#include "store_stage.h"

/* --- greetings ---------------------------------------------------------------------------------------------------- */

static void test_a_greeting_that_is_refused_releases_nothing(void **state)
{
	static const struct {
		const char *userinfo, *reply;
		bool is_final;
	} rows[] = {
	    {"", "-ERR max number of clients reached\r\n", false},
	    {"", "-LOADING Redis is loading the dataset in memory\r\n" MASTER, false},
	    {"", "-MISCONF Errors writing to the AOF file\r\n" MASTER, false},
	    {"", "+PONG\r\n*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:1\r\n", false},
	    {"", "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n", true},
	    {"", "-DENIED Redis is running in protected mode\r\n", true},
	    {":pw@", "-WRONGPASS invalid username-password pair\r\n-NOAUTH x\r\n-NOAUTH x\r\n",
	     true},
	    {":pw@", "-ERR AUTH <password> called without any password configured\r\n", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct store_stage f;
		struct store_outcome outcome;
		bool is_final = false;

		store_stage_begin(&f, rows[i].userinfo, 60000, 60000);
		store_stage_ask(&f, 0, "secret", &outcome);
		peer_accept(&f.peer);
		peer_expect(&f.peer, "ROLE\r\n");
		peer_say(&f.peer, rows[i].reply);
		STAGE_UNTIL(&f.stage, *store_trouble(f.store, &is_final));
		assert_int_equal(is_final, rows[i].is_final);
		peer_listen_up(&f.peer);
		assert_int_equal(peer_count(&f.peer, "secret"), 0);
		if (is_final)
			store_stage_expect(&f, &outcome, REASON_STORE_NOT_DONE);
		store_stage_end(&f);
	}
}

static void test_a_role_that_we_may_not_ask_for_is_taken_for_a_master(void **state)
{
	struct store_stage f;

	(void)state;
	store_stage_begin(&f, "", 60000, 60000);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	peer_say(&f.peer, "+PONG\r\n-NOPERM this user has no permissions to run 'role'\r\n");
	STAGE_UNTIL(&f.stage, store_is_ready(f.store));
	store_stage_end(&f);
}

static void test_a_store_that_comes_back_after_a_final_error_is_used_again(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;
	bool is_final;

	(void)state;
	store_stage_begin(&f, ":pw@", 60000, 60000);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	peer_say(&f.peer, "-WRONGPASS invalid\r\n");
	STAGE_UNTIL(&f.stage, *store_trouble(f.store, &is_final));
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	peer_say(&f.peer, "+OK\r\n+PONG\r\n" MASTER);
	STAGE_UNTIL(&f.stage, store_is_ready(f.store));
	assert_string_equal(store_trouble(f.store, &is_final), "");
	assert_false(is_final);
	store_stage_ask(&f, 0, "a", &outcome);
	peer_expect(&f.peer, "\r\na\r\n");
	store_stage_end(&f);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static void test_an_absent_store_is_waited_for_and_not_longer(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_begin(&f, "", 60000, 100);
	peer_fini(&f.peer);
	store_stage_ask(&f, 0, "a", &outcome);
	store_stage_expect(&f, &outcome, REASON_STORE_NOT_DONE);
	/* It is known to be away: the next does not wait again. */
	int64_t began = stage_real_ms();
	store_stage_ask(&f, 0, "b", &outcome);
	store_stage_expect(&f, &outcome, REASON_STORE_NOT_DONE);
	assert_true(stage_real_ms() - began < 90);
	peer_listen_unix(&f.peer, &f.stage, f.path);
	store_stage_greet(&f);
	store_stage_end(&f);
}

static void test_waiting_for_a_silent_server_ends_in_time(void **state)
{
	struct store_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	store_stage_begin(&f, "", 60000, 60000);
	assert_int_equal(store_wait_ready(f.store, 50), REASON_STORE_NOT_DONE);
	assert_true(stage_real_ms() - began < 5000);
	store_stage_end(&f);
}

/* As a command does it: no tick wakes the loop. */
static void test_waiting_is_bounded_by_itself(void **state)
{
	struct store_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	store_stage_begin(&f, "", 3000, 60000);
	event_del(&f.stage.tick);
	assert_int_equal(store_wait_ready(f.store, 50), REASON_STORE_NOT_DONE);
	assert_true(stage_real_ms() - began < 1500);
	store_stage_end(&f);
}

static void test_a_server_that_never_greets_is_left(void **state)
{
	struct store_stage f;

	(void)state;
	store_stage_begin(&f, "", 50, 60000);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	store_stage_greet(&f);
	store_stage_end(&f);
}

static void test_too_many_operations_are_refused(void **state)
{
	struct word words[] = {WORD("PING")};
	static struct store_outcome outcome;
	struct store_stage f;
	int queued = 0;

	(void)state;
	outcome = (struct store_outcome){0};
	store_stage_begin(&f, "", 60000, 60000);
	while (queued < 100000 &&
	       store_command(f.store, 0, words, 1, store_stage_on_end, &outcome) == 0)
		queued++;
	assert_true(queued >= 1000 && queued < 100000);
	assert_int_equal(store_command(f.store, 0, words, 1, store_stage_on_end, &outcome),
			 -ENOBUFS);
	assert_int_equal(
	    store_script(f.store, SCRIPT_ALLOCATE, 0, words, 1, store_stage_on_end, &outcome),
	    -ENOBUFS);
	assert_int_equal(outcome.ends, 0);
	store_stage_end(&f);
	assert_int_equal(outcome.ends, queued);
	assert_int_equal(outcome.result, -ECANCELED);
}

static void ask_more(int result, const struct reply *reply, void *arg)
{
	struct store_stage *f = arg;
	struct word words[] = {WORD("PING")};

	(void)result;
	(void)reply;
	assert_int_equal(store_command(f->store, 0, words, 1, NULL, NULL), 0);
}

static void test_a_callback_may_ask_again_whatever_happened(void **state)
{
	struct store_stage f;
	struct word words[] = {WORD("PING")};

	(void)state;
	store_stage_begin(&f, "", 60000, 0);
	peer_fini(&f.peer);
	for (int i = 0; i < 10; i++)
		assert_int_equal(store_command(f.store, 0, words, 1, ask_more, &f), 0);
	STAGE_UNTIL(&f.stage, !store_is_busy(f.store));
	peer_listen_unix(&f.peer, &f.stage, f.path);
	store_stage_end(&f);
}

/* --- a real server ------------------------------------------------------------------------------------------------ */

static void begin_real(struct store_stage *f, struct real_redis *redis, const char *url,
		       int64_t timeout_ms)
{
	struct store_config config = {.timeout_ms = timeout_ms, .wait_ms = 5000};
	char error[200];

	memset(f, 0, sizeof(*f));
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&f->stage);
	assert_int_equal(store_url_parse(&config.url, url ? url : redis->url, error, sizeof(error)),
			 0);
	assert_int_equal(store_new(&f->store, f->stage.loop, &config), 0);
}

static void end_real(struct store_stage *f, struct real_redis *redis)
{
	store_free(f->store);
	stage_fini(&f->stage);
	redis_stop(redis);
}

static void test_a_script_flushed_away_runs_all_the_same(void **state)
{
	struct real_redis redis;
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	redis_start(&redis, NULL, NULL);
	begin_real(&f, &redis, NULL, 5000);
	redis_ask(&redis, "ZADD pool 0 a");
	for (int i = 0; i < 3; i++) {
		redis_ask(&redis, "SCRIPT FLUSH SYNC");
		store_stage_allocate(&f, &outcome);
		store_stage_expect(&f, &outcome, 0);
	}
	store_stage_allocate(&f, &outcome);
	store_stage_expect(&f, &outcome, 0);
	assert_string_equal(redis_ask(&redis, "ZSCORE pool a"), "4");
	assert_int_equal(redis_calls(&redis, "eval"), 3);
	end_real(&f, &redis);
}

static void test_a_wrong_password_is_final(void **state)
{
	struct real_redis redis;
	struct store_stage f;
	char url[160];
	bool is_final;

	(void)state;
	redis_start(&redis, "requirepass", "right");
	snprintf(url, sizeof(url), "unix://:wrong@%s", redis.socket);
	begin_real(&f, &redis, url, 5000);
	assert_int_equal(store_wait_ready(f.store, 5000), REASON_STORE_REFUSED);
	assert_non_null(strstr(store_trouble(f.store, &is_final), "WRONGPASS"));
	assert_null(strstr(store_trouble(f.store, &is_final), "wrong@"));
	assert_true(is_final);
	store_free(f.store);
	stage_fini(&f.stage);
	snprintf(url, sizeof(url), "unix://:right@%s?db=3", redis.socket);
	begin_real(&f, &redis, url, 5000);
	assert_int_equal(store_wait_ready(f.store, 5000), 0);
	end_real(&f, &redis);
}

static void test_a_stopped_server_gives_unknown_once_and_is_found_again(void **state)
{
	struct real_redis redis;
	struct store_stage f;
	struct store_outcome outcome, later;

	(void)state;
	redis_start(&redis, NULL, NULL);
	begin_real(&f, &redis, NULL, 200);
	redis_ask(&redis, "ZADD pool 0 a");
	assert_int_equal(store_wait_ready(f.store, 5000), 0);
	kill(redis.pid, SIGSTOP);
	store_stage_allocate(&f, &outcome);
	store_stage_expect(&f, &outcome, REASON_STORE_UNKNOWN);
	kill(redis.pid, SIGCONT);
	STAGE_UNTIL(&f.stage, store_is_ready(f.store));
	store_stage_allocate(&f, &later);
	store_stage_expect(&f, &later, 0);
	/* returned <= counted <= returned + ambiguous */
	assert_in_range(strtol(redis_ask(&redis, "ZSCORE pool a"), NULL, 10), 1, 2);
	end_real(&f, &redis);
}

static void test_a_thousand_operations_share_a_connection(void **state)
{
	static struct store_outcome outcomes[1000];
	struct real_redis redis;
	struct store_stage f;
	struct word words[] = {WORD("INCR"), WORD("n")};

	(void)state;
	memset(outcomes, 0, sizeof(outcomes));
	redis_start(&redis, NULL, NULL);
	begin_real(&f, &redis, NULL, 5000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(
		    store_command(f.store, 0, words, 2, store_stage_on_end, &outcomes[i]), 0);
	STAGE_UNTIL(&f.stage, !store_is_busy(f.store));
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(outcomes[i].ends, 1);
		assert_int_equal(strtol(outcomes[i].text, NULL, 10), i + 1);
	}
	end_real(&f, &redis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_greeting_that_is_refused_releases_nothing),
	    cmocka_unit_test(test_a_role_that_we_may_not_ask_for_is_taken_for_a_master),
	    cmocka_unit_test(test_a_store_that_comes_back_after_a_final_error_is_used_again),
	    cmocka_unit_test(test_an_absent_store_is_waited_for_and_not_longer),
	    cmocka_unit_test(test_waiting_for_a_silent_server_ends_in_time),
	    cmocka_unit_test(test_waiting_is_bounded_by_itself),
	    cmocka_unit_test(test_a_server_that_never_greets_is_left),
	    cmocka_unit_test(test_too_many_operations_are_refused),
	    cmocka_unit_test(test_a_callback_may_ask_again_whatever_happened),
	    cmocka_unit_test(test_a_script_flushed_away_runs_all_the_same),
	    cmocka_unit_test(test_a_wrong_password_is_final),
	    cmocka_unit_test(test_a_stopped_server_gives_unknown_once_and_is_found_again),
	    cmocka_unit_test(test_a_thousand_operations_share_a_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
