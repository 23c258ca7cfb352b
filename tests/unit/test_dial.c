/* test_dial.c - handshakes with a proxy that is played line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "dial_stage.h"

/* --- the question ------------------------------------------------------------------------------------------------- */

static void test_the_proxy_is_asked_for_the_target_by_name(void **state)
{
	static const struct {
		const char *host, *authority;
		uint16_t port;
	} rows[] = {{"example.com", "example.com:443", 443},
		    {"192.0.2.1", "192.0.2.1:80", 80},
		    {"2001:db8::1", "[2001:db8::1]:65535", 65535}};
	char expected[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dial_stage f;

		dial_stage_begin(&f);
		f.request.host = rows[i].host;
		f.request.port = rows[i].port;
		dial_stage_ask(&f);
		snprintf(expected, sizeof(expected), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			 rows[i].authority, rows[i].authority);
		assert_string_equal(f.peer.heard, expected);
		dial_cancel(f.dial);
		dial_stage_end(&f);
	}
}

/* RFC 7617 2: base64 of the decoded user:password. */
static void test_credentials_go_to_the_proxy(void **state)
{
	char secret[] = "Aladdin:open%20sesame";
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.proxy.secret = secret;
	dial_stage_ask(&f);
	assert_int_equal(peer_count(&f.peer, "\r\nProxy-Authorization: Basic "
					     "QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"),
			 1);
	dial_cancel(f.dial);
	dial_stage_end(&f);
}

static void test_a_proxy_that_forwards_is_only_connected_to_for_a_plain_request(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.request.is_plain = true;
	assert_true(dial_forwards(&f.proxy));
	dial_stage_start(&f);
	dial_stage_expect(&f, 0);
	peer_accept(&f.peer);
	peer_listen_up(&f.peer);
	assert_int_equal(f.peer.heard_len, 0);
	dial_stage_end(&f);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static void check_answer(const char *answer, size_t step, int result, int status, const char *early)
{
	struct dial_stage f;
	size_t len = strlen(answer);

	dial_stage_begin(&f);
	dial_stage_ask(&f);
	for (size_t at = 0; at < len && !f.ends; at += step) {
		peer_say_bytes(&f.peer, answer + at, len - at < step ? len - at : step);
		if (step == 1)
			stage_turn(&f.stage);
	}
	dial_stage_expect(&f, result);
	assert_int_equal(f.status, status);
	if (step > 1) {
		assert_int_equal(f.early_len, strlen(early));
		assert_memory_equal(f.early, early, f.early_len);
	}
	dial_stage_end(&f);
}

static void test_a_2xx_opens_the_tunnel_and_what_follows_is_the_target_s(void **state)
{
	static const struct {
		const char *answer, *early;
	} rows[] = {
	    {"HTTP/1.1 200 OK\r\n\r\n", ""},
	    {"HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n", ""},
	    {"HTTP/1.1 200\r\n\r\n", ""},
	    {"HTTP/1.1 299 Fine\r\n\r\nearly", "early"},
	    /* RFC 9110 9.3.6: framing fields of a 2xx to CONNECT are ignored. */
	    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nearly", "early"},
	    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n", "5\r\n"},
	    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	     "HTTP/1.1 200 OK\r\n\r\n\x16\x03\x01",
	     "\x16\x03\x01"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int status = strstr(rows[i].answer, "299") ? 299 : 200;

		check_answer(rows[i].answer, 4096, 0, status, rows[i].early);
		check_answer(rows[i].answer, 1, 0, status, rows[i].early);
	}
}

/* DESIGN 6: whose fault an answer is. */
static void test_an_answer_other_than_2xx_is_blamed_by_its_status(void **state)
{
	static const struct {
		int status, result;
	} rows[] = {
	    {401, REASON_PROXY_AUTH},     {407, REASON_PROXY_AUTH},    {403, REASON_TARGET_DENIED},
	    {404, REASON_TARGET_UNKNOWN}, {502, REASON_TARGET_FAILED}, {503, REASON_TARGET_FAILED},
	    {504, REASON_TARGET_TIMEOUT}, {405, REASON_PROXY_CANNOT},  {501, REASON_PROXY_CANNOT}};
	char answer[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(answer, sizeof(answer), "HTTP/1.1 %d Sorry\r\nContent-Length: 2\r\n\r\nno",
			 rows[i].status);
		check_answer(answer, 4096, rows[i].result, rows[i].status, "");
		check_answer(answer, 1, rows[i].result, rows[i].status, "");
	}
}

static void test_what_is_no_http_is_garbage(void **state)
{
	static const char *const answers[] = {
	    "SSH-2.0-OpenSSH_9.2\r\n",
	    "\x05\x01",
	    "<html>\r\n\r\n",
	    "HTTP/2.0 200 OK\r\n\r\n",
	    "HTTP/1.1 20 OK\r\n\r\n",
	    "HTTP/1.1 2000 OK\r\n\r\n",
	    "HTTP/1.1 200 OK\n\n",
	    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		check_answer(answers[i], 4096, REASON_PROXY_GARBAGE, 0, "");
		check_answer(answers[i], 1, REASON_PROXY_GARBAGE, 0, "");
	}
}

static void test_endless_heads_end_by_their_size(void **state)
{
	static const char *const pieces[] = {"A: b\r\n", "x"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct dial_stage f;

		dial_stage_begin(&f);
		dial_stage_ask(&f);
		peer_say(&f.peer, "HTTP/1.1 200 OK\r\nX: ");
		for (int n = 0; n < 200000 && !f.ends; n++)
			peer_say(&f.peer, pieces[i]);
		dial_stage_expect(&f, REASON_PROXY_GARBAGE);
		dial_stage_end(&f);
	}
}

static void test_a_proxy_that_hangs_up_has_reset(void **state)
{
	static const char *const said[] = {"", "HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		for (int is_reset = 0; is_reset < 2; is_reset++) {
			struct dial_stage f;

			dial_stage_begin(&f);
			dial_stage_ask(&f);
			peer_say(&f.peer, said[i]);
			if (is_reset)
				peer_reset(&f.peer);
			else
				peer_close(&f.peer);
			dial_stage_expect(&f, REASON_PROXY_RESET);
			dial_stage_end(&f);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_proxy_is_asked_for_the_target_by_name),
	    cmocka_unit_test(test_credentials_go_to_the_proxy),
	    cmocka_unit_test(test_a_proxy_that_forwards_is_only_connected_to_for_a_plain_request),
	    cmocka_unit_test(test_a_2xx_opens_the_tunnel_and_what_follows_is_the_target_s),
	    cmocka_unit_test(test_an_answer_other_than_2xx_is_blamed_by_its_status),
	    cmocka_unit_test(test_what_is_no_http_is_garbage),
	    cmocka_unit_test(test_endless_heads_end_by_their_size),
	    cmocka_unit_test(test_a_proxy_that_hangs_up_has_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
