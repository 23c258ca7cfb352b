/* test_dial_socks4.c - SOCKS4 and SOCKS4A with a proxy that is played byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "dial_stage.h"

#define BYTES(literal) (literal), sizeof(literal) - 1

#define GRANTED "\x00\x5a\x01\xbb\x7f\x00\x00\x01"

static void check_question(enum scheme scheme, char *user, const char *host, const char *question,
			   size_t len)
{
	struct dial_stage f;

	dial_stage_begin(&f);
	f.proxy.scheme = scheme;
	f.proxy.secret = user;
	f.request.host = host;
	assert_false(dial_forwards(&f.proxy));
	dial_stage_start(&f);
	peer_accept(&f.peer);
	dial_stage_hear(&f, question, len);
	dial_cancel(f.dial);
	dial_stage_end(&f);
}

/* SOCKS4A: an address of 0.0.0.x, and the name behind the user. */
static void test_a_name_goes_in_the_form_of_socks4a_under_both_schemes(void **state)
{
	char user[] = "us%40r:";

	(void)state;
	for (int i = 0; i < 2; i++) {
		enum scheme scheme = i ? SCHEME_SOCKS4A : SCHEME_SOCKS4;

		check_question(scheme, NULL, "example.com",
			       BYTES("\x04\x01\x01\xbb\x00\x00\x00\x01\x00"
				     "example.com\x00"));
		check_question(scheme, user, "example.com",
			       BYTES("\x04\x01\x01\xbb\x00\x00\x00\x01us@r\x00"
				     "example.com\x00"));
	}
}

static void test_an_address_goes_in_the_form_of_socks4(void **state)
{
	char user[] = "me:";

	(void)state;
	check_question(SCHEME_SOCKS4A, NULL, "192.0.2.1",
		       BYTES("\x04\x01\x01\xbb\xc0\x00\x02\x01\x00"));
	check_question(SCHEME_SOCKS4, user, "192.0.2.1",
		       BYTES("\x04\x01\x01\xbb\xc0\x00\x02\x01me\x00"));
}

/* DESIGN 6: a member that cannot carry a target is nobody's fault. 0.0.0.1 would announce a name. */
static void test_what_the_protocol_cannot_name_is_not_even_tried(void **state)
{
	static const char *const hosts[] = {"2001:db8::1", "::ffff:192.0.2.1", "0.0.0.1"};

	(void)state;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		struct dial_stage f;

		dial_stage_begin(&f);
		f.proxy.scheme = i ? SCHEME_SOCKS4 : SCHEME_SOCKS4A;
		f.request.host = hosts[i];
		dial_stage_start(&f);
		dial_stage_expect(&f, REASON_PROXY_CANNOT);
		assert_false(peer_is_called(&f.peer));
		dial_stage_end(&f);
	}
}

static void begin(struct dial_stage *f)
{
	dial_stage_begin(f);
	f->proxy.scheme = SCHEME_SOCKS4;
	f->request.host = "192.0.2.1";
}

/* Dials anew; the proxy hears the question. */
static void ask(struct dial_stage *f)
{
	stream_close(&f->stream);
	dial_stage_start(f);
	peer_accept(&f->peer);
	dial_stage_hear(f, BYTES("\x04\x01\x01\xbb\xc0\x00\x02\x01\x00"));
}

/* The reply `reply`, cut wherever it can be, byte by byte, and whole; `early` is what stands behind it. A refusal is decided by
 * its first bytes. */
static void check_reply(const char *reply, size_t len, int result, const char *early)
{
	size_t cuts = result && len > 4 ? 4 : len;
	struct dial_stage f;

	begin(&f);
	for (size_t cut = 0; cut <= cuts; cut++) {
		ask(&f);
		dial_stage_say(&f, reply, len, cut == cuts ? DIAL_STAGE_DRIP : cut);
		dial_stage_expect(&f, result);
		if (!result && cut < len - strlen(early))
			assert_int_equal(f.early_len, strlen(early));
		if (!result)
			assert_memory_equal(f.early, early, f.early_len);
	}
	dial_stage_end(&f);
}

static void test_a_grant_opens_the_tunnel_and_what_follows_is_the_target_s(void **state)
{
	(void)state;
	check_reply(BYTES(GRANTED), 0, "");
	check_reply(BYTES(GRANTED "220 hello\r\n"), 0, "220 hello\r\n");
}

static void test_a_refusal_is_blamed_by_its_code(void **state)
{
	static const struct {
		char code;
		int result;
	} rows[] = {{91, REASON_TARGET_FAILED},    {92, REASON_PROXY_AUTH},
		    {93, REASON_PROXY_AUTH},       {94, REASON_PROXY_GARBAGE},
		    {89, REASON_PROXY_GARBAGE},    {0, REASON_PROXY_GARBAGE},
		    {'\xff', REASON_PROXY_GARBAGE}};
	char reply[] = GRANTED;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		reply[1] = rows[i].code;
		check_reply(reply, sizeof reply - 1, rows[i].result, "");
	}
}

static void test_a_refusal_may_be_cut_short(void **state)
{
	struct dial_stage f;

	(void)state;
	begin(&f);
	ask(&f);
	dial_stage_say(&f, BYTES("\x00\x5b"), 2);
	dial_stage_expect(&f, REASON_TARGET_FAILED);
	dial_stage_end(&f);
}

/* The version of a reply is 0, not 4. */
static void test_a_reply_of_another_version_is_garbage(void **state)
{
	(void)state;
	check_reply(BYTES("\x04\x5a\x01\xbb\x7f\x00\x00\x01"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("\x05\x00"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("HTTP/1.0 400 Bad\r\n"), REASON_PROXY_GARBAGE, "");
}

static void test_a_proxy_that_hangs_up_has_reset(void **state)
{
	struct dial_stage f;

	(void)state;
	begin(&f);
	for (size_t len = 0; len < 8; len++) {
		ask(&f);
		dial_stage_say(&f, GRANTED, len, len);
		peer_close(&f.peer);
		dial_stage_expect(&f, REASON_PROXY_RESET);
	}
	dial_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(
		test_a_name_goes_in_the_form_of_socks4a_under_both_schemes),        /* K9 K11 */
	    cmocka_unit_test(test_an_address_goes_in_the_form_of_socks4),           /* K9 */
	    cmocka_unit_test(test_what_the_protocol_cannot_name_is_not_even_tried), /* K9 */
	    cmocka_unit_test(
		test_a_grant_opens_the_tunnel_and_what_follows_is_the_target_s), /* K9 */
	    cmocka_unit_test(test_a_refusal_is_blamed_by_its_code),              /* K9 */
	    cmocka_unit_test(test_a_refusal_may_be_cut_short),                   /* K9 */
	    cmocka_unit_test(test_a_reply_of_another_version_is_garbage),        /* K9 */
	    cmocka_unit_test(test_a_proxy_that_hangs_up_has_reset),              /* K9 */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
