/* test_store.c - operations and their outcomes, on a server that is played line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "store_stage.h"

/* --- in order ----------------------------------------------------------------------------------------------------- */

static void test_operations_are_answered_in_their_order(void **state)
{
	struct store_stage f;
	struct store_outcome outcomes[3];

	(void)state;
	store_stage_ready(&f);
	for (int i = 0; i < 3; i++)
		store_stage_ask(&f, 0, i == 0 ? "a" : i == 1 ? "b" : "c", &outcomes[i]);
	assert_true(store_is_busy(f.store));
	peer_expect(&f.peer, "\r\nc\r\n");
	peer_say(&f.peer, "$1\r\nA\r\n$1\r\n");
	store_stage_expect(&f, &outcomes[0], 0);
	assert_int_equal(outcomes[1].ends, 0);
	peer_say(&f.peer, "B\r\n:3\r\n");
	store_stage_expect(&f, &outcomes[1], 0);
	store_stage_expect(&f, &outcomes[2], 0);
	assert_string_equal(outcomes[0].text, "A");
	assert_string_equal(outcomes[1].text, "B");
	assert_string_equal(outcomes[2].text, "3");
	assert_false(store_is_busy(f.store));
	store_stage_end(&f);
}

static void test_what_is_asked_before_the_store_is_ready_waits_for_the_greeting(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_begin(&f, "", 60000, 60000);
	store_stage_ask(&f, 0, "a", &outcome);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	peer_listen_up(&f.peer);
	assert_int_equal(peer_count(&f.peer, "GET"), 0);
	peer_say(&f.peer, "+PONG\r\n" MASTER);
	peer_expect(&f.peer, "GET\r\n");
	peer_say(&f.peer, "$-1\r\n");
	store_stage_expect(&f, &outcome, 0);
	store_stage_end(&f);
}

static void test_password_and_database_come_before_all(void **state)
{
	struct store_stage f;

	(void)state;
	store_stage_begin(&f, "user:secret@", 60000, 60000);
	peer_accept(&f.peer);
	peer_expect(&f.peer, "ROLE\r\n");
	assert_ptr_equal(strstr(f.peer.heard, "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n"),
			 f.peer.heard);
	peer_say(&f.peer, "+OK\r\n+PONG\r\n" MASTER);
	STAGE_UNTIL(&f.stage, store_is_ready(f.store));
	store_stage_end(&f);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void test_noscript_is_answered_by_eval_exactly_once(void **state)
{
	static const char noscript[] = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
	struct store_stage f;
	struct store_outcome outcome;
	char keys[64];

	(void)state;
	store_stage_ready(&f);
	store_stage_allocate(&f, &outcome);
	peer_expect(&f.peer, scripts[SCRIPT_ALLOCATE].sha1);
	peer_expect(&f.peer, "\r\n$1\r\n1\r\n$4\r\npool\r\n$1\r\n1\r\n");
	peer_forget(&f.peer);
	peer_say(&f.peer, noscript);
	snprintf(keys, sizeof(keys), "*5\r\n$4\r\nEVAL\r\n$%zu\r\n",
		 scripts[SCRIPT_ALLOCATE].source_len);
	peer_expect(&f.peer, keys);
	peer_expect(&f.peer, scripts[SCRIPT_ALLOCATE].source);
	peer_expect(&f.peer, "\r\n$1\r\n1\r\n$4\r\npool\r\n$1\r\n1\r\n");
	peer_say(&f.peer, noscript);
	store_stage_expect(&f, &outcome, REASON_STORE_REFUSED);
	peer_listen_up(&f.peer);
	assert_int_equal(peer_count(&f.peer, "EVAL"), 1);
	store_stage_end(&f);
}

static void test_what_passes_by_itself_is_sent_again_on_another_connection(void **state)
{
	static const char *const errors[] = {
	    "-LOADING Redis is loading the dataset in memory\r\n",
	    "-READONLY You can't write against a read only replica.\r\n",
	    "-BUSY Redis is busy running a script.\r\n",
	    "-MASTERDOWN Link with MASTER is down\r\n",
	    "-CLUSTERDOWN The cluster is down\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct store_stage f;
		struct store_outcome outcome;

		store_stage_ready(&f);
		store_stage_allocate(&f, &outcome);
		peer_expect(&f.peer, "EVALSHA");
		peer_say(&f.peer, errors[i]);
		store_stage_greet(&f);
		peer_expect(&f.peer, "EVALSHA");
		assert_int_equal(outcome.ends, 0);
		peer_say(&f.peer, "*1\r\n$1\r\na\r\n");
		store_stage_expect(&f, &outcome, 0);
		store_stage_end(&f);
	}
}

static void test_what_never_passes_ends_with_the_deadline_as_not_done(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_begin(&f, "", 60, 60000);
	store_stage_greet(&f);
	store_stage_allocate(&f, &outcome);
	while (!outcome.ends) {
		peer_expect(&f.peer, "EVALSHA");
		peer_say(&f.peer, "-BUSY Redis is busy running a script.\r\n");
		STAGE_UNTIL(&f.stage, outcome.ends || peer_is_called(&f.peer));
		if (!outcome.ends)
			store_stage_greet(&f);
		STAGE_UNTIL(&f.stage,
			    outcome.ends || (peer_listen_up(&f.peer), f.peer.heard_len > 0));
	}
	store_stage_expect(&f, &outcome, REASON_STORE_NOT_DONE);
	store_stage_end(&f);
}

static void test_operations_behind_a_transient_error_are_answered_first(void **state)
{
	struct store_stage f;
	struct store_outcome first, second;

	(void)state;
	store_stage_ready(&f);
	store_stage_allocate(&f, &first);
	store_stage_ask(&f, 0, "b", &second);
	peer_expect(&f.peer, "\r\nb\r\n");
	peer_say(&f.peer, "-READONLY You can't write against a read only replica.\r\n");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_false(peer_is_called(&f.peer));
	peer_say(&f.peer, "$1\r\nB\r\n");
	store_stage_expect(&f, &second, 0);
	assert_string_equal(second.text, "B");
	store_stage_greet(&f);
	peer_expect(&f.peer, "EVALSHA");
	peer_say(&f.peer, "*0\r\n");
	store_stage_expect(&f, &first, 0);
	store_stage_end(&f);
}

static void test_an_error_that_decides_is_told_with_its_text(void **state)
{
	static const struct {
		const char *error;
		int result;
	} rows[] = {
	    {"OOM command not allowed when used memory > 'maxmemory'.", REASON_STORE_REFUSED},
	    {"NOPERM this user has no permissions", REASON_STORE_REFUSED},
	    {"ERR fairlead: n must be 1 to 256", REASON_STORE_REFUSED},
	    {"WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on "
	     "@user_script:1.",
	     REASON_STORE_PARTIAL},
	};
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_ready(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		store_stage_allocate(&f, &outcome);
		peer_expect(&f.peer, "EVALSHA");
		peer_say(&f.peer, "-");
		peer_say(&f.peer, rows[i].error);
		peer_say(&f.peer, "\r\n");
		store_stage_expect(&f, &outcome, rows[i].result);
		assert_string_equal(outcome.text, rows[i].error);
		peer_forget(&f.peer);
	}
	assert_true(store_is_ready(f.store));
	store_stage_end(&f);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

static void test_in_flight_at_a_loss_is_unknown_unless_idempotent(void **state)
{
	struct store_stage f;
	struct store_outcome once, again, script;

	(void)state;
	store_stage_ready(&f);
	store_stage_ask(&f, 0, "once", &once);
	store_stage_ask(&f, STORE_IDEMPOTENT, "again", &again);
	store_stage_allocate(&f, &script);
	peer_expect(&f.peer, "EVALSHA");
	peer_close(&f.peer);
	store_stage_expect(&f, &once, REASON_STORE_UNKNOWN);
	store_stage_expect(&f, &script, REASON_STORE_UNKNOWN);
	store_stage_greet(&f);
	peer_expect(&f.peer, "again\r\n");
	peer_listen_up(&f.peer);
	assert_int_equal(peer_count(&f.peer, "*"), 1);
	peer_say(&f.peer, "$2\r\nok\r\n");
	store_stage_expect(&f, &again, 0);
	store_stage_end(&f);
}

static void test_half_a_reply_is_a_loss(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_ready(&f);
	store_stage_allocate(&f, &outcome);
	peer_expect(&f.peer, "EVALSHA");
	peer_say(&f.peer, "*1\r\n$5\r\nab");
	peer_close(&f.peer);
	store_stage_expect(&f, &outcome, REASON_STORE_UNKNOWN);
	store_stage_end(&f);
}

/* More than a socket takes: what stands behind it was surely never written. */
static void test_what_was_not_written_is_sent_again(void **state)
{
	static char big[4 << 20];
	struct store_stage f;
	struct store_outcome outcomes[2];
	struct word words[] = {WORD("SET"), WORD("big"), {big, sizeof(big)}};

	(void)state;
	memset(big, 'x', sizeof(big));
	memset(outcomes, 0, sizeof(outcomes));
	store_stage_ready(&f);
	assert_int_equal(store_command(f.store, 0, words, 3, store_stage_on_end, &outcomes[0]), 0);
	store_stage_allocate(&f, &outcomes[1]);
	peer_expect(&f.peer, "SET\r\n");
	peer_close(&f.peer);
	store_stage_expect(&f, &outcomes[0], REASON_STORE_UNKNOWN);
	store_stage_greet(&f);
	peer_expect(&f.peer, "EVALSHA");
	peer_say(&f.peer, "*1\r\n$1\r\na\r\n");
	store_stage_expect(&f, &outcomes[1], 0);
	store_stage_end(&f);
}

static void test_a_passed_deadline_is_unknown_and_ends_the_connection(void **state)
{
	struct store_stage f;
	struct store_outcome outcome, next;

	(void)state;
	store_stage_begin(&f, "", 200, 60000);
	store_stage_greet(&f);
	store_stage_allocate(&f, &outcome);
	peer_expect(&f.peer, "EVALSHA");
	store_stage_expect(&f, &outcome, REASON_STORE_UNKNOWN);
	/* The late answer belongs to nobody: a new connection, and its own answer. */
	peer_say(&f.peer, "*1\r\n$4\r\nlate\r\n");
	store_stage_greet(&f);
	store_stage_ask(&f, 0, "a", &next);
	peer_expect(&f.peer, "GET\r\n");
	peer_say(&f.peer, "$5\r\nright\r\n");
	store_stage_expect(&f, &next, 0);
	assert_string_equal(next.text, "right");
	store_stage_end(&f);
}

/* store.h: not done means surely not executed; this one may have been. */
static void test_an_idempotent_operation_that_was_in_flight_is_not_called_not_done(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;

	(void)state;
	store_stage_begin(&f, "", 200, 200);
	store_stage_greet(&f);
	store_stage_ask(&f, STORE_IDEMPOTENT, "a", &outcome);
	peer_expect(&f.peer, "GET\r\n");
	store_stage_expect(&f, &outcome, REASON_STORE_UNKNOWN);
	store_stage_end(&f);
}

static void test_what_is_no_reply_ends_the_connection(void **state)
{
	static const char *const replies[] = {
	    "HTTP/1.1 400 Bad Request\r\n\r\n",
	    "\x15\x03\x01\x00\x02\x02\x46",
	    "*2147483648\r\n",
	    "*2000000\r\n:1\r\n",
	    "*1\r\n*2000000\r\n:1\r\n",
	    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	    "$-2\r\n",
	    ":12x\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		struct store_stage f;
		struct store_outcome outcome;

		store_stage_ready(&f);
		store_stage_allocate(&f, &outcome);
		peer_expect(&f.peer, "EVALSHA");
		peer_say(&f.peer, replies[i]);
		store_stage_expect(&f, &outcome, REASON_STORE_UNKNOWN);
		store_stage_greet(&f);
		store_stage_end(&f);
	}
}

/* Nobody asked: whatever it is, it must not become the answer to the next question. */
static void test_an_unasked_reply_ends_the_connection(void **state)
{
	struct store_stage f;
	struct store_outcome outcome;
	bool is_final;

	(void)state;
	store_stage_ready(&f);
	peer_say(&f.peer, "-ERR max number of clients reached\r\n");
	STAGE_UNTIL(&f.stage, !store_is_ready(f.store));
	assert_non_null(strstr(store_trouble(f.store, &is_final), "max number of clients"));
	assert_false(is_final);
	store_stage_ask(&f, 0, "a", &outcome);
	store_stage_greet(&f);
	peer_expect(&f.peer, "GET\r\n");
	peer_say(&f.peer, "$2\r\nok\r\n");
	store_stage_expect(&f, &outcome, 0);
	assert_string_equal(outcome.text, "ok");
	store_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_operations_are_answered_in_their_order),
	    cmocka_unit_test(test_what_is_asked_before_the_store_is_ready_waits_for_the_greeting),
	    cmocka_unit_test(test_password_and_database_come_before_all),
	    cmocka_unit_test(test_noscript_is_answered_by_eval_exactly_once),
	    cmocka_unit_test(test_what_passes_by_itself_is_sent_again_on_another_connection),
	    cmocka_unit_test(test_what_never_passes_ends_with_the_deadline_as_not_done),
	    cmocka_unit_test(test_operations_behind_a_transient_error_are_answered_first),
	    cmocka_unit_test(test_an_error_that_decides_is_told_with_its_text),
	    cmocka_unit_test(test_in_flight_at_a_loss_is_unknown_unless_idempotent),
	    cmocka_unit_test(test_half_a_reply_is_a_loss),
	    cmocka_unit_test(test_what_was_not_written_is_sent_again),
	    cmocka_unit_test(test_a_passed_deadline_is_unknown_and_ends_the_connection),
	    cmocka_unit_test(
		test_an_idempotent_operation_that_was_in_flight_is_not_called_not_done),
	    cmocka_unit_test(test_what_is_no_reply_ends_the_connection),
	    cmocka_unit_test(test_an_unasked_reply_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
