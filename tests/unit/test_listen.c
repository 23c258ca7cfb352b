/* test_listen.c - one element of --listen: an address, and what holds for those who connect there. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/listen.h"

static struct listen_spec spec;
static char error[256];

static void refuse(const char *text, const char *expected)
{
	struct listen_spec before = spec;

	assert_int_equal(listen_parse(&spec, text, error, sizeof error), -EINVAL);
	assert_string_equal(error, expected);
	assert_memory_equal(&spec, &before, sizeof spec);
}

static void test_an_address_alone_leaves_all_else_open(void **state)
{
	(void)state;
	assert_int_equal(listen_parse(&spec, "127.0.0.1:8888", error, sizeof error), 0);
	assert_string_equal(spec.address, "127.0.0.1:8888");
	assert_int_equal(((struct sockaddr_in *)&spec.place.sa)->sin_port, htons(8888));
	assert_int_equal(spec.auth, LISTEN_AUTH_DEFAULT);
	assert_int_equal(spec.protocol, LISTEN_ANY);
	assert_string_equal(spec.user, "");
	assert_string_equal(spec.pool, "");
}

static void test_words_in_any_order_say_what_holds_there(void **state)
{
	(void)state;
	assert_int_equal(listen_parse(&spec,
				      " [::1]:1080\tpool=eu.1  user=acme-session-a protocol=socks "
				      "auth=off ",
				      error, sizeof error),
			 0);
	assert_string_equal(spec.address, "[::1]:1080");
	assert_int_equal(spec.auth, LISTEN_AUTH_OFF);
	assert_int_equal(spec.protocol, LISTEN_SOCKS);
	assert_string_equal(spec.user, "acme-session-a");
	assert_string_equal(spec.pool, "eu.1");
	assert_int_equal(
	    listen_parse(&spec, "unix:/run/x auth=on protocol=http", error, sizeof error), 0);
	assert_int_equal(spec.auth, LISTEN_AUTH_ON);
	assert_int_equal(spec.protocol, LISTEN_HTTP);
	assert_string_equal(spec.user, "");
	assert_int_equal(listen_parse(&spec, "unix:/run/x protocol=any", error, sizeof error), 0);
	assert_int_equal(spec.protocol, LISTEN_ANY);
}

static void test_a_word_that_is_wrong_is_named_with_what_it_may_be(void **state)
{
	(void)state;
	refuse("", "'': expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH");
	refuse("localhost", "'localhost': expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH");
	refuse("auth=off 127.0.0.1:1",
	       "'auth=off': expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH");
	refuse("127.0.0.1:1 auth=maybe", "auth=maybe: must be on or off");
	refuse("127.0.0.1:1 protocol=https", "protocol=https: must be any, http or socks");
	refuse("127.0.0.1:1 user=", "user=: must have 1 to 255 bytes");
	refuse("127.0.0.1:1 pool=a-b",
	       "pool=a-b: must be an alias: 1 to 64 letters, digits, '.' and '_'");
	refuse("127.0.0.1:1 pools=a",
	       "'pools=a': must be auth=on|off, protocol=any|http|socks, user=NAME or pool=ALIAS");
	refuse("127.0.0.1:1 auth",
	       "'auth': must be auth=on|off, protocol=any|http|socks, user=NAME or pool=ALIAS");
	refuse("127.0.0.1:1 Auth=on", "'Auth=on': must be auth=on|off, protocol=any|http|socks, "
				      "user=NAME or pool=ALIAS");
}

static void test_a_word_that_stands_twice_is_refused(void **state)
{
	(void)state;
	refuse("127.0.0.1:1 auth=on auth=on", "auth= stands twice");
	refuse("127.0.0.1:1 pool=a user=x pool=b", "pool= stands twice");
}

/* "127.0.0.1:1 NAME=" and `count` letters. */
static int parse_long(const char *name, int count)
{
	char text[1200], letters[1024];

	memset(letters, 'a', sizeof letters - 1);
	letters[sizeof letters - 1] = '\0';
	snprintf(text, sizeof text, "127.0.0.1:1 %s=%.*s", name, count, letters);
	return listen_parse(&spec, text, error, sizeof error);
}

static void test_names_have_a_longest_length(void **state)
{
	(void)state;
	assert_int_equal(parse_long("user", LISTEN_USER_MAX), 0);
	assert_int_equal(strlen(spec.user), LISTEN_USER_MAX);
	assert_int_equal(parse_long("user", LISTEN_USER_MAX + 1), -EINVAL);
	assert_int_equal(parse_long("user", 1000), -EINVAL);
	assert_int_equal(parse_long("pool", LISTEN_POOL_MAX), 0);
	assert_int_equal(strlen(spec.pool), LISTEN_POOL_MAX);
	assert_int_equal(parse_long("pool", LISTEN_POOL_MAX + 1), -EINVAL);
	assert_int_equal(parse_long("pool", 1000), -EINVAL);
}

static void test_control_bytes_reach_neither_the_name_nor_the_message(void **state)
{
	(void)state;
	refuse("127.0.0.1:1 user=a\nb", "user=a?b: must not hold control characters");
	refuse("127.0.0.1:1\n", "'127.0.0.1:1?': expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_address_alone_leaves_all_else_open),
	    cmocka_unit_test(test_words_in_any_order_say_what_holds_there),
	    cmocka_unit_test(test_a_word_that_is_wrong_is_named_with_what_it_may_be),
	    cmocka_unit_test(test_a_word_that_stands_twice_is_refused),
	    cmocka_unit_test(test_names_have_a_longest_length),
	    cmocka_unit_test(test_control_bytes_reach_neither_the_name_nor_the_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
