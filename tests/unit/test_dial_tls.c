/* test_dial_tls.c - https proxies: TLS first, then what an http proxy gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/tls.h"
#include "dial_stage.h"
#include "tls_stage.h"

#define QUESTION "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"

struct fixture {
	struct dial_stage dial;
	struct tls_world world;
	struct tls_server server;
	struct tls *tls;
};

static void set_up(struct fixture *f)
{
	char error[200];

	dial_stage_begin(&f->dial);
	tls_world_init(&f->world);
	tls_server_init(&f->server, &f->dial.stage, &f->world.server);
	assert_int_equal(tls_new(&f->tls, f->world.ca_file, error, sizeof error), 0);
	f->dial.proxy.scheme = SCHEME_HTTPS;
	f->dial.request.tls = f->tls;
}

static void tear_down(struct fixture *f)
{
	dial_stage_end(&f->dial);
	tls_free(f->tls);
	tls_server_fini(&f->server);
	tls_world_fini(&f->world);
}

/* Dials; the server takes part in the handshake until it is done or the dial has ended. */
static void shake_hands(struct fixture *f)
{
	SSL_free(f->server.ssl);
	f->server.ssl = NULL;
	stream_close(&f->dial.stream);
	dial_stage_start(&f->dial);
	peer_accept(&f->dial.peer);
	STAGE_UNTIL(&f->dial.stage,
		    tls_server_accept(&f->server, f->dial.peer.fd) == 1 || f->dial.ends);
}

/* --- the tunnel --------------------------------------------------------------------------------------------------- */

static void test_the_question_and_the_answer_of_a_tunnel_go_through_tls(void **state)
{
	char secret[] = "Aladdin:open%20sesame";
	struct fixture f;

	(void)state;
	set_up(&f);
	assert_true(dial_forwards(&f.dial.proxy));
	shake_hands(&f);
	tls_server_expect(&f.server, QUESTION, sizeof QUESTION - 1);
	tls_server_say(&f.server, "HTTP/1.1 200 OK\r\n\r\nearly", 24);
	dial_stage_expect(&f.dial, 0);
	assert_int_equal(f.dial.status, 200);
	assert_int_equal(f.dial.early_len, 5);
	assert_memory_equal(f.dial.early, "early", 5);
	f.dial.proxy.secret = secret;
	shake_hands(&f);
	tls_server_expect(&f.server, QUESTION, sizeof QUESTION - 3);
	tls_server_expect(&f.server,
			  "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n", 59);
	tls_server_say(&f.server, "HTTP/1.1 407 No\r\n\r\n", 19);
	dial_stage_expect(&f.dial, REASON_PROXY_AUTH);
	tear_down(&f);
}

/* A configuration that is read anew brings another context. */
static void test_the_context_may_go_while_a_dial_needs_it(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	dial_stage_start(&f.dial);
	tls_free(f.tls);
	f.tls = NULL;
	peer_accept(&f.dial.peer);
	STAGE_UNTIL(&f.dial.stage, tls_server_accept(&f.server, f.dial.peer.fd) == 1);
	tls_server_expect(&f.server, QUESTION, sizeof QUESTION - 1);
	tls_server_say(&f.server, "HTTP/1.1 200 OK\r\n\r\n", 19);
	dial_stage_expect(&f.dial, 0);
	tear_down(&f);
}

static void test_an_answer_may_come_byte_by_byte(void **state)
{
	static const char answer[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
	struct fixture f;

	(void)state;
	set_up(&f);
	shake_hands(&f);
	for (size_t i = 0; i < sizeof answer - 1; i++) {
		assert_int_equal(f.dial.ends, 0);
		tls_server_say(&f.server, answer + i, 1); /* a record each */
		if (i % 2)
			stage_turn(&f.dial.stage);
	}
	dial_stage_expect(&f.dial, 0);
	tear_down(&f);
}

/* What is not early yet, and lies in OpenSSL, calls the new owner though the socket is silent. */
static void test_what_follows_the_answer_in_one_record_is_not_forgotten(void **state)
{
	char answer[5000] = "HTTP/1.1 200 OK\r\n\r\n", rest[5000];
	struct fixture f;
	ssize_t n;

	(void)state;
	set_up(&f);
	shake_hands(&f);
	memset(answer + 19, 'x', sizeof answer - 19);
	tls_server_say(&f.server, answer, sizeof answer);
	dial_stage_expect(&f.dial, 0);
	STAGE_UNTIL(&f.dial.stage, f.dial.calls);
	n = stream_read(&f.dial.stream, rest, sizeof rest);
	assert_int_equal(f.dial.early_len + (size_t)n, sizeof answer - 19);
	assert_memory_equal(rest, answer + 19, (size_t)n);
	tear_down(&f);
}

static void test_for_a_plain_request_there_is_only_the_tls_connection(void **state)
{
	struct fixture f;
	char byte;
	size_t n;

	(void)state;
	set_up(&f);
	f.dial.request.is_plain = true;
	shake_hands(&f);
	dial_stage_expect(&f.dial, 0);
	assert_false(SSL_read_ex(f.server.ssl, &byte, 1, &n));
	assert_int_equal(stream_write(&f.dial.stream, "GET http://a/ HTTP/1.1\r\n", 24), 24);
	tls_server_expect(&f.server, "GET http://a/ HTTP/1.1\r\n", 24);
	tear_down(&f);
}

static void test_without_a_context_no_https_proxy_is_connected_to(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.dial.request.tls = NULL;
	dial_stage_start(&f.dial);
	dial_stage_expect(&f.dial, REASON_PROXY_CANNOT);
	assert_false(peer_is_called(&f.dial.peer));
	tear_down(&f);
}

/* --- whom not to talk to ------------------------------------------------------------------------------------------ */

static void check_certificate(const char *names, int days, int result)
{
	struct identity identity;
	struct fixture f;

	set_up(&f);
	identity_make(&identity, &f.world.authority, names, days);
	tls_server_fini(&f.server);
	tls_server_init(&f.server, &f.dial.stage, &identity);
	shake_hands(&f);
	if (result)
		dial_stage_expect(&f.dial, result);
	else
		tls_server_expect(&f.server, QUESTION, sizeof QUESTION - 1);
	dial_cancel(f.dial.ends ? NULL : f.dial.dial);
	identity_free(&identity);
	tear_down(&f);
}

static void test_a_member_without_its_certificate_gets_no_question(void **state)
{
	(void)state;
	check_certificate("IP:127.0.0.1", 1, 0);
	check_certificate("IP:127.0.0.1", -1, REASON_PROXY_CERTIFICATE);
	check_certificate("IP:127.0.0.2", 1, REASON_PROXY_CERTIFICATE);
	check_certificate("DNS:localhost", 1, REASON_PROXY_CERTIFICATE);
}

static void test_a_pin_is_looked_up_by_the_member_s_place(void **state)
{
	struct fixture f;
	char place[40], pin[200], error[300];

	(void)state;
	set_up(&f);
	snprintf(place, sizeof place, "127.0.0.1:%u", f.dial.peer.port);
	identity_pin(&f.world.authority, place, pin, sizeof pin);
	assert_int_equal(tls_pin(f.tls, pin, error, sizeof error), 0);
	shake_hands(&f);
	dial_stage_expect(&f.dial, REASON_PROXY_CERTIFICATE);
	tear_down(&f);
}

static void check_words(const char *words, int result)
{
	struct fixture f;

	set_up(&f);
	dial_stage_start(&f.dial);
	peer_accept(&f.dial.peer);
	peer_say(&f.dial.peer, words);
	if (result == REASON_PROXY_RESET)
		peer_close(&f.dial.peer);
	dial_stage_expect(&f.dial, result);
	tear_down(&f);
}

static void test_what_is_no_tls_is_told_apart(void **state)
{
	(void)state;
	check_words("HTTP/1.1 400 Bad Request\r\n\r\n", REASON_PROXY_TLS);
	check_words("SSH-2.0-OpenSSH_9.2\r\n", REASON_PROXY_TLS);
	check_words("", REASON_PROXY_RESET);
	check_words("\x16\x03\x03", REASON_PROXY_RESET);
}

static void test_an_alert_is_told_by_its_own_reason(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	dial_stage_start(&f.dial);
	peer_accept(&f.dial.peer);
	peer_say_bytes(&f.dial.peer, "\x15\x03\x03\x00\x02\x02\x28", 7); /* handshake_failure */
	dial_stage_expect(&f.dial, REASON_PROXY_ALERT);
	tear_down(&f);
}

/* In TLS 1.3 the server looks for the client's certificate when the client's handshake is done. */
static void test_a_server_that_wants_a_certificate_of_ours_sends_an_alert(void **state)
{
	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct fixture f;

		set_up(&f);
		SSL_CTX_set_max_proto_version(f.server.context, version);
		SSL_CTX_set_verify(f.server.context,
				   SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		shake_hands(&f);
		dial_stage_expect(&f.dial, REASON_PROXY_ALERT);
		tear_down(&f);
	}
}

/* --- time and ends ------------------------------------------------------------------------------------------------ */

static void test_silence_and_drip_in_tls_end_at_the_one_deadline(void **state)
{
	(void)state;
	for (int drips = 0; drips < 2; drips++) {
		struct fixture f;
		int64_t began = stage_real_ms();

		set_up(&f);
		f.dial.request.connect_ms = 10;
		f.dial.request.total_ms = 60;
		dial_stage_start(&f.dial);
		peer_accept(&f.dial.peer);
		/* A record of 16 KiB, of which a byte comes now and then. */
		peer_say_bytes(&f.dial.peer, "\x16\x03\x03\x40\x00\x02", 6);
		while (!f.dial.ends && stage_real_ms() - began < 4000) {
			if (drips)
				peer_say(&f.dial.peer, "x");
			stage_turn(&f.dial.stage);
		}
		dial_stage_expect(&f.dial, REASON_PROXY_SILENT);
		tear_down(&f);
	}
}

static void test_silence_behind_tls_ends_at_the_same_deadline(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.dial.request.total_ms = 100;
	shake_hands(&f);
	dial_stage_expect(&f.dial, REASON_PROXY_SILENT);
	tear_down(&f);
}

static void test_a_dial_can_be_cancelled_in_every_state(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	dial_stage_start(&f.dial); /* connecting */
	dial_cancel(f.dial.dial);
	peer_accept(&f.dial.peer);
	dial_stage_start(&f.dial);
	peer_accept(&f.dial.peer);
	peer_expect(&f.dial.peer, "\x16\x03"); /* a ClientHello */
	dial_cancel(f.dial.dial);
	shake_hands(&f);
	dial_cancel(f.dial.dial);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.dial.stage);
	assert_int_equal(f.dial.ends, 0);
	tear_down(&f);
}

static void test_hanging_up_behind_tls_is_a_reset(void **state)
{
	struct fixture f;

	(void)state;
	for (int is_polite = 0; is_polite < 2; is_polite++) {
		set_up(&f);
		shake_hands(&f);
		tls_server_expect(&f.server, QUESTION, sizeof QUESTION - 1);
		if (is_polite)
			SSL_shutdown(f.server.ssl);
		peer_close(&f.dial.peer);
		dial_stage_expect(&f.dial, REASON_PROXY_RESET);
		tear_down(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_question_and_the_answer_of_a_tunnel_go_through_tls),
	    cmocka_unit_test(test_the_context_may_go_while_a_dial_needs_it),
	    cmocka_unit_test(test_an_answer_may_come_byte_by_byte),
	    cmocka_unit_test(test_what_follows_the_answer_in_one_record_is_not_forgotten),
	    cmocka_unit_test(test_for_a_plain_request_there_is_only_the_tls_connection),
	    cmocka_unit_test(test_without_a_context_no_https_proxy_is_connected_to),
	    cmocka_unit_test(test_a_member_without_its_certificate_gets_no_question),
	    cmocka_unit_test(test_a_pin_is_looked_up_by_the_member_s_place),
	    cmocka_unit_test(test_what_is_no_tls_is_told_apart),
	    cmocka_unit_test(test_an_alert_is_told_by_its_own_reason),
	    cmocka_unit_test(test_a_server_that_wants_a_certificate_of_ours_sends_an_alert),
	    cmocka_unit_test(test_silence_and_drip_in_tls_end_at_the_one_deadline),
	    cmocka_unit_test(test_silence_behind_tls_ends_at_the_same_deadline),
	    cmocka_unit_test(test_a_dial_can_be_cancelled_in_every_state),
	    cmocka_unit_test(test_hanging_up_behind_tls_is_a_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
