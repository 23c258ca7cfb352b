/* test_judge.c - the reading of a judge's answer: exit address and anonymity by the fields of the request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/judge.h"

static char exit_address[46];

/* The verdict on an answer whose caller is `address` and whose request had these fields, or -EPROTO. */
static int read_from(const char *address, const char *fields)
{
	enum anonymity anonymity = ANONYMITY_UNKNOWN;
	char body[2048];
	int r;

	snprintf(body, sizeof body,
		 "{\"judge\":1,\"address\":\"%s\",\"port\":40000,\"method\":\"GET\","
		 "\"target\":\"/\",\"headers\":[[\"Host\",\"judge.test\"]%s%s]}\n",
		 address, *fields ? "," : "", fields);
	strcpy(exit_address, "?");
	r = judge_read(body, strlen(body), exit_address, &anonymity);
	return r ? r : (int)anonymity;
}

static void is_judged(const char *name, const char *value, enum anonymity expected)
{
	char field[512];
	int verdict;

	snprintf(field, sizeof field, "[\"%s\",\"%s\"]", name, value);
	verdict = read_from("203.0.113.7", field);
	if (verdict != (int)expected)
		fail_msg("%s: %s: verdict %d, not %d", name, value, verdict, (int)expected);
}

static void test_a_request_without_a_trace_of_a_proxy_is_elite(void **state)
{
	(void)state;
	assert_int_equal(read_from("203.0.113.7", ""), ANONYMITY_ELITE);
	assert_string_equal(exit_address, "203.0.113.7");
	is_judged("User-Agent", "via 192.0.2.1", ANONYMITY_ELITE);
	is_judged("Connection", "close", ANONYMITY_ELITE);
	is_judged("X-Viable", "1", ANONYMITY_ELITE);
	is_judged("Proxies", "1", ANONYMITY_ELITE);
}

/* RFC 9110 7.6.3, 7.6.1, 11.7.2; RFC 7239; RFC 8586. */
static void test_a_field_that_a_proxy_adds_makes_it_anonymous(void **state)
{
	(void)state;
	is_judged("Via", "1.1 192.0.2.1", ANONYMITY_ANONYMOUS);
	is_judged("via", "1.1 tinyproxy (tinyproxy/1.11.1)", ANONYMITY_ANONYMOUS);
	is_judged("CDN-Loop", "example", ANONYMITY_ANONYMOUS);
	is_judged("Proxy-Connection", "keep-alive", ANONYMITY_ANONYMOUS);
	is_judged("Proxy-Authorization", "Basic dTpw", ANONYMITY_ANONYMOUS);
	is_judged("X-Proxy-Id", "192.0.2.1", ANONYMITY_ANONYMOUS);
	is_judged("X-Forwarded-Proto", "http", ANONYMITY_ANONYMOUS);
	is_judged("X-Forwarded-Host", "192.0.2.1", ANONYMITY_ANONYMOUS);
}

static void test_a_field_that_names_another_address_makes_it_transparent(void **state)
{
	static const char *const names[] = {
	    "X-Forwarded-For",     "x-forwarded-for",  "X-Real-IP",
	    "Client-IP",           "True-Client-IP",   "X-Client-IP",
	    "X-Cluster-Client-IP", "CF-Connecting-IP", "X-Tinyproxy"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		is_judged(names[i], "198.51.100.4", ANONYMITY_TRANSPARENT);
		is_judged(names[i], "203.0.113.7", ANONYMITY_ANONYMOUS);
		is_judged(names[i], "unknown", ANONYMITY_ANONYMOUS);
		is_judged(names[i], "", ANONYMITY_ANONYMOUS);
	}
}

static void test_every_address_of_a_list_counts(void **state)
{
	(void)state;
	is_judged("X-Forwarded-For", "unknown, 203.0.113.7 ,198.51.100.4", ANONYMITY_TRANSPARENT);
	is_judged("X-Forwarded-For", "203.0.113.7,203.0.113.7", ANONYMITY_ANONYMOUS);
	is_judged("X-Forwarded-For", ",, ,", ANONYMITY_ANONYMOUS);
	assert_int_equal(read_from("203.0.113.7", "[\"Via\",\"1.1 a\"],[\"X-Real-IP\","
						  "\"198.51.100.4\"],[\"Via\",\"1.1 b\"]"),
			 ANONYMITY_TRANSPARENT);
}

/* RFC 7239 4 and 6: node, port, quoted IPv6, obfuscated identifiers; only for= is about the client. */
static void test_forwarded_is_read_by_its_grammar(void **state)
{
	(void)state;
	is_judged("Forwarded", "for=192.0.2.43", ANONYMITY_TRANSPARENT);
	is_judged("Forwarded", "For=\\\"[2001:db8:cafe::17]:4711\\\"", ANONYMITY_TRANSPARENT);
	is_judged("Forwarded", "proto=http; for=\\\"192.0.2.60:4711\\\";by=203.0.113.43",
		  ANONYMITY_TRANSPARENT);
	is_judged("Forwarded", "for=unknown, for=198.51.100.17", ANONYMITY_TRANSPARENT);
	is_judged("Forwarded", "for=_gazonk;by=192.0.2.43", ANONYMITY_ANONYMOUS);
	is_judged("Forwarded", "for=203.0.113.7;host=\\\"a;for=192.0.2.1\\\"", ANONYMITY_ANONYMOUS);
	is_judged("Forwarded", "for=", ANONYMITY_ANONYMOUS);
	is_judged("Forwarded", "for=\\\"[2001:db8::1", ANONYMITY_ANONYMOUS);
}

static void test_an_address_is_the_same_in_every_spelling(void **state)
{
	(void)state;
	is_judged("X-Forwarded-For", "203.0.113.7:4711", ANONYMITY_ANONYMOUS);
	is_judged("X-Forwarded-For", "::ffff:203.0.113.7", ANONYMITY_ANONYMOUS);
	is_judged("X-Forwarded-For", "[::ffff:198.51.100.4]:80", ANONYMITY_TRANSPARENT);
	assert_int_equal(read_from("2001:DB8:0::1", "[\"X-Forwarded-For\",\"[2001:db8::1]:4711\"]"),
			 ANONYMITY_ANONYMOUS);
	assert_string_equal(exit_address, "2001:db8::1");
	assert_int_equal(read_from("2001:db8::1", "[\"X-Forwarded-For\",\"2001:db8::2\"]"),
			 ANONYMITY_TRANSPARENT);
}

static void test_what_is_no_judges_answer_is_refused(void **state)
{
	static const char *const bodies[] = {
	    "",
	    "[]",
	    "null",
	    "<html></html>",
	    "{\"judge\":1,\"address\":\"192.0.2.1\"}",
	    "{\"address\":\"192.0.2.1\",\"headers\":[]}",
	    "{\"judge\":2,\"address\":\"192.0.2.1\",\"headers\":[]}",
	    "{\"judge\":true,\"address\":\"192.0.2.1\",\"headers\":[]}",
	    "{\"judge\":1,\"address\":\"unknown\",\"headers\":[]}",
	    "{\"judge\":1,\"address\":7,\"headers\":[]}",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":{}}",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[[]]}",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[[\"Via\",1]]}",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[[\"Via\",\"a\",\"b\"]]}",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[]} x",
	    "{\"judge\":1,\"address\":\"192.0.2.1\",\"address\":\"192.0.2.2\",\"headers\":[]}",
	};
	enum anonymity anonymity = ANONYMITY_UNKNOWN;
	char address[46] = "untouched";

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		if (judge_read(bodies[i], strlen(bodies[i]), address, &anonymity) != -EPROTO)
			fail_msg("taken: %s", bodies[i]);
	assert_string_equal(address, "untouched");
	assert_int_equal(anonymity, ANONYMITY_UNKNOWN);
}

static void test_an_answer_has_at_most_64_kib(void **state)
{
	static const char answer[] = "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[]}";
	static char body[JUDGE_ANSWER_MAX + 1];
	enum anonymity anonymity;

	(void)state;
	memset(body, ' ', sizeof body);
	memcpy(body, answer, sizeof answer - 1);
	assert_int_equal(judge_read(body, sizeof body, exit_address, &anonymity), -EPROTO);
	assert_int_equal(judge_read(body, sizeof body - 1, exit_address, &anonymity), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_request_without_a_trace_of_a_proxy_is_elite),
	    cmocka_unit_test(test_a_field_that_a_proxy_adds_makes_it_anonymous),
	    cmocka_unit_test(test_a_field_that_names_another_address_makes_it_transparent),
	    cmocka_unit_test(test_every_address_of_a_list_counts),
	    cmocka_unit_test(test_forwarded_is_read_by_its_grammar),
	    cmocka_unit_test(test_an_address_is_the_same_in_every_spelling),
	    cmocka_unit_test(test_what_is_no_judges_answer_is_refused),
	    cmocka_unit_test(test_an_answer_has_at_most_64_kib),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
