/* test_stream_tls.c - bytes through a TLS stream: in both directions, at the end of one, under pressure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <openssl/err.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stream.h"
#include "base/tls.h"
#include "tls_stage.h"

/* A stream of ours that takes what comes, `read_size` bytes a call, and a server, joined by a socket pair. */
struct fixture {
	struct stage stage;
	struct tls_world world;
	struct tls_server server;
	struct tls *tls;
	struct stream stream;
	int far, handshake;
	size_t read_size;
	int reads, writes; /* calls */
	char heard[1000];
	size_t heard_len;
	ssize_t end; /* what ended the reading; 1: nothing did */
};

static void take(struct fixture *f)
{
	char *at = f->heard + f->heard_len;
	ssize_t n = stream_read(&f->stream, at, f->read_size);

	f->reads++;
	if (n > 0)
		f->heard_len += (size_t)n;
	else if (n != -EAGAIN)
		f->end = n;
	if (f->end != 1)
		stream_want(&f->stream, 0);
}

static void on_stream(struct stream *stream, int ready, void *arg)
{
	struct fixture *f = arg;

	if (f->handshake == -EAGAIN) {
		f->handshake = stream_handshake(stream);
		if (!f->handshake)
			stream_want(stream, 0);
	} else if (ready == STREAM_READ) {
		take(f);
	} else {
		f->writes++;
	}
}

/* The server speaks no version above `version`; 0: the newest. */
static void set_up_version(struct fixture *f, int version)
{
	char error[200];
	int ends[2];

	memset(f, 0, sizeof *f);
	f->read_size = 100;
	f->end = 1;
	stage_init(&f->stage);
	tls_world_init(&f->world);
	tls_server_init(&f->server, &f->stage, &f->world.server);
	SSL_CTX_set_max_proto_version(f->server.context, version);
	assert_int_equal(tls_new(&f->tls, f->world.ca_file, error, sizeof error), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	f->far = ends[1];
	stream_open(&f->stream, f->stage.loop, ends[0], on_stream, f);
	assert_int_equal(stream_handshake(&f->stream), 0); /* a plain stream has none */
	assert_int_equal(stream_start_tls(&f->stream, f->tls, "proxy.test", 443), 0);
	f->handshake = stream_handshake(&f->stream);
	stream_want(&f->stream, STREAM_READ);
	STAGE_UNTIL(&f->stage, tls_server_accept(&f->server, f->far) != 0 && f->handshake == 0);
}

static void set_up(struct fixture *f)
{
	set_up_version(f, 0);
}

static void tear_down(struct fixture *f)
{
	stream_close(&f->stream);
	tls_free(f->tls);
	tls_server_fini(&f->server);
	if (f->far >= 0)
		close(f->far);
	tls_world_fini(&f->world);
	stage_fini(&f->stage);
}

static void turn(struct fixture *f, int turns)
{
	while (turns-- > 0)
		stage_turn(&f->stage);
}

/* --- what OpenSSL holds ------------------------------------------------------------------------------------------- */

static void test_bytes_that_were_read_ahead_call_again_though_the_socket_is_silent(void **state)
{
	struct fixture f;
	char byte;

	(void)state;
	set_up(&f);
	f.read_size = 7;
	for (int i = 0; i < 5; i++)
		tls_server_say(&f.server, "0123456789", 10);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.heard_len >= 7);
	assert_int_equal(recv(f.stream.fd, &byte, 1, MSG_PEEK), -1); /* all is in OpenSSL */
	STAGE_UNTIL(&f.stage, f.heard_len == 50);
	assert_memory_equal(f.heard, "01234567890123456789012345678901234567890123456789", 50);
	tear_down(&f);
}

static void test_who_does_not_want_to_read_is_not_called(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.read_size = 7;
	tls_server_say(&f.server, "0123456789", 10);
	tls_server_say(&f.server, "0123456789", 10);
	turn(&f, 5);
	assert_int_equal(f.reads, 0);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.reads == 1);
	stream_want(&f.stream, 0);
	turn(&f, 5);
	assert_int_equal(f.reads, 1);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.heard_len == 20);
	tear_down(&f);
}

/* A part of a record is held, but cannot be read: nothing may spin until the rest comes. */
static void test_half_a_record_does_not_call(void **state)
{
	struct fixture f;
	BIO *record = BIO_new(BIO_s_mem());
	char *bytes;
	long len;
	int reads;

	(void)state;
	set_up(&f);
	stream_want(&f.stream, STREAM_READ);
	turn(&f, 3);
	BIO_up_ref(record);
	SSL_set0_wbio(f.server.ssl, record);
	tls_server_say(&f.server, "0123456789", 10);
	len = BIO_get_mem_data(record, &bytes);
	assert_int_equal(send(f.far, bytes, (size_t)len - 1, 0), len - 1);
	turn(&f, 3);
	reads = f.reads;
	turn(&f, 5);
	assert_int_equal(f.reads, reads);
	assert_int_equal(f.heard_len, 0);
	assert_int_equal(send(f.far, bytes + len - 1, 1, 0), 1);
	STAGE_UNTIL(&f.stage, f.heard_len == 10);
	BIO_free(record);
	tear_down(&f);
}

static void test_one_read_takes_several_records(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int i = 0; i < 5; i++)
		tls_server_say(&f.server, "0123456789", 10);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.heard_len);
	assert_int_equal(f.heard_len, 50);
	tear_down(&f);
}

static void test_an_idle_stream_is_not_called(void **state)
{
	struct fixture f;
	int reads;

	(void)state;
	set_up(&f);
	stream_want(&f.stream, STREAM_READ);
	turn(&f, 5); /* session tickets are read, and are nothing */
	reads = f.reads;
	turn(&f, 10);
	assert_int_equal(f.reads, reads);
	stream_want(&f.stream, STREAM_READ | STREAM_WRITE);
	STAGE_UNTIL(&f.stage, f.writes);
	assert_int_equal(f.reads, reads);
	tear_down(&f);
}

static void on_other(struct stream *stream, int ready, void *arg)
{
	struct fixture *f = arg;

	assert_int_equal(ready, STREAM_READ);
	f->end = stream_read(stream, f->heard, sizeof f->heard);
	stream_want(stream, 0);
}

static void test_another_owner_is_called_for_what_is_held(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	tls_server_say(&f.server, "0123456789", 10);
	f.read_size = 3;
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.heard_len);
	stream_hand_over(&f.stream, on_other, &f);
	STAGE_UNTIL(&f.stage, f.end != 1);
	assert_int_equal(f.end, 7);
	assert_memory_equal(f.heard, "3456789", 7);
	tear_down(&f);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void check_end_of_server(int version)
{
	struct fixture f;

	set_up_version(&f, version);
	tls_server_say(&f.server, "last", 4);
	SSL_shutdown(f.server.ssl);
	shutdown(f.far, SHUT_WR);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.end != 1);
	assert_int_equal(f.end, 0);
	assert_int_equal(f.heard_len, 4);
	assert_false(stream_is_truncated(&f.stream));
	/* The other direction still stands (RFC 8446 6.1). */
	assert_int_equal(stream_write(&f.stream, "more", 4), 4);
	tls_server_expect(&f.server, "more", 4);
	tear_down(&f);
}

static void test_the_server_can_end_its_side_alone(void **state)
{
	(void)state;
	check_end_of_server(TLS1_2_VERSION);
	check_end_of_server(TLS1_3_VERSION);
}

static bool has_said_goodbye(struct fixture *f)
{
	char byte;
	size_t n;

	ERR_clear_error();
	return !SSL_read_ex(f->server.ssl, &byte, 1, &n) &&
	       SSL_get_error(f->server.ssl, 0) == SSL_ERROR_ZERO_RETURN;
}

static void test_we_can_end_our_side_alone(void **state)
{
	struct fixture f;
	char byte;

	(void)state;
	set_up(&f);
	assert_int_equal(stream_write(&f.stream, "last", 4), 4);
	assert_int_equal(stream_shutdown(&f.stream), 0);
	tls_server_expect(&f.server, "last", 4);
	STAGE_UNTIL(&f.stage, has_said_goodbye(&f));
	STAGE_UNTIL(&f.stage, recv(f.far, &byte, 1, 0) == 0); /* and FIN */
	tls_server_say(&f.server, "answer", 6);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.heard_len == 6);
	tear_down(&f);
}

/* The socket is full when the end is to be said: it is said later, without anybody asking. */
static void test_a_goodbye_waits_for_the_socket(void **state)
{
	struct fixture f;
	size_t sent = 0, got = 0, n;
	char byte = 'x';

	(void)state;
	set_up(&f);
	while (stream_write(&f.stream, &byte, 1) == 1)
		sent++;
	/* One record out, the one that waited in: it is full again, and OpenSSL holds nothing. */
	while (stream_write(&f.stream, &byte, 1) == -EAGAIN)
		got += (size_t)SSL_read_ex(f.server.ssl, &byte, 1, &n);
	sent++;
	assert_int_equal(stream_shutdown(&f.stream), 0);
	while (got < sent && SSL_read_ex(f.server.ssl, &byte, 1, &n))
		got++;
	assert_int_equal(got, sent);
	assert_false(has_said_goodbye(&f));
	STAGE_UNTIL(&f.stage, has_said_goodbye(&f));
	STAGE_UNTIL(&f.stage, recv(f.far, &byte, 1, 0) == 0);
	tear_down(&f);
}

static void test_an_end_without_goodbye_is_told(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	tls_server_say(&f.server, "part", 4);
	assert_false(stream_is_truncated(&f.stream));
	shutdown(f.far, SHUT_WR);
	stream_want(&f.stream, STREAM_READ);
	STAGE_UNTIL(&f.stage, f.end != 1);
	assert_int_equal(f.end, 0); /* like a FIN */
	assert_int_equal(f.heard_len, 4);
	assert_true(stream_is_truncated(&f.stream));
	assert_int_equal(stream_read(&f.stream, f.heard, 10), 0); /* and it stays so */
	/* For a tunnel it is only the end of one direction. */
	assert_int_equal(stream_write(&f.stream, "more", 4), 4);
	tls_server_expect(&f.server, "more", 4);
	tear_down(&f);
}

static void test_a_record_that_was_tampered_with_breaks_the_stream(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	stream_want(&f.stream, STREAM_READ);
	assert_int_equal(send(f.far, "\x17\x03\x03\x00\x20 this was encrypted by nobody...", 37, 0),
			 37);
	STAGE_UNTIL(&f.stage, f.end != 1);
	assert_int_equal(f.end, -EPROTO);
	assert_true(*stream_trouble(&f.stream));
	tear_down(&f);
}

/* TLS 1.3: the server judges the client after the client's handshake is done. */
static void test_an_alert_behind_the_handshake_is_told(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	/* A record that is none of ours makes the server send an alert. */
	assert_int_equal(
	    send(f.stream.fd, "\x17\x03\x03\x00\x20 this was encrypted by nobody...", 37, 0), 37);
	STAGE_UNTIL(&f.stage,
		    !has_said_goodbye(&f) && (stream_want(&f.stream, STREAM_READ), f.end != 1));
	assert_int_equal(f.end, -ECONNABORTED);
	tear_down(&f);
}

static void test_a_close_says_goodbye_and_a_reset_does_not(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	stream_close(&f.stream);
	STAGE_UNTIL(&f.stage, has_said_goodbye(&f));
	stream_close(&f.stream);
	tear_down(&f);
	set_up(&f);
	stream_reset(&f.stream);
	assert_false(stream_is_open(&f.stream));
	turn(&f, 3);
	assert_false(has_said_goodbye(&f));
	tear_down(&f);
}

/* Would end the process if OpenSSL wrote to the socket itself. */
static void test_a_write_to_who_has_gone_is_an_error_and_no_signal(void **state)
{
	struct fixture f;
	ssize_t n = 0;

	(void)state;
	set_up(&f);
	signal(SIGPIPE, SIG_DFL);
	close(f.far);
	f.far = -1;
	for (int i = 0; i < 3 && n >= 0; i++)
		n = stream_write(&f.stream, "hello", 5);
	assert_int_equal(n, -EPIPE);
	tear_down(&f);
}

/* RFC 5746 or not: a handshake is not repeated. */
static void test_a_renegotiation_is_declined(void **state)
{
	struct fixture f;
	char byte;
	size_t n;

	(void)state;
	set_up_version(&f, TLS1_2_VERSION);
	stream_want(&f.stream, STREAM_READ);
	assert_int_equal(SSL_renegotiate(f.server.ssl), 1);
	assert_int_equal(SSL_do_handshake(f.server.ssl), 1); /* sends a HelloRequest */
	STAGE_UNTIL(&f.stage, !SSL_read_ex(f.server.ssl, &byte, 1, &n) &&
				  SSL_get_error(f.server.ssl, 0) == SSL_ERROR_SSL);
	assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
	tear_down(&f);
}

/* --- under pressure ----------------------------------------------------------------------------------------------- */

#define LOAD ((size_t)3 << 20)

/* One side of a flow: both send the same load, and end their side behind it. */
struct side {
	size_t sent, got;
	bool has_ended, has_said_all;
};

static uint8_t byte_at(size_t position)
{
	return (uint8_t)(position * 7 + (position >> 13));
}

static size_t fill(uint8_t *bytes, size_t len, size_t from)
{
	len = LOAD - from < len ? LOAD - from : len;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(from + i);
	return len;
}

static void check_bytes(const uint8_t *bytes, size_t len, size_t *position)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_at(*position + i))
			fail_msg("byte %zu is another", *position + i);
	*position += len;
}

static struct side ours;

static void on_flow(struct stream *stream, int ready, void *arg)
{
	static uint8_t bytes[65536];
	ssize_t n;

	(void)arg;
	if (ready == STREAM_READ) {
		n = stream_read(stream, bytes, sizeof bytes);
		if (n > 0)
			check_bytes(bytes, (size_t)n, &ours.got);
		ours.has_ended = n == 0;
	} else if (ours.sent < LOAD) {
		n = stream_write(stream, bytes, fill(bytes, sizeof bytes, ours.sent));
		ours.sent += n > 0 ? (size_t)n : 0;
	} else if (!ours.has_said_all) {
		ours.has_said_all = true;
		assert_int_equal(stream_shutdown(stream), 0);
	}
	stream_want(stream,
		    (ours.has_ended ? 0 : STREAM_READ) | (ours.has_said_all ? 0 : STREAM_WRITE));
}

/* The server does one thing at a time, and with pauses, so that both directions fill up. */
static bool is_server_done(struct fixture *f, struct side *side, int turn)
{
	static uint8_t bytes[50000];
	size_t n;

	ERR_clear_error();
	if (turn % 3 == 0 && side->sent < LOAD &&
	    SSL_write_ex(f->server.ssl, bytes, fill(bytes, sizeof bytes, side->sent), &n))
		side->sent += n;
	if (turn % 3 == 1 && SSL_read_ex(f->server.ssl, bytes, sizeof bytes, &n))
		check_bytes(bytes, n, &side->got);
	if (side->sent == LOAD && !side->has_said_all)
		side->has_said_all = SSL_shutdown(f->server.ssl) >= 0;
	return side->has_said_all && side->got == LOAD && has_said_goodbye(f);
}

static void check_flow(int version)
{
	struct side theirs = {0};
	struct fixture f;
	int turns = 0;

	ours = (struct side){0};
	set_up_version(&f, version);
	stream_hand_over(&f.stream, on_flow, &f);
	stream_want(&f.stream, STREAM_READ | STREAM_WRITE);
	STAGE_UNTIL(&f.stage, is_server_done(&f, &theirs, turns++));
	STAGE_UNTIL(&f.stage, ours.has_ended);
	assert_int_equal(ours.got, LOAD);
	assert_false(stream_is_truncated(&f.stream));
	tear_down(&f);
}

static void test_megabytes_cross_whole_in_both_directions_at_once(void **state)
{
	(void)state;
	check_flow(TLS1_2_VERSION);
	check_flow(TLS1_3_VERSION);
}

/* TLS 1.3 4.6.3: the peer may change keys at any time, and want ours changed. */
static void test_keys_can_be_changed_under_way(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	stream_want(&f.stream, STREAM_READ);
	for (int i = 0; i < 3; i++) {
		assert_true(SSL_key_update(f.server.ssl, SSL_KEY_UPDATE_REQUESTED));
		tls_server_say(&f.server, "new", 3);
		STAGE_UNTIL(&f.stage, f.heard_len == 3 * (size_t)(i + 1));
		assert_int_equal(stream_write(&f.stream, "keys", 4), 4);
		tls_server_expect(&f.server, "keys", 4);
	}
	tear_down(&f);
}

static void test_a_plain_stream_knows_nothing_of_all_this(void **state)
{
	struct stream stream = {0};

	(void)state;
	assert_string_equal(stream_trouble(&stream), "");
	assert_false(stream_is_truncated(&stream));
	assert_true(sizeof stream <= 2 * sizeof(struct event) + 5 * sizeof(void *));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(
		test_bytes_that_were_read_ahead_call_again_though_the_socket_is_silent),
	    cmocka_unit_test(test_who_does_not_want_to_read_is_not_called),
	    cmocka_unit_test(test_half_a_record_does_not_call),
	    cmocka_unit_test(test_one_read_takes_several_records),
	    cmocka_unit_test(test_an_idle_stream_is_not_called),
	    cmocka_unit_test(test_another_owner_is_called_for_what_is_held),
	    cmocka_unit_test(test_the_server_can_end_its_side_alone),
	    cmocka_unit_test(test_we_can_end_our_side_alone),
	    cmocka_unit_test(test_a_goodbye_waits_for_the_socket),
	    cmocka_unit_test(test_an_end_without_goodbye_is_told),
	    cmocka_unit_test(test_a_record_that_was_tampered_with_breaks_the_stream),
	    cmocka_unit_test(test_an_alert_behind_the_handshake_is_told),
	    cmocka_unit_test(test_a_close_says_goodbye_and_a_reset_does_not),
	    cmocka_unit_test(test_a_write_to_who_has_gone_is_an_error_and_no_signal),
	    cmocka_unit_test(test_a_renegotiation_is_declined),
	    cmocka_unit_test(test_megabytes_cross_whole_in_both_directions_at_once),
	    cmocka_unit_test(test_keys_can_be_changed_under_way),
	    cmocka_unit_test(test_a_plain_stream_knows_nothing_of_all_this),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
