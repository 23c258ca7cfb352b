/* test_dial_names.c - which names are looked up, and by whom: a name server of the test's own counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dial_stage.h"

#define HEADER_SIZE 12
#define QUERY_MAX 512

/* Says that every name is 127.0.0.1, and writes down which it was asked for. */
struct nameserver {
	int fd;
	uint16_t port;
	char asked[1000]; /* "name name ..." in lower case */
	int count;
};

static void nameserver_init(struct nameserver *server)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof sa;

	memset(server, 0, sizeof *server);
	server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&sa, &len), 0);
	server->port = ntohs(sa.sin_port);
}

/* RFC 1035 4.1.2: labels with their lengths in front, an empty one at the end. Returns the length of the question. */
static size_t write_down(struct nameserver *server, const uint8_t *question)
{
	char *to = server->asked + strlen(server->asked);
	size_t at = 0;

	while (question[at]) {
		size_t len = question[at++];

		for (size_t i = 0; i < len; i++)
			*to++ = (char)(question[at + i] | 0x20);
		at += len;
		*to++ = question[at] ? '.' : ' ';
	}
	server->count++;
	return at + 1 + 4;
}

/* Answers what has come. */
static void nameserver_serve(struct nameserver *server)
{
	static const uint8_t answer[] = {0xc0, HEADER_SIZE, 0, 1, 0,   1, 0, 0,
					 0,    60,          0, 4, 127, 0, 0, 1};
	uint8_t packet[QUERY_MAX + sizeof answer];
	struct sockaddr_in from;
	socklen_t from_len = sizeof from;
	ssize_t n;
	size_t len;

	while ((n = recvfrom(server->fd, packet, QUERY_MAX, 0, (struct sockaddr *)&from,
			     &from_len)) > HEADER_SIZE) {
		len = HEADER_SIZE + write_down(server, packet + HEADER_SIZE);
		packet[2] |= 0x80;          /* a response */
		packet[11] = 0;             /* without additional records */
		if (packet[len - 3] == 1) { /* type A; for the others there is nothing */
			packet[7] = 1;
			memcpy(packet + len, answer, sizeof answer);
			len += sizeof answer;
		}
		sendto(server->fd, packet, len, 0, (struct sockaddr *)&from, from_len);
	}
}

struct fixture {
	struct dial_stage dial;
	struct nameserver nameserver;
};

static void set_up(struct fixture *f)
{
	char text[40];
	const char *texts[] = {text};
	size_t bad;

	nameserver_init(&f->nameserver);
	dial_stage_begin(&f->dial);
	snprintf(text, sizeof text, "127.0.0.1:%u", f->nameserver.port);
	assert_int_equal(loop_nameservers(f->dial.stage.loop, texts, 1, &bad), 0);
	f->dial.request.host = "target.test";
}

static void tear_down(struct fixture *f)
{
	dial_stage_end(&f->dial);
	close(f->nameserver.fd);
}

static bool is_called(struct fixture *f)
{
	nameserver_serve(&f->nameserver);
	return peer_is_called(&f->dial.peer);
}

static void test_a_proxy_s_name_is_asked_of_the_servers_that_were_named(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	snprintf(f.dial.proxy.host, sizeof f.dial.proxy.host, "proxy.test");
	dial_stage_start(&f.dial);
	STAGE_UNTIL(&f.dial.stage, is_called(&f));
	assert_non_null(strstr(f.nameserver.asked, "proxy.test "));
	assert_null(strstr(f.nameserver.asked, "target"));
	dial_cancel(f.dial.dial);
	tear_down(&f);
}

static void test_the_target_s_name_is_never_asked_for_by_any_kind_but_direct(void **state)
{
	(void)state;
	for (enum scheme scheme = SCHEME_HTTP; scheme < SCHEME_DIRECT; scheme++) {
		struct fixture f;

		if (scheme == SCHEME_HTTPS)
			continue; /* the question is http's */
		set_up(&f);
		f.dial.proxy.scheme = scheme;
		dial_stage_start(&f.dial);
		peer_accept(&f.dial.peer);
		STAGE_UNTIL(&f.dial.stage, (peer_listen_up(&f.dial.peer), f.dial.peer.heard_len));
		if (f.dial.peer.heard[0] == 5)
			peer_say_bytes(&f.dial.peer, "\x05\x00", 2);
		STAGE_UNTIL(&f.dial.stage,
			    (peer_listen_up(&f.dial.peer),
			     memmem(f.dial.peer.heard, f.dial.peer.heard_len, "target.test", 11)));
		nameserver_serve(&f.nameserver);
		assert_int_equal(f.nameserver.count, 0);
		dial_cancel(f.dial.dial);
		tear_down(&f);
	}
}

static void test_direct_asks_for_the_target(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.dial.request.port = f.dial.peer.port;
	f.dial.proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	dial_stage_start(&f.dial);
	STAGE_UNTIL(&f.dial.stage, is_called(&f));
	assert_non_null(strstr(f.nameserver.asked, "target.test "));
	dial_stage_expect(&f.dial, 0);
	tear_down(&f);
}

static void test_the_hosts_file_still_comes_first(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	snprintf(f.dial.proxy.host, sizeof f.dial.proxy.host, "localhost");
	dial_stage_start(&f.dial);
	STAGE_UNTIL(&f.dial.stage, is_called(&f));
	assert_int_equal(f.nameserver.count, 0);
	dial_cancel(f.dial.dial);
	tear_down(&f);
}

static void test_what_is_no_name_server_is_pointed_at(void **state)
{
	static const char *const bad[] = {
	    "",        "ns.test", "192.0.2.1:",  "192.0.2.1:0",   "192.0.2.1:65536", "unix:/tmp/x",
	    "::1:53:", "[::1]",   "192.0.2.256", "[192.0.2.1]:53"};
	static const char *const good[] = {"192.0.2.1", "192.0.2.1:5353", "2001:db8::1",
					   "[2001:db8::1]:53"};
	static const char *const second[] = {"192.0.2.1", "nonsense"};
	const char *many[LOOP_NAMESERVERS_MAX + 1];
	size_t at = 99;
	struct stage stage;

	(void)state;
	stage_init(&stage);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (loop_nameservers(stage.loop, &bad[i], 1, &at) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	assert_int_equal(at, 0);
	assert_int_equal(loop_nameservers(stage.loop, second, 2, &at), -EINVAL);
	assert_int_equal(at, 1);
	assert_int_equal(loop_nameservers(stage.loop, good, 4, &at), 0);
	for (size_t i = 0; i <= LOOP_NAMESERVERS_MAX; i++)
		many[i] = good[0];
	assert_int_equal(loop_nameservers(stage.loop, many, LOOP_NAMESERVERS_MAX, &at), 0);
	assert_int_equal(loop_nameservers(stage.loop, many, LOOP_NAMESERVERS_MAX + 1, &at),
			 -EINVAL);
	assert_int_equal(at, LOOP_NAMESERVERS_MAX);
	stage_fini(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_proxy_s_name_is_asked_of_the_servers_that_were_named),
	    cmocka_unit_test(test_the_target_s_name_is_never_asked_for_by_any_kind_but_direct),
	    cmocka_unit_test(test_direct_asks_for_the_target),
	    cmocka_unit_test(test_the_hosts_file_still_comes_first),
	    cmocka_unit_test(test_what_is_no_name_server_is_pointed_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
