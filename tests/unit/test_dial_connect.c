/* test_dial_connect.c - deadlines, connecting, who is admitted, cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial_stage.h"

/* --- time --------------------------------------------------------------------------------------------------------- */

static void test_a_silent_proxy_is_left_at_the_deadline_of_all(void **state)
{
	static const int64_t connect_ms[] = {5, 1000};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct dial_stage f;
		int64_t began = stage_real_ms();

		dial_stage_begin(&f);
		f.request.connect_ms = connect_ms[i];
		f.request.total_ms = 60;
		dial_stage_ask(&f);
		dial_stage_expect(&f, REASON_PROXY_SILENT);
		assert_in_range(stage_real_ms() - began, 55, 4000);
		dial_stage_end(&f);
	}
}

/* After `begin` the proxy says `drop` again and again, at most `drops` times, and never comes to an end. */
static void check_drip(enum scheme scheme, const char *begin, size_t begin_len, const char *drop,
		       int drops)
{
	struct dial_stage f;
	int64_t began = stage_real_ms();

	dial_stage_begin(&f);
	f.proxy.scheme = scheme;
	f.request.total_ms = 60;
	dial_stage_start(&f);
	peer_accept(&f.peer);
	peer_say_bytes(&f.peer, begin, begin_len);
	while (!f.ends && stage_real_ms() - began < 4000) {
		if (drops-- > 0)
			peer_say(&f.peer, drop);
		for (int i = 0; i < 8 && !f.ends; i++)
			stage_turn(&f.stage);
	}
	dial_stage_expect(&f, REASON_PROXY_SILENT);
	assert_in_range(stage_real_ms() - began, 55, 4000);
	dial_stage_end(&f);
}

static void test_a_drip_does_not_move_the_deadline(void **state)
{
	(void)state;
	check_drip(SCHEME_HTTP, "", 0, "HTTP/1.1 100 Continue\r\n\r\n", 1000);
	check_drip(SCHEME_SOCKS4, "\x00\x5a", 2, "x", 5);
	check_drip(SCHEME_SOCKS5, "\x05\x00\x05\x00\x00\x03\xff", 7, "x", 250);
}

/* Nothing takes connections off a queue that is full: connect(2) stays under way. */
static void test_a_connection_that_never_stands_is_a_timeout(void **state)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	struct dial_stage f;
	int listener, fillers[3];

	(void)state;
	dial_stage_begin(&f);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	for (int i = 0; i < 3; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fillers[i], (struct sockaddr *)&sa, len);
	}
	f.proxy.port = ntohs(sa.sin_port);
	f.request.connect_ms = 60;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_TIMEOUT);
	for (int i = 0; i < 3; i++)
		close(fillers[i]);
	close(listener);
	dial_stage_end(&f);
}

/* --- connecting --------------------------------------------------------------------------------------------------- */

static void test_a_closed_port_is_a_refusal(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	close(f.peer.listener);
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_REFUSED);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	f.request.host = "127.0.0.1";
	f.request.port = f.peer.port;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_TARGET_REFUSED);
	peer_listen(&f.peer, &f.stage, "127.0.0.1");
	dial_stage_end(&f);
}

static void test_a_special_purpose_member_is_reached_only_if_admitted(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.admits = false;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_PROHIBITED);
	assert_int_equal(f.asked, 1);
	assert_int_equal(f.asked_port, f.peer.port);
	assert_false(f.was_target);
	f.request.is_admitted = NULL;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_PROHIBITED);
	assert_false(peer_is_called(&f.peer));
	dial_stage_end(&f);
}

/* The address that a name turns out to have is judged, not the name. /etc/hosts knows this one. */
static void test_a_name_for_a_special_purpose_address_is_no_way_round(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.request.is_admitted = NULL;
	snprintf(f.proxy.host, sizeof(f.proxy.host), "localhost");
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_PROHIBITED);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	f.request.host = "localhost";
	f.request.port = f.peer.port;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_TARGET_PROHIBITED);
	assert_false(peer_is_called(&f.peer));
	dial_stage_end(&f);
}

static void test_direct_connects_to_the_target_from_its_source_address(void **state)
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT, .host = "127.0.0.77"};
	f.request.host = "127.0.0.1";
	f.request.port = f.peer.port;
	assert_false(dial_forwards(&f.proxy));
	dial_stage_start(&f);
	dial_stage_expect(&f, 0);
	assert_true(f.was_target);
	assert_int_equal(f.asked_port, f.peer.port);
	peer_accept(&f.peer);
	assert_int_equal(getpeername(f.peer.fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(ntohl(sa.sin_addr.s_addr), 0x7f00004d);
	peer_listen_up(&f.peer);
	assert_int_equal(f.peer.heard_len, 0);
	dial_stage_end(&f);
}

static void test_direct_does_not_reach_what_is_not_admitted(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	f.admits = false;
	f.request.host = "127.0.0.1";
	f.request.port = f.peer.port;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_TARGET_PROHIBITED);
	assert_false(peer_is_called(&f.peer));
	dial_stage_end(&f);
}

/* DESIGN 6: a member that cannot carry a target is nobody's fault, and the next member is tried. */
static void test_a_source_of_the_other_family_cannot_carry_the_target(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	f.proxy = (struct endpoint){.scheme = SCHEME_DIRECT, .host = "::1"};
	f.request.host = "127.0.0.1";
	f.request.port = f.peer.port;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_CANNOT);
	dial_stage_end(&f);
}

static void test_a_want_of_descriptors_is_ours(void **state)
{
	struct rlimit limit, low;
	struct dial_stage f;
	int next;

	(void)state;
	dial_stage_begin(&f);
	next = dup(0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_NO_DESCRIPTORS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dial_stage_end(&f);
}

/* --- cancelling --------------------------------------------------------------------------------------------------- */

static void test_a_cancelled_dial_hangs_up_and_says_nothing(void **state)
{
	struct dial_stage f;
	char byte;

	(void)state;
	dial_stage_begin(&f);
	dial_stage_ask(&f);
	dial_cancel(f.dial);
	STAGE_UNTIL(&f.stage, recv(f.peer.fd, &byte, 1, 0) == 0);
	assert_int_equal(f.ends, 0);
	dial_stage_start(&f);
	dial_cancel(f.dial);
	f.admits = false;
	dial_stage_start(&f); /* it has failed already, and not told */
	dial_cancel(f.dial);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_int_equal(f.ends, 0);
	dial_cancel(NULL);
	dial_stage_end(&f);
}

static void test_a_lookup_can_be_cancelled(void **state)
{
	struct dial_stage f;

	(void)state;
	dial_stage_begin(&f);
	snprintf(f.proxy.host, sizeof(f.proxy.host), "localhost");
	dial_stage_start(&f);
	dial_cancel(f.dial);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_int_equal(f.ends, 0);
	dial_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_silent_proxy_is_left_at_the_deadline_of_all),
	    cmocka_unit_test(test_a_drip_does_not_move_the_deadline),
	    cmocka_unit_test(test_a_connection_that_never_stands_is_a_timeout),
	    cmocka_unit_test(test_a_closed_port_is_a_refusal),
	    cmocka_unit_test(test_a_special_purpose_member_is_reached_only_if_admitted),
	    cmocka_unit_test(test_a_name_for_a_special_purpose_address_is_no_way_round),
	    cmocka_unit_test(test_direct_connects_to_the_target_from_its_source_address),
	    cmocka_unit_test(test_direct_does_not_reach_what_is_not_admitted),
	    cmocka_unit_test(test_a_source_of_the_other_family_cannot_carry_the_target),
	    cmocka_unit_test(test_a_want_of_descriptors_is_ours),
	    cmocka_unit_test(test_a_cancelled_dial_hangs_up_and_says_nothing),
	    cmocka_unit_test(test_a_lookup_can_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
