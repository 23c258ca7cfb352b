/* test_visit_members.c - members of each kind: what they are told, and that nobody else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "visit_stage.h"

#define GOOD "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static bool has_heard(struct peer *peer, size_t len)
{
	peer_listen_up(peer);
	return peer->heard_len >= len;
}

static void hear(struct visit_stage *f, const void *bytes, size_t len)
{
	STAGE_UNTIL(&f->stage, has_heard(&f->peer, len) || f->ends);
	assert_int_equal(f->peer.heard_len, len);
	assert_memory_equal(f->peer.heard, bytes, len);
	peer_forget(&f->peer);
}

static void serve(struct visit_stage *f)
{
	peer_expect(&f->peer, "\r\n\r\n");
	peer_say(&f->peer, GOOD);
	visit_stage_expect(f, REASON_OK);
	assert_string_equal(f->body, "hello");
	assert_int_equal(f->asked_for_targets, 0);
}

/* --- SOCKS -------------------------------------------------------------------------------------------------------- */

static void begin_socks(struct visit_stage *f, enum scheme scheme, const char *host)
{
	visit_stage_begin(f);
	f->proxy.scheme = scheme;
	visit_stage_url(f, "http://%s/", host);
	visit_stage_start(f);
}

static void check_socks5(enum scheme scheme, const char *host, const char *request, size_t len)
{
	struct visit_stage f;

	begin_socks(&f, scheme, host);
	peer_accept(&f.peer);
	hear(&f, "\5\1\0", 3);
	peer_say_bytes(&f.peer, "\5\0", 2);
	hear(&f, request, len);
	peer_say_bytes(&f.peer, "\5\0\0\1\0\0\0\0\0\0", 10);
	serve(&f);
	visit_stage_end(&f);
}

/* RFC 1928 4: the member looks the name up, by either scheme. */
static void test_socks5_gets_names_as_they_are(void **state)
{
	(void)state;
	check_socks5(SCHEME_SOCKS5, "a.test", "\5\1\0\3\6a.test\0\x50", 13);
	check_socks5(SCHEME_SOCKS5H, "a.test", "\5\1\0\3\6a.test\0\x50", 13);
	check_socks5(SCHEME_SOCKS5, "localhost", "\5\1\0\3\x9localhost\0\x50", 16);
	check_socks5(SCHEME_SOCKS5, "192.0.2.1", "\5\1\0\1\xc0\0\2\1\0\x50", 10);
	check_socks5(SCHEME_SOCKS5, "[2001:db8::1]",
		     "\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50", 22);
}

static void check_socks4(enum scheme scheme, const char *host, const char *request, size_t len)
{
	struct visit_stage f;

	begin_socks(&f, scheme, host);
	peer_accept(&f.peer);
	hear(&f, request, len);
	peer_say_bytes(&f.peer, "\0\x5a\0\0\0\0\0\0", 8);
	serve(&f);
	visit_stage_end(&f);
}

static void test_socks4_gets_names_as_4a_and_addresses_as_such(void **state)
{
	(void)state;
	check_socks4(SCHEME_SOCKS4, "a.test", "\4\1\0\x50\0\0\0\1\0a.test\0", 16);
	check_socks4(SCHEME_SOCKS4A, "a.test", "\4\1\0\x50\0\0\0\1\0a.test\0", 16);
	check_socks4(SCHEME_SOCKS4, "localhost", "\4\1\0\x50\0\0\0\1\0localhost\0", 19);
	check_socks4(SCHEME_SOCKS4, "192.0.2.1", "\4\1\0\x50\xc0\0\2\1\0", 9);
	check_socks4(SCHEME_SOCKS4A, "192.0.2.1", "\4\1\0\x50\xc0\0\2\1\0", 9);
}

static void check_cannot(const char *host)
{
	struct visit_stage f;

	begin_socks(&f, SCHEME_SOCKS4, host);
	visit_stage_expect(&f, REASON_PROXY_CANNOT);
	assert_false(peer_is_called(&f.peer));
	visit_stage_end(&f);
}

static void test_socks4_is_not_asked_for_what_it_cannot_carry(void **state)
{
	(void)state;
	check_cannot("[2001:db8::1]");
	check_cannot("0.0.0.7");
}

/* An address went to it without the A of 4A; a name would have to be looked up here. */
static void test_no_name_is_looked_up_for_socks4_behind_a_redirect(void **state)
{
	struct visit_stage f;

	(void)state;
	begin_socks(&f, SCHEME_SOCKS4, "192.0.2.1");
	peer_accept(&f.peer);
	hear(&f, "\4\1\0\x50\xc0\0\2\1\0", 9);
	peer_say_bytes(&f.peer, "\0\x5a\0\0\0\0\0\0", 8);
	peer_expect(&f.peer, "\r\n\r\n");
	peer_say(&f.peer, "HTTP/1.1 302 X\r\nLocation: http://localhost/\r\n\r\n");
	peer_close(&f.peer);
	visit_stage_expect(&f, REASON_PROXY_CANNOT);
	visit_stage_end(&f);
}

/* --- names of members --------------------------------------------------------------------------------------------- */

static void test_a_member_s_own_name_is_looked_up_here(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	snprintf(f.proxy.host, sizeof(f.proxy.host), "localhost");
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 302 X\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
	peer_accept(&f.peer);
	serve(&f);
	visit_stage_end(&f);
}

/* --- credentials (S7) --------------------------------------------------------------------------------------------- */

static void check_basic(char *secret, const char *user_and_password)
{
	char encoded[1000], line[1100];
	struct visit_stage f;

	visit_stage_begin(&f);
	f.proxy.secret = secret;
	base64_encode(encoded, user_and_password, strlen(user_and_password));
	snprintf(line, sizeof(line), "\r\nProxy-Authorization: Basic %s\r\n", encoded);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	if (peer_count(&f.peer, line) != 1)
		fail_msg("%s: %s", secret, f.peer.heard);
	peer_say(&f.peer, "HTTP/1.1 302 X\r\nLocation: https://x.test/\r\n\r\n");
	peer_close(&f.peer);
	visit_stage_hear(&f); /* CONNECT */
	if (peer_count(&f.peer, line) != 1)
		fail_msg("%s, behind a redirect: %s", secret, f.peer.heard);
	peer_say(&f.peer, "HTTP/1.1 403 X\r\n\r\n");
	visit_stage_expect(&f, REASON_TARGET_DENIED);
	visit_stage_end(&f);
}

static char *const secrets[][2] = {
    {(char[]){"user:a%3Ab"}, "user:a:b"},
    {(char[]){"user:p%40ss"}, "user:p@ss"},
    {(char[]){"user:100%25"}, "user:100%"},
    {(char[]){"user:%2540x"}, "user:%40x"},
    {(char[]){"user:%2541"}, "user:%41"},
    {(char[]){"user:%25zz"}, "user:%zz"},
    {(char[]){"user:"}, "user:"},
    {(char[]){":pass"}, ":pass"},
    {(char[]){"us%2Fer:%20x"}, "us/er: x"},
    {(char[]){"user:p%C3%A4"}, "user:p\xc3\xa4"},
    {(char[]){"user:a/b?c#d"}, "user:a/b?c#d"},
};

static void test_an_http_member_gets_the_exact_bytes_of_its_credentials(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		check_basic(secrets[i][0], secrets[i][1]);
}

/* RFC 1929 2 */
static void test_a_socks5_member_gets_the_exact_bytes_of_its_credentials(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		const char *colon = strchr(secrets[i][1], ':');
		int user = (int)(colon - secrets[i][1]);
		char request[100];
		struct visit_stage f;
		int len = snprintf(request, sizeof(request), "\1%c%.*s%c%s", user, user,
				   secrets[i][1], (int)strlen(colon + 1), colon + 1);

		if (!user || !colon[1])
			continue;
		visit_stage_begin(&f);
		f.proxy.scheme = SCHEME_SOCKS5;
		f.proxy.secret = secrets[i][0];
		visit_stage_start(&f);
		peer_accept(&f.peer);
		hear(&f, "\5\2\0\2", 4);
		peer_say_bytes(&f.peer, "\5\2", 2);
		hear(&f, request, (size_t)len);
		visit_stage_end(&f);
	}
}

static void check_unfit(enum scheme scheme, char *secret)
{
	struct visit_stage f;

	visit_stage_begin(&f);
	f.proxy.scheme = scheme;
	f.proxy.secret = secret;
	visit_stage_start(&f);
	visit_stage_expect(&f, REASON_PROXY_AUTH);
	assert_false(peer_is_called(&f.peer));
	visit_stage_end(&f);
}

static void test_credentials_that_cannot_be_carried_lead_nowhere(void **state)
{
	char long_one[400] = "user:";

	(void)state;
	memset(long_one + 5, 'a', 256);
	check_unfit(SCHEME_SOCKS5, long_one);
	check_unfit(SCHEME_HTTP, (char[]){"user:a%0d%0aX:%20y"});
	check_unfit(SCHEME_SOCKS5, (char[]){"user:a%0d%0aX:%20y"});
	check_unfit(SCHEME_HTTPS, (char[]){"us%00er:a"});
}

static void test_the_password_of_one_member_never_reaches_another(void **state)
{
	char secret[] = "alice:canary-of-a";
	struct visit_stage f;
	struct peer other;

	(void)state;
	visit_stage_begin(&f);
	peer_listen(&other, &f.stage, "127.0.0.1");
	f.proxy.secret = secret;
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "Proxy-Authorization: Basic "), 1);
	peer_say(&f.peer,
		 "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"x\", nonce=\"y\"\r\n"
		 "Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n");
	visit_stage_expect(&f, REASON_PROXY_AUTH);
	f.proxy.secret = NULL;
	f.proxy.port = other.port;
	visit_stage_start(&f);
	peer_accept(&other);
	peer_expect(&other, "\r\n\r\n");
	assert_int_equal(peer_count(&other, "uthorization"), 0);
	peer_say(&other, GOOD);
	visit_stage_expect(&f, REASON_OK);
	peer_fini(&other);
	visit_stage_end(&f);
}

/* --- never direct ------------------------------------------------------------------------------------------------- */

/* The environment says NO_PROXY=* (visit_stage.c); the target is there, and listens. */
static void check_never_direct(enum scheme scheme, const char *url_scheme, char *secret)
{
	struct visit_stage f;
	struct peer origin;

	visit_stage_begin(&f);
	peer_listen(&origin, &f.stage, "127.0.0.1");
	f.proxy.scheme = scheme;
	f.proxy.secret = secret;
	f.request.connect_ms = 5000;
	visit_stage_url(&f, "%s://127.0.0.1:%u/", url_scheme, origin.port);
	visit_stage_start(&f);
	while (!f.ends) {
		if (peer_is_called(&f.peer)) {
			peer_accept(&f.peer);
			peer_say(&f.peer, "\5\1");
			peer_reset(&f.peer);
		}
		stage_turn(&f.stage);
	}
	assert_int_not_equal(f.reason, REASON_OK);
	assert_false(peer_is_called(&origin));
	assert_int_equal(f.asked_for_targets, 0);
	peer_fini(&origin);
	visit_stage_end(&f);
}

static void test_whatever_a_member_does_the_target_is_not_called(void **state)
{
	(void)state;
	for (int scheme = SCHEME_HTTP; scheme < SCHEME_DIRECT; scheme++) {
		check_never_direct((enum scheme)scheme, "http", NULL);
		check_never_direct((enum scheme)scheme, "https", NULL);
		check_never_direct((enum scheme)scheme, "http", (char[]){"user:a%0d%0ab"});
		check_never_direct((enum scheme)scheme, "https", (char[]){"user:@a/#?"});
	}
}

/* --- direct members ----------------------------------------------------------------------------------------------- */

static void begin_direct(struct visit_stage *f, const char *source, const char *host)
{
	visit_stage_begin(f);
	f->proxy = (struct endpoint){.scheme = SCHEME_DIRECT};
	snprintf(f->proxy.host, sizeof(f->proxy.host), "%s", source);
	visit_stage_url(f, "http://%s:%u/", host, f->peer.port);
}

static void check_direct(const char *source, const char *host)
{
	struct visit_stage f;

	begin_direct(&f, source, host);
	visit_stage_start(&f);
	visit_stage_hear(&f);
	assert_int_equal(peer_count(&f.peer, "GET / HTTP/1.1\r\n"), 1);
	assert_true(f.asked_for_targets >= 1);
	assert_int_equal(f.asked_for_targets, f.asked);
	peer_say(&f.peer, GOOD);
	visit_stage_expect(&f, REASON_OK);
	visit_stage_end(&f);
}

static void test_a_direct_member_asks_for_each_address_of_the_target(void **state)
{
	(void)state;
	check_direct("", "127.0.0.1");
	check_direct("", "localhost");
	check_direct("127.0.0.5", "127.0.0.1");
}

static void check_direct_fault(const char *source, const char *host, bool admits, int reason)
{
	struct visit_stage f;

	begin_direct(&f, source, host);
	f.admits = admits;
	visit_stage_start(&f);
	visit_stage_expect(&f, reason);
	assert_false(peer_is_called(&f.peer));
	visit_stage_end(&f);
}

/* The words of dial for a direct member. */
static void test_a_direct_member_s_faults_are_the_target_s(void **state)
{
	(void)state;
	check_direct_fault("", "127.0.0.1", false, REASON_TARGET_PROHIBITED);
	check_direct_fault("", "localhost", false, REASON_TARGET_PROHIBITED);
	check_direct_fault("", "127.0.0.77", true, REASON_TARGET_REFUSED);
	check_direct_fault("", "nobody.invalid", true, REASON_TARGET_NAME);
	check_direct_fault("::1", "127.0.0.1", true, REASON_PROXY_CANNOT);
	check_direct_fault("192.0.2.1", "127.0.0.1", true, REASON_PROXY_CANNOT);
}

static void test_a_redirect_of_a_direct_member_is_judged_anew(void **state)
{
	struct visit_stage f;

	(void)state;
	begin_direct(&f, "", "127.0.0.1");
	visit_stage_start(&f);
	visit_stage_hear(&f);
	f.admits = false;
	peer_say(&f.peer, "HTTP/1.1 302 X\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n");
	visit_stage_expect(&f, REASON_TARGET_PROHIBITED);
	assert_false(peer_is_called(&f.peer));
	visit_stage_end(&f);
}

/* --- life cycle --------------------------------------------------------------------------------------------------- */

#define CROWD 100

struct crowd {
	struct visit *visits[CROWD];
	int ends, good;
};

static void on_one(int reason, const char *detail, const struct visit_answer *answer, void *arg)
{
	struct crowd *crowd = arg;

	(void)detail;
	crowd->ends++;
	crowd->good += reason == REASON_OK && !strcmp(answer->body, "hello");
}

static void start_crowd(struct visit_stage *f, struct crowd *crowd)
{
	*crowd = (struct crowd){.ends = 0};
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(visit_start(&crowd->visits[i], f->visits, &f->request, on_one,
					     crowd, f->error, sizeof(f->error)),
				 0);
}

static void test_many_visits_run_at_a_time(void **state)
{
	struct peer peers[CROWD];
	struct visit_stage f;
	struct crowd crowd;

	(void)state;
	visit_stage_begin(&f);
	start_crowd(&f, &crowd);
	for (int i = 0; i < CROWD; i++) {
		peer_accept(&f.peer);
		peers[i] = f.peer;
		f.peer.fd = -1;
		peer_expect(&peers[i], "\r\n\r\n");
	}
	assert_int_equal(crowd.ends, 0);
	for (int i = 0; i < CROWD; i++) {
		peer_say(&peers[i], GOOD);
		peer_close(&peers[i]);
	}
	STAGE_UNTIL(&f.stage, crowd.ends == CROWD);
	assert_int_equal(crowd.good, CROWD);
	visit_stage_end(&f);
}

static void test_what_is_under_way_can_be_freed_with_all_others(void **state)
{
	struct visit_stage f;
	struct crowd crowd;

	(void)state;
	visit_stage_begin(&f);
	start_crowd(&f, &crowd);
	visit_cancel(crowd.visits[0]);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	visit_cancel(crowd.visits[1]);
	visit_stage_end(&f);
	assert_int_equal(crowd.ends, 0);
}

struct chain {
	struct visit_stage *f;
	struct visit *others[3];
	int ends;
};

static void cancel_all(int reason, const char *detail, const struct visit_answer *answer, void *arg)
{
	struct chain *chain = arg;

	(void)reason;
	(void)detail;
	(void)answer;
	chain->ends++;
	for (int i = 0; i < 3; i++)
		visit_cancel(chain->others[i]);
	visits_free(chain->f->visits);
	chain->f->visits = NULL;
}

/* All of them have failed in the same turn. */
static void test_a_callback_may_cancel_others_and_free_the_rest(void **state)
{
	struct visit_stage f;
	struct chain chain = {.f = &f};

	(void)state;
	visit_stage_begin(&f);
	f.admits = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(visit_start(&chain.others[i], f.visits, &f.request, cancel_all,
					     &chain, f.error, sizeof(f.error)),
				 0);
	STAGE_UNTIL(&f.stage, chain.ends);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_int_equal(chain.ends, 1);
	visit_stage_end(&f);
}

static void cancel_now(struct visit_stage *f)
{
	visit_cancel(f->visit);
	for (int i = 0; i < 5; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 0);
}

static void test_a_visit_can_be_cancelled_at_each_step(void **state)
{
	struct visit_stage f;

	(void)state;
	visit_stage_begin(&f);
	visit_stage_start(&f);
	cancel_now(&f); /* before its first turn */
	visit_stage_start(&f);
	peer_accept(&f.peer);
	cancel_now(&f); /* connected */
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	cancel_now(&f); /* in the body */
	visit_stage_url(&f, "https://example.com/");
	visit_stage_start(&f);
	visit_stage_hear(&f);
	cancel_now(&f); /* in the handshake */
	visit_stage_start(&f);
	visit_stage_hear(&f);
	peer_say(&f.peer, "HTTP/1.1 200 OK\r\n\r\n");
	peer_forget(&f.peer);
	peer_expect(&f.peer, "\x16\x03");
	cancel_now(&f); /* in TLS with the target */
	snprintf(f.proxy.host, sizeof(f.proxy.host), "member.invalid");
	visit_stage_start(&f);
	cancel_now(&f); /* in a look-up */
	visit_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_socks5_gets_names_as_they_are),
	    cmocka_unit_test(test_socks4_gets_names_as_4a_and_addresses_as_such),
	    cmocka_unit_test(test_socks4_is_not_asked_for_what_it_cannot_carry),
	    cmocka_unit_test(test_no_name_is_looked_up_for_socks4_behind_a_redirect),
	    cmocka_unit_test(test_a_member_s_own_name_is_looked_up_here),
	    cmocka_unit_test(test_an_http_member_gets_the_exact_bytes_of_its_credentials),
	    cmocka_unit_test(test_a_socks5_member_gets_the_exact_bytes_of_its_credentials),
	    cmocka_unit_test(test_credentials_that_cannot_be_carried_lead_nowhere),
	    cmocka_unit_test(test_the_password_of_one_member_never_reaches_another),
	    cmocka_unit_test(test_whatever_a_member_does_the_target_is_not_called),
	    cmocka_unit_test(test_a_direct_member_asks_for_each_address_of_the_target),
	    cmocka_unit_test(test_a_direct_member_s_faults_are_the_target_s),
	    cmocka_unit_test(test_a_redirect_of_a_direct_member_is_judged_anew),
	    cmocka_unit_test(test_many_visits_run_at_a_time),
	    cmocka_unit_test(test_what_is_under_way_can_be_freed_with_all_others),
	    cmocka_unit_test(test_a_callback_may_cancel_others_and_free_the_rest),
	    cmocka_unit_test(test_a_visit_can_be_cancelled_at_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
