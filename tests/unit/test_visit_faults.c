/* test_visit_faults.c - answers that are broken, too large, late or lead astray. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls_stage.h"
#include "visit_stage.h"

/* --- answers through an http member ------------------------------------------------------------------------------- */

static void check_response(const char *response, int reason)
{
	struct visit_stage f;

	visit_stage_begin(&f);
	visit_stage_ask(&f, response);
	visit_stage_expect(&f, reason);
	assert_true(f.detail[0] || reason == REASON_PROXY_AUTH);
	visit_stage_end(&f);
}

/* As the gateway says of a request that it passes on. */
static void test_a_broken_answer_is_the_member_s(void **state)
{
	(void)state;
	check_response("", REASON_PROXY_RESET);
	check_response("SSH-2.0-OpenSSH_9.2\r\n", REASON_RESPONSE_SYNTAX);
	check_response("HTTP/1.1 200 OK\r\nhello\r\n\r\n", REASON_RESPONSE_SYNTAX);
	check_response("HTTP/1.1 407 X\r\nContent-Length: 99\r\n\r\n", REASON_PROXY_AUTH);
	check_response("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello",
		       REASON_RESPONSE_SYNTAX);
}

static void test_an_answer_cut_short_is_nobody_s(void **state)
{
	(void)state;
	check_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		       REASON_RESPONSE_INCOMPLETE);
	check_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		       REASON_RESPONSE_INCOMPLETE);
}

static void test_a_reset_within_the_body_is_nobody_s(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	peer_reset(&f.peer);
	visit_stage_expect(&f, REASON_RESPONSE_INCOMPLETE);
	assert_int_equal(f.answer.status, 200);
	visit_stage_end(&f);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void check_late(const char *response)
{
	struct visit_stage f;

	visit_stage_begin(&f);
	f.request.timeout_ms = 100;
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, response);
	visit_stage_expect(&f, REASON_RESPONSE_TIMEOUT);
	visit_stage_end(&f);
}

static void test_the_deadline_covers_head_and_body(void **state)
{
	(void)state;
	check_late("");
	check_late("HTTP/1.1 200 OK\r\nX: ");
	check_late("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
}

static void test_redirects_do_not_move_the_deadline(void **state)
{
	struct visit_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	visit_stage_begin(&f);
	f.request.timeout_ms = 300;
	f.request.redirects_max = 1000000;
	visit_stage_start(&f);
	while (!f.ends && stage_real_ms() - began < STAGE_PATIENCE_MS) {
		if (peer_is_called(&f.peer)) {
			peer_accept(&f.peer);
			peer_say(&f.peer, "HTTP/1.1 302 X\r\nLocation: /again\r\n"
					  "Content-Length: 0\r\n\r\n");
		}
		stage_turn(&f.stage);
	}
	visit_stage_expect(&f, REASON_RESPONSE_TIMEOUT);
	visit_stage_end(&f);
}

/* --- size --------------------------------------------------------------------------------------------------------- */

static void check_size(size_t max, const char *response, int reason)
{
	struct visit_stage f;

	visit_stage_begin(&f);
	f.request.max_bytes = max;
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, response); /* the connection stays: nobody waits for its end */
	visit_stage_expect(&f, reason);
	visit_stage_end(&f);
}

static void test_a_body_may_reach_its_limit_and_no_more(void **state)
{
	(void)state;
	check_size(5, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REASON_OK);
	check_size(4, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		   REASON_RESPONSE_BODY_SIZE);
	check_size(4, "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\nh",
		   REASON_RESPONSE_BODY_SIZE);
	check_size(4, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		   REASON_RESPONSE_BODY_SIZE);
	check_size(0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REASON_OK);
}

#define GZIP "\x1f\x8b\x08\0\0\0\0\0\0\3"

struct bits {
	char bytes[1 << 16];
	size_t count;
};

/* RFC 1951 3.1.1: Huffman codes begin with their most significant bit. */
static void add_code(struct bits *bits, unsigned code, int len)
{
	for (int i = len - 1; i >= 0; i--, bits->count++)
		bits->bytes[bits->count / 8] |= (char)((code >> i & 1) << bits->count % 8);
}

/* RFC 1951 3.2.6: a block of fixed codes, which are a NUL and then copies of it, 258 bytes each. */
static void make_bomb(struct bits *bomb, size_t copies)
{
	memset(bomb, 0, sizeof(*bomb));
	memcpy(bomb->bytes, GZIP, 10);
	bomb->count = 80;
	add_code(bomb, 06, 3); /* the last block; type 1, its low bit first */
	add_code(bomb, 0x30, 8);
	for (size_t i = 0; i < copies; i++)
		add_code(bomb, 0xc5 << 5, 13); /* length 258, distance 1 */
}

/* N13: 160 times larger when decoded. */
static void test_a_gzip_bomb_stops_at_the_limit(void **state)
{
	static struct bits bomb;
	struct visit_stage f;

	(void)state;
	make_bomb(&bomb, 40000);
	visit_stage_begin(&f);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "Accept-Encoding:"), 1);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
	peer_say_bytes(&f.peer, bomb.bytes, bomb.count / 8);
	visit_stage_expect(&f, REASON_RESPONSE_BODY_SIZE);
	assert_in_range(f.answer.len, f.request.max_bytes / 2, f.request.max_bytes);
	visit_stage_end(&f);
}

static void test_a_compressed_body_arrives_decoded(void **state)
{
	static const char hello[] = GZIP "\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\5\0\0";
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
	peer_say_bytes(&f.peer, hello, sizeof(hello));
	peer_close(&f.peer);
	visit_stage_expect(&f, REASON_OK);
	assert_string_equal(f.body, "hello");
	visit_stage_end(&f);
}

/* --- redirects (S6) ----------------------------------------------------------------------------------------------- */

static void test_a_redirect_out_of_http_is_not_followed(void **state)
{
	static const char *const places[] = {"file:///etc/passwd",      "gopher://127.0.0.1:9/x",
					     "ftp://127.0.0.1:9/",      "dict://127.0.0.1:9/",
					     "http://127.0.0.1:99999/", "http://"};
	char response[200];

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct visit_stage f;

		visit_stage_begin(&f);
		snprintf(response, sizeof(response),
			 "HTTP/1.1 302 X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", places[i]);
		visit_stage_ask(&f, response);
		visit_stage_expect(&f, REASON_RESPONSE_REDIRECT);
		assert_int_equal(f.answer.status, 302);
		assert_false(peer_is_called(&f.peer));
		visit_stage_end(&f);
	}
}

static void test_there_is_an_end_to_redirects(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.request.redirects_max = 2;
	visit_stage_start(&f);
	for (int i = 0; i < 3; i++) {
		visit_stage_hear(&f);
		peer_say(&f.peer,
			 "HTTP/1.1 302 X\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n");
	}
	visit_stage_expect(&f, REASON_RESPONSE_REDIRECT);
	assert_int_equal(f.answer.redirects, 2);
	visit_stage_end(&f);
}

/* --- TLS with the target ------------------------------------------------------------------------------------------ */

struct tls_target {
	struct visit_stage visit;
	struct tls_world world;
	struct tls_server server;
};

static void begin_target(struct tls_target *t, const char *host)
{
	visit_stage_begin(&t->visit);
	tls_world_init(&t->world);
	tls_server_init(&t->server, &t->visit.stage, &t->world.server);
	t->visit.request.ca_file = t->world.ca_file;
	visit_stage_url(&t->visit, "https://%s/page", host);
	visit_stage_start(&t->visit);
	visit_stage_hear(&t->visit);
	peer_say(&t->visit.peer, "HTTP/1.1 200 Fine\r\nContent-Length: 5\r\nVia: x\r\n\r\n");
	peer_forget(&t->visit.peer);
}

static void end_target(struct tls_target *t)
{
	visit_stage_end(&t->visit);
	tls_server_fini(&t->server);
	tls_world_fini(&t->world);
}

static void shake_hands(struct tls_target *t)
{
	STAGE_UNTIL(&t->visit.stage,
		    tls_server_accept(&t->server, t->visit.peer.fd) == 1 || t->visit.ends);
}

static void test_an_https_target_is_spoken_to_through_the_tunnel(void **state)
{
	struct tls_target t;

	(void)state;
	begin_target(&t, "proxy.test");
	shake_hands(&t);
	tls_server_expect(&t.server, "GET /page HTTP/1.1\r\n", 20);
	tls_server_say(&t.server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 43);
	visit_stage_expect(&t.visit, REASON_OK);
	assert_string_equal(t.visit.headers, "Content-Length=5\n");
	assert_int_equal(t.visit.answer.connect_status, 200);
	assert_true(t.visit.answer.tls_us > 0);
	end_target(&t);
}

static void test_a_407_from_an_https_target_is_an_answer(void **state)
{
	struct tls_target t;

	(void)state;
	begin_target(&t, "proxy.test");
	shake_hands(&t);
	tls_server_say(&t.server, "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n", 37);
	visit_stage_expect(&t.visit, REASON_OK);
	assert_int_equal(t.visit.answer.status, 407);
	end_target(&t);
}

static void test_a_certificate_of_another_host_is_the_target_s(void **state)
{
	struct tls_target t;

	(void)state;
	begin_target(&t, "example.com");
	shake_hands(&t);
	visit_stage_expect(&t.visit, REASON_TARGET_CERTIFICATE);
	assert_true(t.visit.detail[0]);
	end_target(&t);
}

static void check_words(const char *words, bool closes, int reason)
{
	struct tls_target t;

	begin_target(&t, "proxy.test");
	peer_expect(&t.visit.peer, "\x16\x03"); /* a ClientHello */
	peer_say(&t.visit.peer, words);
	if (closes)
		peer_close(&t.visit.peer);
	visit_stage_expect(&t.visit, reason);
	end_target(&t);
}

/* As the checker says of a target. */
static void test_tls_that_fails_is_the_target_s_and_a_break_the_member_s(void **state)
{
	(void)state;
	check_words("SSH-2.0-x\r\n", false, REASON_TARGET_TLS);
	check_words("", true, REASON_PROXY_RESET);
}

static void check_said(const char *words, int reason)
{
	struct tls_target t;

	begin_target(&t, "proxy.test");
	shake_hands(&t);
	tls_server_expect(&t.server, "GET /page HTTP/1.1\r\n", 20);
	if (*words)
		tls_server_say(&t.server, words, strlen(words));
	peer_close(&t.visit.peer);
	visit_stage_expect(&t.visit, reason);
	end_target(&t);
}

static void test_nothing_said_through_tls_is_held_against_the_member(void **state)
{
	(void)state;
	check_said("SSH-2.0-OpenSSH_9.2\r\n", REASON_TARGET_FAILED);
	check_said("", REASON_RESPONSE_INCOMPLETE);
	check_said("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", REASON_RESPONSE_INCOMPLETE);
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void test_credentials_are_not_in_the_words(void **state)
{
	char secret[] = "alice:hello";
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	f.proxy.secret = secret;
	visit_stage_url(&f, "http://bob:secret@example.com/");
	visit_stage_ask(&f, "HTTP/1.1 302 X\r\nLocation: secret-hello://x/\r\n\r\n");
	visit_stage_expect(&f, REASON_RESPONSE_REDIRECT);
	assert_true(f.detail[0]);
	assert_null(strstr(f.detail, "hello"));
	assert_null(strstr(f.detail, "secret"));
	assert_null(strstr(f.final_url, "bob"));
	visit_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_broken_answer_is_the_member_s),
	    cmocka_unit_test(test_an_answer_cut_short_is_nobody_s),
	    cmocka_unit_test(test_a_reset_within_the_body_is_nobody_s),
	    cmocka_unit_test(test_the_deadline_covers_head_and_body),
	    cmocka_unit_test(test_redirects_do_not_move_the_deadline),
	    cmocka_unit_test(test_a_body_may_reach_its_limit_and_no_more),
	    cmocka_unit_test(test_a_gzip_bomb_stops_at_the_limit),
	    cmocka_unit_test(test_a_compressed_body_arrives_decoded),
	    cmocka_unit_test(test_a_redirect_out_of_http_is_not_followed),
	    cmocka_unit_test(test_there_is_an_end_to_redirects),
	    cmocka_unit_test(test_an_https_target_is_spoken_to_through_the_tunnel),
	    cmocka_unit_test(test_a_407_from_an_https_target_is_an_answer),
	    cmocka_unit_test(test_a_certificate_of_another_host_is_the_target_s),
	    cmocka_unit_test(test_tls_that_fails_is_the_target_s_and_a_break_the_member_s),
	    cmocka_unit_test(test_nothing_said_through_tls_is_held_against_the_member),
	    cmocka_unit_test(test_credentials_are_not_in_the_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
