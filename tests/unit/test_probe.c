/* test_probe.c - a probe whose proxy, and the target behind it, the test plays line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "probe_stage.h"

#define REQUEST(line, secret)                                                                      \
	line " HTTP/1.1\r\nHost: target.example\r\n" secret                                        \
	     "User-Agent: fairlead/" FAIRLEAD_VERSION                                              \
	     "\r\nAccept: */*\r\nConnection: close\r\n\r\n"
#define CONNECT "CONNECT target.example:443 HTTP/1.1\r\nHost: target.example:443\r\n\r\n"

/* --- the request -------------------------------------------------------------------------------------------------- */

static void test_a_proxy_that_forwards_gets_the_request_of_a_client(void **state)
{
	char secret[] = "Aladdin:open%20sesame";
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	f.proxy.secret = secret;
	probe_stage_start(&f);
	probe_stage_hear_text(
	    &f, REQUEST("GET http://target.example/page",
			"Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
	clock_set(PROBE_STAGE_START_MS + 120);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	probe_stage_finish(&f, REASON_OK);
	assert_int_equal(f.outcome.status, 200);
	assert_int_equal(f.outcome.latency_ms, 120);
	assert_string_equal(f.outcome.exit_address, "");
	probe_stage_end(&f);
}

static void test_a_tunnel_carries_the_request_to_the_target(void **state)
{
	static const uint8_t question[] = "\x05\x01\x00\x03\x0etarget.example\x00\x50";
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_SOCKS5);
	probe_stage_start(&f);
	probe_stage_hear(&f, "\x05\x01\x00", 3);
	peer_say_bytes(&f.peer, "\x05\x00", 2);
	probe_stage_hear(&f, question, sizeof question - 1);
	peer_say_bytes(&f.peer, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", 10);
	probe_stage_hear_text(&f, REQUEST("GET /page", ""));
	peer_say(&f.peer, "HTTP/1.0 204 No Content\r\n\r\n");
	probe_stage_finish(&f, REASON_OK);
	probe_stage_end(&f);
}

static void test_for_a_tunnel_alone_the_proxy_s_answer_is_enough(void **state)
{
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	f.target = (struct target){TARGET_TUNNEL, "target.example", 443, "/"};
	probe_stage_start(&f);
	probe_stage_hear_text(&f, CONNECT);
	clock_set(PROBE_STAGE_START_MS + 7);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\n\r\n");
	probe_stage_finish(&f, REASON_OK);
	assert_int_equal(f.outcome.latency_ms, 7);
	assert_int_equal(f.outcome.status, 0);
	probe_stage_end(&f);
}

/* --- without a target --------------------------------------------------------------------------------------------- */

static void test_without_a_target_the_connection_is_enough_where_there_is_no_greeting(void **state)
{
	static const enum scheme schemes[] = {SCHEME_HTTP, SCHEME_SOCKS4, SCHEME_SOCKS4A};

	(void)state;
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		struct probe_stage f;

		probe_stage_begin(&f, schemes[i]);
		f.request.target = NULL;
		probe_stage_start(&f);
		probe_stage_finish(&f, REASON_OK);
		peer_listen_up(&f.peer);
		assert_int_equal(f.peer.heard_len, 0);
		probe_stage_end(&f);
	}
}

static void check_greeting(char *secret, const char *method, const char *verdict, int reason)
{
	static const char password[] = "\x01\x04user\x04pass";
	struct probe_stage f;

	probe_stage_begin(&f, SCHEME_SOCKS5);
	f.request.target = NULL;
	f.proxy.secret = secret;
	probe_stage_start(&f);
	probe_stage_hear(&f, secret ? "\x05\x02\x00\x02" : "\x05\x01\x00", secret ? 4 : 3);
	peer_say_bytes(&f.peer, method, 2);
	if (verdict) {
		probe_stage_hear(&f, password, sizeof password - 1);
		peer_say_bytes(&f.peer, verdict, 2);
	}
	probe_stage_finish(&f, reason);
	peer_listen_up(&f.peer);
	assert_int_equal(f.peer.heard_len, 0); /* nothing was asked for */
	probe_stage_end(&f);
}

static void test_without_a_target_a_socks5_proxy_is_greeted(void **state)
{
	char secret[] = "user:pass";

	(void)state;
	check_greeting(NULL, "\x05\x00", NULL, REASON_OK);
	check_greeting(NULL, "\x05\xff", NULL, REASON_PROXY_AUTH);
	check_greeting(NULL, "\x04\x00", NULL, REASON_PROXY_GARBAGE);
	check_greeting(secret, "\x05\x00", NULL, REASON_OK);
	check_greeting(secret, "\x05\x02", "\x01\x00", REASON_OK);
	check_greeting(secret, "\x05\x02", "\x01\x01", REASON_PROXY_AUTH);
}

static void test_without_a_target_there_is_nothing_to_try_of_a_direct_member(void **state)
{
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_DIRECT);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	f.request.target = NULL;
	probe_stage_launch(&f);
	probe_stage_finish(&f, REASON_OK);
	assert_false(peer_is_called(&f.peer));
	probe_stage_end(&f);
}

/* --- reasons ------------------------------------------------------------------------------------------------------ */

/* `answer` in pieces of `step`, then FIN. */
static void check_answer(const char *answer, size_t step, int reason)
{
	size_t len = strlen(answer);
	struct probe_stage f;

	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_expect(&f, "200", "needle");
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	for (size_t at = 0; at < len && !f.ends; at += step) {
		peer_say_bytes(&f.peer, answer + at, len - at < step ? len - at : step);
		stage_turn(&f.stage);
	}
	if (!f.ends)
		peer_close(&f.peer);
	probe_stage_finish(&f, reason);
	probe_stage_end(&f);
}

static void test_each_answer_has_its_reason_however_it_is_split(void **state)
{
	static const struct {
		const char *answer;
		int reason;
	} rows[] = {
	    {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nneedle", REASON_OK},
	    {"HTTP/1.1 200 OK\r\n\r\na needle, until the end", REASON_OK},
	    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhay", REASON_CHECK_TEXT},
	    {"HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\n\r\n",
	     REASON_CHECK_STATUS},
	    {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\nneedle", REASON_CHECK_STATUS},
	    {"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic\r\n\r\n", REASON_PROXY_AUTH},
	    {"SSH-2.0-OpenSSH_9.2\r\n", REASON_PROXY_GARBAGE},
	    {"HTTP/1.1 200 OK\r\nConte", REASON_PROXY_RESET},
	    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nneedle", REASON_RESPONSE_INCOMPLETE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		check_answer(rows[i].answer, 1, rows[i].reason);
		check_answer(rows[i].answer, 4096, rows[i].reason);
	}
}

static void test_a_connection_that_is_refused_or_reset_is_the_proxy_s(void **state)
{
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	peer_reset(&f.peer);
	probe_stage_finish(&f, REASON_PROXY_RESET);
	peer_fini(&f.peer);
	probe_stage_launch(&f);
	probe_stage_finish(&f, REASON_PROXY_REFUSED);
	peer_listen(&f.peer, &f.stage, "127.0.0.1");
	probe_stage_end(&f);
}

/* SOCKS4A: the name goes to the proxy, which opens the tunnel. */
static void open_socks4(struct probe_stage *f)
{
	static const char question[] = "\x04\x01\x00\x50\x00\x00\x00\x01\x00target.example";

	probe_stage_start(f);
	probe_stage_hear(f, question, sizeof question);
	clock_set(PROBE_STAGE_START_MS + PROBE_STAGE_TIMEOUT_MS / 2);
	peer_say_bytes(&f->peer, "\x00\x5a\x00\x00\x00\x00\x00\x00", 8);
	peer_expect(&f->peer, "\r\n\r\n");
}

/* Behind a tunnel the target speaks, not the proxy. */
static void test_behind_a_tunnel_neither_garbage_nor_a_407_is_the_proxy_s(void **state)
{
	static const struct {
		const char *answer;
		int reason;
	} rows[] = {{"SSH-2.0-x\r\n", REASON_RESPONSE_SYNTAX},
		    {"HTTP/1.1 407 Who?\r\n\r\n", REASON_CHECK_STATUS}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct probe_stage f;

		probe_stage_begin(&f, SCHEME_SOCKS4);
		probe_stage_expect(&f, "200", "");
		open_socks4(&f);
		peer_say(&f.peer, rows[i].answer);
		probe_stage_finish(&f, rows[i].reason);
		probe_stage_end(&f);
	}
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void test_silence_ends_at_the_deadline(void **state)
{
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	probe_stage_at_deadline(&f, REASON_PROXY_SILENT);
	probe_stage_end(&f);
	probe_stage_begin(&f, SCHEME_SOCKS5);
	probe_stage_start(&f);
	probe_stage_at_deadline(&f, REASON_PROXY_SILENT);
	probe_stage_end(&f);
}

static void test_an_answer_that_drips_moves_no_deadline(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	for (size_t i = 0; i < 40; i++) {
		clock_set(PROBE_STAGE_START_MS + (int64_t)i * PROBE_STAGE_TIMEOUT_MS / 40);
		peer_say_bytes(&f.peer, &answer[i], 1);
		stage_turn(&f.stage);
	}
	probe_stage_at_deadline(&f, REASON_RESPONSE_TIMEOUT);
	probe_stage_end(&f);
}

/* The dial takes its part of the one deadline. */
static void test_a_body_and_the_handshake_before_it_share_the_deadline(void **state)
{
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_SOCKS4);
	open_socks4(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nmore");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	probe_stage_at_deadline(&f, REASON_RESPONSE_TIMEOUT);
	probe_stage_end(&f);
}

static void test_a_cancelled_probe_says_nothing_and_hangs_up(void **state)
{
	char byte;
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	probe_cancel(f.probe);
	STAGE_UNTIL(&f.stage, recv(f.peer.fd, &byte, 1, MSG_DONTWAIT) == 0);
	assert_int_equal(f.ends, 0);
	probe_stage_end(&f);
}

/* --- judge -------------------------------------------------------------------------------------------------------- */

static void test_a_judge_s_answer_tells_the_exit_address(void **state)
{
	static const char body[] = "{\"judge\":1,\"address\":\"203.0.113.9\",\"headers\":[]}";
	char answer[300];
	struct probe_stage f;

	(void)state;
	probe_stage_begin(&f, SCHEME_HTTP);
	probe_stage_start(&f);
	peer_expect(&f.peer, "\r\n\r\n");
	snprintf(answer, sizeof answer,
		 "HTTP/1.1 200 OK\r\nFairlead-Judge: 1\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	peer_say(&f.peer, answer);
	probe_stage_finish(&f, REASON_OK);
	assert_string_equal(f.outcome.exit_address, "203.0.113.9");
	assert_int_equal(f.outcome.anonymity, ANONYMITY_ELITE);
	probe_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_proxy_that_forwards_gets_the_request_of_a_client),
	    cmocka_unit_test(test_a_tunnel_carries_the_request_to_the_target),
	    cmocka_unit_test(test_for_a_tunnel_alone_the_proxy_s_answer_is_enough),
	    cmocka_unit_test(
		test_without_a_target_the_connection_is_enough_where_there_is_no_greeting),
	    cmocka_unit_test(test_without_a_target_a_socks5_proxy_is_greeted),
	    cmocka_unit_test(test_without_a_target_there_is_nothing_to_try_of_a_direct_member),
	    cmocka_unit_test(test_each_answer_has_its_reason_however_it_is_split),
	    cmocka_unit_test(test_a_connection_that_is_refused_or_reset_is_the_proxy_s),
	    cmocka_unit_test(test_behind_a_tunnel_neither_garbage_nor_a_407_is_the_proxy_s),
	    cmocka_unit_test(test_silence_ends_at_the_deadline),
	    cmocka_unit_test(test_an_answer_that_drips_moves_no_deadline),
	    cmocka_unit_test(test_a_body_and_the_handshake_before_it_share_the_deadline),
	    cmocka_unit_test(test_a_cancelled_probe_says_nothing_and_hangs_up),
	    cmocka_unit_test(test_a_judge_s_answer_tells_the_exit_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
