/* test_probe_tls.c - probes of an https target: TLS within the tunnel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/tls.h"
#include "probe_stage.h"
#include "tls_stage.h"

struct fixture {
	struct probe_stage probe;
	struct tls_world world;
	struct tls_server server;
	struct tls *tls;
};

/* The tunnel stands; the target is the server of the world if it is named `host`. */
static void set_up(struct fixture *f, const char *host)
{
	char error[200], question[200];

	probe_stage_begin(&f->probe, SCHEME_HTTP);
	clock_set(-1);
	tls_world_init(&f->world);
	tls_server_init(&f->server, &f->probe.stage, &f->world.server);
	assert_int_equal(tls_new(&f->tls, f->world.ca_file, error, sizeof error), 0);
	f->probe.target = (struct target){.kind = TARGET_HTTPS, .port = 443, .path = "/page"};
	snprintf(f->probe.target.host, sizeof f->probe.target.host, "%s", host);
	f->probe.request.tls = f->tls;
	probe_stage_start(&f->probe);
	snprintf(question, sizeof question, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host,
		 host);
	probe_stage_hear_text(&f->probe, question);
	peer_say(&f->probe.peer, "HTTP/1.1 200 OK\r\n\r\n");
}

static void tear_down(struct fixture *f)
{
	tls_server_fini(&f->server);
	tls_world_fini(&f->world);
	probe_stage_end(&f->probe);
	tls_free(f->tls);
}

static bool has_begun(struct fixture *f)
{
	peer_listen_up(&f->probe.peer);
	return f->probe.peer.heard_len;
}

static bool is_accepted(struct fixture *f)
{
	return tls_server_accept(&f->server, f->probe.peer.fd) != 0 || f->probe.ends;
}

static void test_an_https_target_is_asked_through_tls_in_the_tunnel(void **state)
{
	static const char request[] = "GET /page HTTP/1.1\r\nHost: proxy.test:443\r\n";
	struct fixture f;

	(void)state;
	set_up(&f, "proxy.test");
	STAGE_UNTIL(&f.probe.stage, is_accepted(&f));
	tls_server_expect(&f.server, request, sizeof request - 1);
	tls_server_say(&f.server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38);
	probe_stage_finish(&f.probe, REASON_OK);
	assert_int_equal(f.probe.outcome.status, 200);
	tear_down(&f);
}

static void test_a_target_that_another_stands_in_for_is_not_reached(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, "other.test");
	STAGE_UNTIL(&f.probe.stage, is_accepted(&f));
	probe_stage_finish(&f.probe, REASON_CHECK_CERTIFICATE);
	tear_down(&f);
	set_up(&f, "proxy.test");
	STAGE_UNTIL(&f.probe.stage, has_begun(&f));
	peer_say(&f.probe.peer, "HTTP/1.1 400 This is no TLS\r\n\r\n");
	probe_stage_finish(&f.probe, REASON_CHECK_TLS);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_https_target_is_asked_through_tls_in_the_tunnel),
	    cmocka_unit_test(test_a_target_that_another_stands_in_for_is_not_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
