/* test_socks.c - what SOCKS clients say, cut at every byte: RFC 1928, RFC 1929, SOCKS4, SOCKS4a. Cases K1 to K5. */
#include "http_split.h"

#include "gateway/socks.h"

static struct socks_greeting greeting;
static struct socks_login login;
static struct socks_request request;

/* What a login points into. */
static char *read_from;

enum reader { GREETING, LOGIN, SOCKS5, SOCKS4 };

static long read_with(enum reader reader, const char *bytes, size_t len)
{
	free(read_from);
	read_from = exact_copy(bytes, len);
	switch (reader) {
	case GREETING:
		return socks5_read_greeting(&greeting, read_from, len);
	case LOGIN:
		return socks5_read_login(&login, read_from, len);
	case SOCKS5:
		return socks5_read_request(&request, read_from, len);
	case SOCKS4:
		return socks4_read_request(&request, read_from, len);
	}
	return MORE;
}

static int forget_bytes(void **state)
{
	(void)state;
	free(read_from);
	read_from = NULL;
	return 0;
}

/* The verdict on `t` and on each part of it that is long enough must be `want`, on shorter ones 0. It falls with byte `at`. */
static void check(enum reader reader, struct text t, long want, size_t at)
{
	for (size_t len = 0; len <= t.len; len++) {
		long result = read_with(reader, t.at, len);

		if (result != (len < at ? 0 : want))
			fail_msg("%zu of %zu bytes give %ld, not %ld", len, t.len, result,
				 len < at ? 0 : want);
	}
}

/* It is read whole, and what follows belongs to somebody else. */
static void check_good(enum reader reader, struct text t)
{
	char glued[1024];

	memcpy(glued, t.at, t.len);
	memcpy(glued + t.len, "\x16\x03", 2);
	check(reader, (struct text){glued, t.len + 2}, (long)t.len, t.len);
}

struct bad {
	struct text bytes;
	long reason;
	size_t at; /* how many bytes decide it */
};

static void check_bad(enum reader reader, const struct bad *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(reader, rows[i].bytes, -rows[i].reason, rows[i].at);
}

/* --- greeting: RFC 1928 3 ----------------------------------------------------------------------------------------- */

static void check_methods(struct text t, bool none, bool password)
{
	check_good(GREETING, t);
	assert_int_equal(greeting.offers_none, none);
	assert_int_equal(greeting.offers_password, password);
}

static void test_a_greeting_tells_which_methods_are_offered(void **state)
{
	(void)state;
	check_methods((struct text)BYTES("\5\1\0"), true, false);
	check_methods((struct text)BYTES("\5\1\2"), false, true);
	check_methods((struct text)BYTES("\5\2\0\2"), true, true);
	check_methods((struct text)BYTES("\5\3\2\1\0"), true, true);
	check_methods((struct text)BYTES("\5\2\1\x80"), false, false);
}

static void test_all_methods_at_once_are_read(void **state)
{
	char bytes[2 + 255] = {5, (char)255};

	(void)state;
	memset(bytes + 2, 0x7f, 255);
	bytes[2 + 254] = 2;
	check_methods((struct text){bytes, sizeof(bytes)}, false, true);
}

static void test_greetings_of_nobody_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\4\1\0"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("\1\1\0"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("GET"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("\5\0\0"), REASON_REQUEST_SYNTAX, 2}, /* K1: no method at all */
	};

	(void)state;
	check_bad(GREETING, rows, ROWS(rows));
}

/* --- name and password: RFC 1929 ---------------------------------------------------------------------------------- */

static void test_a_login_is_read_as_it_stands(void **state)
{
	static const struct text t = BYTES("\1\6a-\0b:c\3\xff\0x");

	(void)state;
	check_good(LOGIN, t);
	assert_int_equal(read_with(LOGIN, t.at, t.len), t.len);
	assert_int_equal(login.user_len, 6);
	assert_memory_equal(login.user, "a-\0b:c", 6);
	assert_int_equal(login.password_len, 3);
	assert_memory_equal(login.password, "\xff\0x", 3);
}

static void test_a_password_may_be_empty(void **state)
{
	(void)state;
	check_good(LOGIN, (struct text)BYTES("\1\1u\0"));
	assert_int_equal(login.password_len, 0);
}

static void test_the_longest_login_is_read(void **state)
{
	char bytes[3 + 255 + 255] = {1, (char)255};

	(void)state;
	memset(bytes + 2, 'u', 255);
	bytes[2 + 255] = (char)255;
	memset(bytes + 3 + 255, 'p', 255);
	check_good(LOGIN, (struct text){bytes, sizeof(bytes)});
	assert_int_equal(login.user_len, 255);
	assert_int_equal(login.password_len, 255);
}

static void test_logins_of_another_kind_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\5\1u\1p"), REASON_REQUEST_SYNTAX, 1}, /* K3, K2: a request in its place */
	    {BYTES("\0\1u\1p"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("\1\0\1p"), REASON_REQUEST_SYNTAX, 2},
	};

	(void)state;
	check_bad(LOGIN, rows, ROWS(rows));
}

/* --- request: RFC 1928 4, 5 --------------------------------------------------------------------------------------- */

static void check_target(enum reader reader, struct text t, const char *host, uint16_t port)
{
	check_good(reader, t);
	assert_string_equal(request.host, host);
	assert_int_equal(request.port, port);
}

static void test_a_target_is_an_address_or_a_name(void **state)
{
	(void)state;
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\1\xcb\0\x71\7\1\xbb"), "203.0.113.7", 443);
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\3\13Example.COM\0\x50"), "example.com", 80);
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\3\14example.com.\xff\xff"), "example.com",
		     65535);
	check_target(SOCKS5,
		     (struct text)BYTES("\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\1"),
		     "2001:db8::1", 1);
}

/* K5: the policy must see the address, however it is written. */
static void test_the_text_of_an_address_is_that_address(void **state)
{
	(void)state;
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\3\011127.0.0.1\0\x50"), "127.0.0.1", 80);
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\3\0200:0:0:0:0:0:0:01\0\x50"), "::1", 80);
	check_target(SOCKS5, (struct text)BYTES("\5\1\0\3\020::FFFF:127.0.0.1\0\x50"),
		     "::ffff:127.0.0.1", 80);
}

static void test_the_longest_name_is_read(void **state)
{
	char bytes[5 + 254 + 2] = "\5\1\0\3\xfe", want[254] = "";

	(void)state;
	for (size_t i = 0; i < 254; i++)
		bytes[5 + i] = i % 64 == 63 || i == 253 ? '.' : 'a';
	bytes[5 + 254 + 1] = 80;
	memcpy(want, bytes + 5, 253);
	check_target(SOCKS5, (struct text){bytes, sizeof(bytes)}, want, 80);
	bytes[5 + 253] = 'a';
	check(SOCKS5, (struct text){bytes, sizeof(bytes)}, -REASON_SOCKS_ADDRESS, 5 + 254);
}

static void test_other_commands_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\5\2\0\1"), REASON_SOCKS_COMMAND, 2}, /* K4: BIND */
	    {BYTES("\5\3\0\1"), REASON_SOCKS_COMMAND, 2}, /* UDP ASSOCIATE */
	    {BYTES("\5\0\0\1"), REASON_SOCKS_COMMAND, 2},
	    {BYTES("\5\x7f\0\1"), REASON_SOCKS_COMMAND, 2},
	};

	(void)state;
	check_bad(SOCKS5, rows, ROWS(rows));
}

static void test_hosts_that_cannot_be_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\5\1\0\2"), REASON_SOCKS_ADDRESS, 4}, /* K5: there is no such type */
	    {BYTES("\5\1\0\0"), REASON_SOCKS_ADDRESS, 4},
	    {BYTES("\5\1\0\3\0\0\x50"), REASON_SOCKS_ADDRESS, 5},
	    {BYTES("\5\1\0\3\xff"), REASON_SOCKS_ADDRESS, 5},
	    {BYTES("\5\1\0\3\3a\0b\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\3a b\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\4a\r\nb\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\3a%b\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\3a/b\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\3a@b\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\3a\xe4z\0\x50"), REASON_SOCKS_ADDRESS, 7},
	    {BYTES("\5\1\0\3\5[::1]\0\x50"), REASON_SOCKS_ADDRESS, 6},
	    {BYTES("\5\1\0\3\011fe80::1%1\0\x50"), REASON_SOCKS_ADDRESS, 13},
	    {BYTES("\5\1\0\3\4a..b\0\x50"), REASON_SOCKS_ADDRESS, 9},
	    {BYTES("\5\1\0\3\3a:1\0\x50"), REASON_SOCKS_ADDRESS, 8},
	    {BYTES("\5\1\0\3\1.\0\x50"), REASON_SOCKS_ADDRESS, 6},
	    {BYTES("\5\1\0\3\005127.1\0\x50"), REASON_SOCKS_ADDRESS, 10}, /* resolvers differ */
	    {BYTES("\5\1\0\3\0120x7f000001\0\x50"), REASON_SOCKS_ADDRESS, 15},
	};

	(void)state;
	check_bad(SOCKS5, rows, ROWS(rows));
}

static void test_broken_requests_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\4\1\0\1"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("\1\1u\1p"), REASON_REQUEST_SYNTAX, 1}, /* a login in its place */
	    {BYTES("\5\1\1\1"), REASON_REQUEST_SYNTAX, 3},
	    {BYTES("\5\1\0\1\1\2\3\4\0\0"), REASON_REQUEST_SYNTAX, 10},
	    {BYTES("\5\1\0\3\1a\0\0"), REASON_REQUEST_SYNTAX, 8},
	};

	(void)state;
	check_bad(SOCKS5, rows, ROWS(rows));
}

static void test_a_refused_request_leaves_the_structure_alone(void **state)
{
	static const struct text bad = BYTES("\5\1\0\1\1\2\3\4\0\0");

	(void)state;
	memset(&request, 0x5a, sizeof(request));
	assert_int_equal(read_with(SOCKS5, bad.at, bad.len), -REASON_REQUEST_SYNTAX);
	assert_int_equal(request.host[0], 0x5a);
	assert_int_equal(request.port, 0x5a5a);
}

/* --- SOCKS4, SOCKS4a ---------------------------------------------------------------------------------------------- */

static void test_socks4_names_an_address_and_a_user(void **state)
{
	(void)state;
	check_target(SOCKS4, (struct text)BYTES("\4\1\1\xbb\xcb\0\x71\7acme-session-a\0"),
		     "203.0.113.7", 443);
	assert_string_equal(request.user, "acme-session-a");
	check_target(SOCKS4, (struct text)BYTES("\4\1\0\x50\1\0\0\1\0"), "1.0.0.1", 80);
	assert_string_equal(request.user, "");
}

static void test_socks4a_names_a_host(void **state)
{
	(void)state;
	check_target(SOCKS4, (struct text)BYTES("\4\1\0\x50\0\0\0\1u\0WWW.example.com\0"),
		     "www.example.com", 80);
	assert_string_equal(request.user, "u");
	check_target(SOCKS4,
		     (struct text)BYTES("\4\1\0\x50\0\0\0\xff\0"
					"127.0.0.1\0"),
		     "127.0.0.1", 80);
}

/* No name follows: it is an address, and the policy's. */
static void test_the_unspecified_address_announces_no_name(void **state)
{
	(void)state;
	check_target(SOCKS4, (struct text)BYTES("\4\1\0\x50\0\0\0\0u\0"), "0.0.0.0", 80);
}

static void test_socks4_requests_that_cannot_be_are_refused(void **state)
{
	static const struct bad rows[] = {
	    {BYTES("\5\1\0\x50\1\2\3\4\0"), REASON_REQUEST_SYNTAX, 1},
	    {BYTES("\4\2\0\x50\1\2\3\4\0"), REASON_SOCKS_COMMAND, 2}, /* BIND */
	    {BYTES("\4\0\0\x50\1\2\3\4\0"), REASON_SOCKS_COMMAND, 2},
	    {BYTES("\4\1\0\0\1\2\3\4\0"), REASON_REQUEST_SYNTAX, 4},
	    {BYTES("\4\1\0\x50\0\0\0\1u\0\0"), REASON_SOCKS_ADDRESS, 11},
	    {BYTES("\4\1\0\x50\0\0\0\1u\0a b\0"), REASON_SOCKS_ADDRESS, 12},
	    {BYTES("\4\1\0\x50\0\0\0\1u\0a\r\n\0"), REASON_SOCKS_ADDRESS, 12},
	    {BYTES("\4\1\0\x50\0\0\0\1u\0[::1]\0"), REASON_SOCKS_ADDRESS, 11},
	    {BYTES("\4\1\0\x50\0\0\0\1u\0a..b\0"), REASON_SOCKS_ADDRESS, 15},
	};

	(void)state;
	check_bad(SOCKS4, rows, ROWS(rows));
}

/* K9 from the other side: neither text may go on for ever. */
static void test_the_texts_of_socks4_are_bounded(void **state)
{
	char bytes[8 + 256 + 256] = "\4\1\0\x50\0\0\0\1";

	(void)state;
	memset(bytes + 8, 'u', 256);
	check(SOCKS4, (struct text){bytes, 8 + 256}, -REASON_REQUEST_SYNTAX, 8 + 256);
	bytes[8 + 255] = '\0';
	for (size_t i = 0; i < 255; i++)
		bytes[8 + 256 + i] = i % 64 == 63 ? '.' : 'a';
	check(SOCKS4, (struct text){bytes, 8 + 256 + 255}, -REASON_SOCKS_ADDRESS, 8 + 256 + 255);
	bytes[8 + 256 + 253] = '\0';
	check_good(SOCKS4, (struct text){bytes, 8 + 256 + 254});
	assert_int_equal(strlen(request.user), 255);
	assert_int_equal(strlen(request.host), 253);
}

/* --- replies ------------------------------------------------------------------------------------------------------ */

static void test_replies_are_as_the_protocols_have_them(void **state)
{
	char buffer[10];

	(void)state;
	assert_int_equal(socks5_write_method(buffer, SOCKS_PASSWORD), 2);
	assert_memory_equal(buffer, "\5\2", 2);
	assert_int_equal(socks5_write_method(buffer, SOCKS_NO_METHOD), 2);
	assert_memory_equal(buffer, "\5\xff", 2);
	assert_int_equal(socks5_write_login(buffer, true), 2);
	assert_memory_equal(buffer, "\1\0", 2);
	assert_int_equal(socks5_write_login(buffer, false), 2);
	assert_memory_equal(buffer, "\1\1", 2);
	assert_int_equal(socks5_write_reply(buffer, 5), 10);
	assert_memory_equal(buffer, "\5\5\0\1\0\0\0\0\0\0", 10);
	assert_int_equal(socks4_write_reply(buffer, true), 8);
	assert_memory_equal(buffer, "\0\x5a\0\0\0\0\0\0", 8);
	assert_int_equal(socks4_write_reply(buffer, false), 8);
	assert_memory_equal(buffer, "\0\x5b\0\0\0\0\0\0", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_greeting_tells_which_methods_are_offered),   /* K1 */
	    cmocka_unit_test(test_all_methods_at_once_are_read),                 /* K1 */
	    cmocka_unit_test(test_greetings_of_nobody_are_refused),              /* K1 */
	    cmocka_unit_test(test_a_login_is_read_as_it_stands),                 /* K3 */
	    cmocka_unit_test(test_a_password_may_be_empty),                      /* K3 */
	    cmocka_unit_test(test_the_longest_login_is_read),                    /* K3 */
	    cmocka_unit_test(test_logins_of_another_kind_are_refused),           /* K3 */
	    cmocka_unit_test(test_a_target_is_an_address_or_a_name),             /* K5 */
	    cmocka_unit_test(test_the_text_of_an_address_is_that_address),       /* K5 */
	    cmocka_unit_test(test_the_longest_name_is_read),                     /* K5 K10 */
	    cmocka_unit_test(test_other_commands_are_refused),                   /* K4 */
	    cmocka_unit_test(test_hosts_that_cannot_be_are_refused),             /* K5 */
	    cmocka_unit_test(test_broken_requests_are_refused),                  /* K5 */
	    cmocka_unit_test(test_a_refused_request_leaves_the_structure_alone), /* K5 */
	    cmocka_unit_test(test_socks4_names_an_address_and_a_user),           /* K7 */
	    cmocka_unit_test(test_socks4a_names_a_host),                         /* K7 */
	    cmocka_unit_test(test_the_unspecified_address_announces_no_name),    /* K7 */
	    cmocka_unit_test(test_socks4_requests_that_cannot_be_are_refused),   /* K7 */
	    cmocka_unit_test(test_the_texts_of_socks4_are_bounded),              /* K7 K10 */
	    cmocka_unit_test(test_replies_are_as_the_protocols_have_them),       /* K6 */
	};

	return cmocka_run_group_tests(tests, NULL, forget_bytes);
}
