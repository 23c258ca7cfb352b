/* test_forward.c - plain requests whose client and member the test plays, at times that it sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/gateway.h"
#include "peer.h"

#define NOW_MS 1000000
#define HEAD "POST http://h.example/ HTTP/1.1\r\nHost: h.example\r\nContent-Length: 1000000\r\n\r\n"

struct scene {
	struct stage stage;
	struct peer member, client; /* `client.fd` is connected to the gateway */
	struct endpoint upstream;
	struct gateway *gateway;
	int listener;
};

static void begin(struct scene *s, size_t body_rate)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(address);
	struct gateway_config config = {.policy = {.allow_private = true},
					.name = "test",
					.tries = 1,
					.tries_ms = 10000,
					.connect_ms = 10000,
					.dial_ms = 10000,
					.head_ms = 10000,
					.response_ms = 10000,
					.idle_ms = 300000,
					.body_rate = body_rate,
					.max_clients = 10};

	memset(s, 0, sizeof(*s));
	clock_set(NOW_MS);
	stage_init(&s->stage);
	peer_listen(&s->member, &s->stage, "127.0.0.1");
	s->upstream =
	    (struct endpoint){.scheme = SCHEME_HTTP, .host = "127.0.0.1", .port = s->member.port};
	config.upstream = &s->upstream;
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(s->listener, 10), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(gateway_new(&s->gateway, s->stage.loop, &config), 0);
	assert_int_equal(gateway_listen(s->gateway, s->listener, NULL), 0);
	s->client = (struct peer){.stage = &s->stage, .listener = -1};
	s->client.fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(s->client.fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(fcntl(s->client.fd, F_SETFL, O_NONBLOCK), 0);
}

static void end(struct scene *s)
{
	gateway_free(s->gateway);
	close(s->listener);
	peer_fini(&s->client);
	peer_fini(&s->member);
	stage_fini(&s->stage);
	clock_set(-1);
}

/* The client sends `text`, and the member gets it. */
static void pass(struct scene *s, const char *text)
{
	peer_forget(&s->member);
	peer_say(&s->client, text);
	peer_expect(&s->member, text);
}

/* The head counts as well: whoever sends nothing else has the grace alone, and a little. */
static void test_a_body_that_drips_ends_at_a_deadline_that_it_hardly_moves(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1000);
	peer_say(&s.client, HEAD "x");
	peer_accept(&s.member);
	peer_expect(&s.member, "\r\n\r\nx");
	clock_set(NOW_MS + 59000);
	pass(&s, "y");
	clock_set(NOW_MS + 60000);
	pass(&s, "z");
	clock_set(NOW_MS + 61000);
	peer_say(&s.client, "a");
	peer_expect(&s.client, "HTTP/1.1 408 ");
	end(&s);
}

static void test_a_body_that_comes_fast_enough_goes_on(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1);
	peer_say(&s.client, HEAD "x");
	peer_accept(&s.member);
	peer_expect(&s.member, "\r\n\r\nx");
	/* A second for each byte. */
	clock_set(NOW_MS + 60000 + (int64_t)strlen(HEAD) * 1000);
	pass(&s, "y");
	pass(&s, "0123456789012345678901234567890123456789");
	clock_set(NOW_MS + 60000 + (int64_t)(strlen(HEAD) + 41) * 1000);
	pass(&s, "z");
	clock_set(NOW_MS + 60000 + (int64_t)(strlen(HEAD) + 50) * 1000);
	peer_say(&s.client, "a");
	peer_expect(&s.client, "HTTP/1.1 408 ");
	end(&s);
}

/* Who has the response already may go on with the request as long as it is not silent. */
static void test_a_body_beside_its_response_may_be_slow(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, 1000);
	peer_say(&s.client, HEAD "x");
	peer_accept(&s.member);
	peer_expect(&s.member, "\r\n\r\nx");
	peer_say(&s.member, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
	peer_expect(&s.client, "1\r\na\r\n");
	clock_set(NOW_MS + 200000);
	pass(&s, "y");
	peer_say(&s.member, "1\r\nb\r\n");
	peer_expect(&s.client, "1\r\nb\r\n");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_body_that_drips_ends_at_a_deadline_that_it_hardly_moves),
	    cmocka_unit_test(test_a_body_that_comes_fast_enough_goes_on),
	    cmocka_unit_test(test_a_body_beside_its_response_may_be_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
