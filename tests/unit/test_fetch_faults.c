/* test_fetch_faults.c - answers that are broken, too large, late, or none; and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fetch_stage.h"

static void check_response(const char *response, int result)
{
	struct fetch_stage f;

	fetch_stage_begin(&f);
	fetch_stage_ask(&f, response);
	fetch_stage_expect(&f, result);
	fetch_stage_end(&f);
}

/* --- status ------------------------------------------------------------------------------------------------------- */

static void test_another_status_is_told(void **state)
{
	static const int statuses[] = {500, 404, 401, 204, 206, 300};
	char response[128];

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct fetch_stage f;

		snprintf(response, sizeof(response), "HTTP/1.1 %d X\r\nConnection: close\r\n\r\n%s",
			 statuses[i], statuses[i] == 204 ? "" : "1.2.3.4:80\n");
		fetch_stage_begin(&f);
		fetch_stage_start(&f);
		fetch_stage_serve(&f, response); /* nobody waits for the end of such a body */
		fetch_stage_expect(&f, -EREMOTEIO);
		assert_int_equal(f.answer.status, statuses[i]);
		fetch_stage_end(&f);
	}
}

/* --- cut short, garbage ------------------------------------------------------------------------------------------- */

static void test_a_body_cut_short_is_none(void **state)
{
	(void)state;
	check_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", -EPROTO);
	check_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", -EPROTO);
}

static void test_chunks_cut_short_are_none(void **state)
{
	(void)state;
	check_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", -EPROTO);
	check_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		       -EPROTO);
	check_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n",
		       -EPROTO);
}

static void test_garbage_is_no_answer(void **state)
{
	(void)state;
	check_response("", -EPROTO);
	check_response("SSH-2.0-OpenSSH_9.2\r\n", -EPROTO);
	check_response("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello", -EPROTO);
}

static void test_a_connection_that_breaks_within_the_body_is_no_answer(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\n\r\nhello");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	peer_reset(&f.peer);
	fetch_stage_expect(&f, -EPROTO);
	fetch_stage_end(&f);
}

static void test_an_encoding_that_is_broken_is_no_answer(void **state)
{
	(void)state;
	check_response(
	    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", -EPROTO);
}

/* --- too large ---------------------------------------------------------------------------------------------------- */

static void test_a_declared_length_over_the_cap_is_refused_at_once(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\nh");
	fetch_stage_expect(&f, -EMSGSIZE);
	assert_string_equal(f.error, "the body is larger than 1048576 bytes");
	fetch_stage_end(&f);
}

static void test_a_body_that_grows_over_the_cap_is_refused(void **state)
{
	static const char *const responses[] = {
	    "HTTP/1.1 200 OK\r\n\r\nhello",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fetch_stage f;

		fetch_stage_begin(&f);
		f.request.max_bytes = 4;
		fetch_stage_start(&f);
		fetch_stage_serve(&f, responses[i]); /* and the connection stays */
		fetch_stage_expect(&f, -EMSGSIZE);
		fetch_stage_end(&f);
	}
}

/* Deflate (RFC 1951 3.2.6, fixed codes): a zero, then `runs` times "the last byte, 258 times more" (length code 285 is
 * 11000101, distance code 0 is 00000). Huffman codes go most significant bit first into bytes filled from below. */
static size_t pack_zeros(unsigned char *bytes, size_t runs)
{
	static const char begin[] = "11000110000",
			  run[] = "1100010100000"; /* last block, fixed; literal 0 */
	size_t bit = 0;

	for (size_t i = 0; i <= runs; i++)
		for (const char *at = i ? run : begin; *at; at++, bit++)
			bytes[bit / 8] = (unsigned char)(bytes[bit / 8] | (*at - '0') << bit % 8);
	return bit / 8; /* without an end: nobody should get there */
}

static void test_a_bomb_is_refused_at_the_cap_of_decoded_bytes(void **state)
{
	static const char head[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";
	unsigned char *zeros = calloc(1, 20000);
	struct fetch_stage f;
	size_t len;

	(void)state;
	assert_non_null(zeros);
	len = pack_zeros(zeros, 10000); /* 16 KiB for 2.5 MB */
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
	peer_say_bytes(&f.peer, head, sizeof(head) - 1);
	peer_say_bytes(&f.peer, (const char *)zeros, len);
	fetch_stage_expect(&f, -EMSGSIZE);
	fetch_stage_end(&f);
	free(zeros);
}

static void test_headers_without_end_are_no_answer(void **state)
{
	struct fetch_stage f;
	char line[1024];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "X-Much: ", 8);
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	fetch_stage_begin(&f);
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < 2000 && !f.ends; i++)
		peer_say(&f.peer, line);
	fetch_stage_expect(&f, -EPROTO);
	assert_string_equal(f.error, "the headers are larger than 262144 bytes");
	fetch_stage_end(&f);
}

/* --- none, late --------------------------------------------------------------------------------------------------- */

static void test_a_closed_port_refuses(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	close(f.peer.listener);
	f.peer.listener = dup(1); /* for peer_fini() */
	fetch_stage_start(&f);
	fetch_stage_expect(&f, -ECONNREFUSED);
	assert_int_equal(f.answer.status, 0);
	fetch_stage_end(&f);
}

/* RFC 6761 6.4: `invalid` has no names. Where there is no resolver at all, looking up fails as well. */
static void test_a_name_that_does_not_exist_is_told(void **state)
{
	struct fetch_stage f;

	(void)state;
	fetch_stage_begin(&f);
	f.request.url = "http://lists.invalid/";
	fetch_stage_start(&f);
	fetch_stage_expect(&f, -ENOENT);
	fetch_stage_end(&f);
}

static void test_a_silent_server_is_left_at_the_deadline(void **state)
{
	struct fetch_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	fetch_stage_begin(&f);
	f.request.timeout_ms = 60;
	fetch_stage_start(&f);
	peer_accept(&f.peer);
	fetch_stage_expect(&f, -ETIMEDOUT);
	assert_in_range(stage_real_ms() - began, 55, 4000);
	fetch_stage_end(&f);
}

static void test_a_drip_does_not_move_the_deadline(void **state)
{
	struct fetch_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	fetch_stage_begin(&f);
	f.request.timeout_ms = 80;
	fetch_stage_start(&f);
	fetch_stage_serve(&f, "HTTP/1.1 200 OK\r\n\r\n");
	while (!f.ends && stage_real_ms() - began < 4000) {
		peer_say(&f.peer, "1.2.3.4:80\n");
		stage_turn(&f.stage);
	}
	fetch_stage_expect(&f, -ETIMEDOUT);
	fetch_stage_end(&f);
}

static void test_redirects_do_not_move_the_deadline(void **state)
{
	struct fetch_stage f;
	int64_t began = stage_real_ms();

	(void)state;
	fetch_stage_begin(&f);
	f.request.timeout_ms = 600;
	fetch_stage_start(&f);
	while (stage_real_ms() - began < 400)
		stage_turn(&f.stage);
	fetch_stage_serve(&f, "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
	peer_close(&f.peer);
	peer_accept(&f.peer);
	fetch_stage_expect(&f, -ETIMEDOUT);
	assert_in_range(stage_real_ms() - began, 590, 980);
	fetch_stage_end(&f);
}

/* Nothing takes connections off a queue that is full: connect(2) stays under way. */
static void test_a_connection_that_never_stands_has_a_deadline_of_its_own(void **state)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[3];
	struct fetch_stage f;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	for (int i = 0; i < 3; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fillers[i], (struct sockaddr *)&sa, len);
	}
	fetch_stage_begin(&f);
	snprintf(f.url, sizeof(f.url), "http://127.0.0.1:%u/", ntohs(sa.sin_port));
	f.request.connect_ms = 60;
	fetch_stage_start(&f);
	fetch_stage_expect(&f, -ETIMEDOUT);
	for (int i = 0; i < 3; i++)
		close(fillers[i]);
	close(listener);
	fetch_stage_end(&f);
}

static void test_an_environments_proxy_that_refuses_is_no_answer(void **state)
{
	struct fetch_stage f;
	char proxy[64];

	(void)state;
	fetch_stage_begin(&f);
	snprintf(proxy, sizeof(proxy), "http://sesam:0pen@127.0.0.1:%u", f.peer.port);
	setenv("https_proxy", proxy, 1);
	f.request.url = "https://lists.invalid/";
	fetch_stage_ask(&f, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
	fetch_stage_expect(&f, -EIO);
	assert_non_null(strstr(f.peer.heard, "CONNECT lists.invalid:443 HTTP/1.1\r\n"));
	assert_null(strstr(f.error, "0pen"));
	unsetenv("https_proxy");
	fetch_stage_end(&f);
}

/* --- our own ------------------------------------------------------------------------------------------------------ */

static void test_a_folder_for_the_file_that_is_missing_is_told(void **state)
{
	struct fetch_stage f;

	(void)state;
	setenv("TMPDIR", "/nonexistent/folder", 1);
	fetch_stage_begin(&f);
	fetch_stage_ask(&f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	fetch_stage_expect(&f, -EIO);
	assert_string_equal(f.error, "the temporary file: No such file or directory");
	fetch_stage_end(&f);
	unsetenv("TMPDIR");
}

static void check_message(const char *scheme, const char *host)
{
	struct fetch_stage f;

	fetch_stage_begin(&f);
	close(f.peer.listener);
	f.peer.listener = dup(1); /* for peer_fini() */
	snprintf(f.url, sizeof(f.url), "%s://sesam:0pen%%21@%s:%u/", scheme, host, f.peer.port);
	fetch_stage_start(&f);
	STAGE_UNTIL(&f.stage, f.ends);
	assert_int_not_equal(f.result, 0);
	assert_string_not_equal(f.error, "");
	assert_null(strstr(f.error, "sesam"));
	assert_null(strstr(f.error, "0pen"));
	fetch_stage_end(&f);
}

static void test_credentials_are_not_in_the_message(void **state)
{
	(void)state;
	check_message("http", "127.0.0.1");
	check_message("https", "127.0.0.1");
	check_message("http", "lists.invalid");
	check_message("http", "sesam.invalid"); /* a host that gives the user away */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_status_is_told),
	    cmocka_unit_test(test_a_body_cut_short_is_none),
	    cmocka_unit_test(test_chunks_cut_short_are_none),
	    cmocka_unit_test(test_garbage_is_no_answer),
	    cmocka_unit_test(test_a_connection_that_breaks_within_the_body_is_no_answer),
	    cmocka_unit_test(test_an_encoding_that_is_broken_is_no_answer),
	    cmocka_unit_test(test_a_declared_length_over_the_cap_is_refused_at_once),
	    cmocka_unit_test(test_a_body_that_grows_over_the_cap_is_refused),
	    cmocka_unit_test(test_a_bomb_is_refused_at_the_cap_of_decoded_bytes),
	    cmocka_unit_test(test_headers_without_end_are_no_answer),
	    cmocka_unit_test(test_a_closed_port_refuses),
	    cmocka_unit_test(test_a_name_that_does_not_exist_is_told),
	    cmocka_unit_test(test_a_silent_server_is_left_at_the_deadline),
	    cmocka_unit_test(test_a_drip_does_not_move_the_deadline),
	    cmocka_unit_test(test_redirects_do_not_move_the_deadline),
	    cmocka_unit_test(test_a_connection_that_never_stands_has_a_deadline_of_its_own),
	    cmocka_unit_test(test_an_environments_proxy_that_refuses_is_no_answer),
	    cmocka_unit_test(test_a_folder_for_the_file_that_is_missing_is_told),
	    cmocka_unit_test(test_credentials_are_not_in_the_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
