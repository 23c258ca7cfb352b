/* test_dial_socks5.c - RFC 1928 and RFC 1929 with a proxy that is played byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "dial_stage.h"

/* A string literal and the number of its bytes. */
#define BYTES(literal) (literal), sizeof(literal) - 1

#define ASK_NAME                                                                                   \
	"\x05\x01\x00\x03\x0b"                                                                     \
	"example.com\x01\xbb"
#define GRANTED "\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"

static char secret[] = "us%40r:p%3Ass";

/* Dials anew; the proxy hears the greeting. */
static void greet(struct dial_stage *f)
{
	stream_close(&f->stream);
	dial_stage_start(f);
	peer_accept(&f->peer);
	if (f->proxy.secret)
		dial_stage_hear(f, BYTES("\x05\x02\x00\x02"));
	else
		dial_stage_hear(f, BYTES("\x05\x01\x00"));
}

static void begin(struct dial_stage *f, bool has_secret)
{
	dial_stage_begin(f);
	f->proxy.scheme = SCHEME_SOCKS5;
	f->proxy.secret = has_secret ? secret : NULL;
}

/* Up to the question for example.com:443. */
static void ask(struct dial_stage *f)
{
	greet(f);
	dial_stage_say(f, BYTES("\x05\x00"), 2);
	dial_stage_hear(f, BYTES(ASK_NAME));
}

/* --- the questions ------------------------------------------------------------------------------------------------ */

static void test_the_proxy_gets_the_target_s_name_under_both_schemes(void **state)
{
	const enum scheme schemes[] = {SCHEME_SOCKS5, SCHEME_SOCKS5H};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct dial_stage f;

		dial_stage_begin(&f);
		f.proxy.scheme = schemes[i];
		assert_false(dial_forwards(&f.proxy));
		dial_stage_start(&f);
		peer_accept(&f.peer);
		dial_stage_hear(&f, BYTES("\x05\x01\x00"));
		peer_say_bytes(&f.peer, BYTES("\x05\x00"));
		dial_stage_hear(&f, BYTES(ASK_NAME));
		dial_cancel(f.dial);
		dial_stage_end(&f);
	}
}

static void check_address(const char *host, uint16_t port, const char *question, size_t len)
{
	struct dial_stage f;

	dial_stage_begin(&f);
	f.proxy.scheme = SCHEME_SOCKS5H;
	f.request.host = host;
	f.request.port = port;
	f.request.is_plain = true; /* a proxy that forwards nothing makes a tunnel all the same */
	dial_stage_start(&f);
	peer_accept(&f.peer);
	dial_stage_hear(&f, BYTES("\x05\x01\x00"));
	peer_say_bytes(&f.peer, BYTES("\x05\x00"));
	dial_stage_hear(&f, question, len);
	dial_cancel(f.dial);
	dial_stage_end(&f);
}

static void test_addresses_go_as_addresses(void **state)
{
	(void)state;
	check_address("192.0.2.1", 80, BYTES("\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"));
	check_address("2001:db8::1", 65535,
		      BYTES("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\xff\xff"));
}

static void test_user_and_password_are_sent_decoded_to_who_chooses_them(void **state)
{
	struct dial_stage f;

	(void)state;
	begin(&f, true);
	for (size_t cut = 0; cut <= 2; cut++) {
		greet(&f);
		dial_stage_say(&f, BYTES("\x05\x02"), cut);
		dial_stage_hear(&f, BYTES("\x01\x04us@r\x04p:ss"));
		dial_stage_say(&f, BYTES("\x01\x00"), cut);
		dial_stage_hear(&f, BYTES(ASK_NAME));
		dial_stage_say(&f, BYTES(GRANTED), cut);
		dial_stage_expect(&f, 0);
	}
	dial_stage_end(&f);
}

static void test_a_proxy_may_not_want_the_password_that_is_offered(void **state)
{
	struct dial_stage f;

	(void)state;
	begin(&f, true);
	greet(&f);
	dial_stage_say(&f, BYTES("\x05\x00"), 2);
	dial_stage_hear(&f, BYTES(ASK_NAME));
	dial_cancel(f.dial);
	dial_stage_end(&f);
}

/* RFC 1929 2: one byte for each length. */
static void test_a_password_of_256_bytes_is_never_sent(void **state)
{
	char text[300];
	struct dial_stage f;

	(void)state;
	snprintf(text, sizeof text, "user:%0256d", 0);
	dial_stage_begin(&f);
	f.proxy.scheme = SCHEME_SOCKS5;
	f.proxy.secret = text;
	dial_stage_start(&f);
	dial_stage_expect(&f, REASON_PROXY_AUTH);
	assert_false(peer_is_called(&f.peer));
	text[sizeof "user:" - 1 + 255] = '\0';
	dial_stage_start(&f);
	peer_accept(&f.peer);
	dial_stage_hear(&f, BYTES("\x05\x02\x00\x02"));
	dial_cancel(f.dial);
	dial_stage_end(&f);
}

/* --- the answers -------------------------------------------------------------------------------------------------- */

/* The reply `reply`, cut wherever it can be, byte by byte, and whole; `early` is what stands behind it. A refusal is decided by
 * its first bytes. */
static void check_reply(const char *reply, size_t len, int result, const char *early)
{
	size_t cuts = result && len > 4 ? 4 : len;
	struct dial_stage f;

	begin(&f, false);
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

static void test_a_bound_address_of_each_type_opens_the_tunnel(void **state)
{
	(void)state;
	check_reply(BYTES(GRANTED), 0, "");
	check_reply(BYTES(GRANTED "SSH-2.0-"), 0, "SSH-2.0-");
	check_reply(BYTES("\x05\x00\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0early"), 0, "early");
	check_reply(BYTES("\x05\x00\x00\x03\x04host\x1f\x90"
			  "early"),
		    0, "early");
	check_reply(BYTES("\x05\x00\x00\x03\x00\x1f\x90"
			  "e"),
		    0, "e");
}

static void test_a_bound_name_of_255_bytes_is_the_longest(void **state)
{
	char reply[5 + 255 + 2 + 5] = "\x05\x00\x00\x03\xff";
	const size_t cuts[] = {0, 4, 5, 259, 260, 261, 262, DIAL_STAGE_DRIP};
	struct dial_stage f;

	(void)state;
	memset(reply + 5, 'n', 255);
	memcpy(reply + 262, "early", 5);
	begin(&f, false);
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		ask(&f);
		dial_stage_say(&f, reply, sizeof reply, cuts[i]);
		dial_stage_expect(&f, 0);
		if (cuts[i] < 262)
			assert_int_equal(f.early_len, 5);
		assert_memory_equal(f.early, "early", f.early_len);
	}
	dial_stage_end(&f);
}

/* RFC 1928 6, and whose fault it is (docs/design.md, section 6). */
static void test_a_refusal_is_blamed_by_its_code(void **state)
{
	static const struct {
		uint8_t code;
		int result;
	} rows[] = {{1, REASON_TARGET_FAILED},      {2, REASON_TARGET_DENIED},
		    {3, REASON_TARGET_UNREACHABLE}, {4, REASON_TARGET_FAILED},
		    {5, REASON_TARGET_REFUSED},     {6, REASON_TARGET_TIMEOUT},
		    {7, REASON_PROXY_CANNOT},       {8, REASON_PROXY_CANNOT},
		    {9, REASON_PROXY_GARBAGE},      {255, REASON_PROXY_GARBAGE}};
	char reply[] = GRANTED;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		reply[1] = (char)rows[i].code;
		check_reply(reply, sizeof reply - 1, rows[i].result, "");
	}
}

static void test_a_refusal_may_be_cut_short(void **state)
{
	struct dial_stage f;

	(void)state;
	begin(&f, false);
	ask(&f);
	dial_stage_say(&f, BYTES("\x05\x05"), 2);
	dial_stage_expect(&f, REASON_TARGET_REFUSED);
	dial_stage_end(&f);
}

static void test_a_reply_that_breaks_the_grammar_is_garbage(void **state)
{
	(void)state;
	check_reply(BYTES("\x04\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("\x05\x00\x01\x01\x7f\x00\x00\x01\x1f\x90"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("\x05\x00\x00\x02"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("\x05\x00\x00\x00\x7f\x00\x00\x01\x1f\x90"), REASON_PROXY_GARBAGE, "");
	check_reply(BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), REASON_PROXY_GARBAGE, "");
}

static void check_method(bool has_secret, const char *answer, size_t len, int result)
{
	struct dial_stage f;

	begin(&f, has_secret);
	for (size_t cut = 0; cut <= len; cut++) {
		greet(&f);
		dial_stage_say(&f, answer, len, cut == len ? DIAL_STAGE_DRIP : cut);
		dial_stage_expect(&f, result);
	}
	dial_stage_end(&f);
}

static void test_a_method_that_was_not_offered_is_garbage(void **state)
{
	(void)state;
	check_method(false, BYTES("\x05\x02"), REASON_PROXY_GARBAGE);
	check_method(false, BYTES("\x05\x01"), REASON_PROXY_GARBAGE);
	check_method(true, BYTES("\x05\x01"), REASON_PROXY_GARBAGE);
	check_method(true, BYTES("\x05\x80"), REASON_PROXY_GARBAGE);
	check_method(true, BYTES("\x04\x00"), REASON_PROXY_GARBAGE);
	check_method(false, BYTES("\x00\x5a"), REASON_PROXY_GARBAGE);
}

static void test_a_proxy_that_accepts_no_method_wants_other_credentials(void **state)
{
	(void)state;
	check_method(false, BYTES("\x05\xff"), REASON_PROXY_AUTH);
	check_method(true, BYTES("\x05\xff"), REASON_PROXY_AUTH);
}

static void check_password(const char *answer, size_t len, int result)
{
	struct dial_stage f;

	begin(&f, true);
	greet(&f);
	dial_stage_say(&f, BYTES("\x05\x02"), 2);
	dial_stage_hear(&f, BYTES("\x01\x04us@r\x04p:ss"));
	dial_stage_say(&f, answer, len, DIAL_STAGE_DRIP);
	dial_stage_expect(&f, result);
	dial_stage_end(&f);
}

static void test_a_password_that_is_refused_is_the_member_s_fault(void **state)
{
	(void)state;
	check_password(BYTES("\x01\x01"), REASON_PROXY_AUTH);
	check_password(BYTES("\x01\xff"), REASON_PROXY_AUTH);
	check_password(BYTES("\x05\x00"), REASON_PROXY_GARBAGE);
}

static void test_a_proxy_that_hangs_up_in_any_state_has_reset(void **state)
{
	static const char answer[] = "\x05\x00" GRANTED;
	struct dial_stage f;

	(void)state;
	begin(&f, false);
	for (size_t len = 0; len < sizeof answer - 1; len++) {
		greet(&f);
		dial_stage_say(&f, answer, len, 2);
		peer_close(&f.peer);
		dial_stage_expect(&f, REASON_PROXY_RESET);
	}
	dial_stage_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_proxy_gets_the_target_s_name_under_both_schemes), /* K11 */
	    cmocka_unit_test(test_addresses_go_as_addresses),                           /* K8 */
	    cmocka_unit_test(test_user_and_password_are_sent_decoded_to_who_chooses_them),
	    cmocka_unit_test(test_a_proxy_may_not_want_the_password_that_is_offered),
	    cmocka_unit_test(test_a_password_of_256_bytes_is_never_sent),
	    cmocka_unit_test(test_a_bound_address_of_each_type_opens_the_tunnel), /* K8 */
	    cmocka_unit_test(test_a_bound_name_of_255_bytes_is_the_longest),      /* K8 */
	    cmocka_unit_test(test_a_refusal_is_blamed_by_its_code),               /* K6 K8 */
	    cmocka_unit_test(test_a_refusal_may_be_cut_short),                    /* K8 */
	    cmocka_unit_test(test_a_reply_that_breaks_the_grammar_is_garbage),    /* K8 */
	    cmocka_unit_test(test_a_method_that_was_not_offered_is_garbage),      /* K8 */
	    cmocka_unit_test(test_a_proxy_that_accepts_no_method_wants_other_credentials),
	    cmocka_unit_test(test_a_password_that_is_refused_is_the_member_s_fault),
	    cmocka_unit_test(test_a_proxy_that_hangs_up_in_any_state_has_reset), /* K8 */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
