/* test_mask.c - what messages show of an entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "list/reader.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void masked_copy(const struct list_entry *e, void *arg)
{
	snprintf(arg, 400, "%s", e->text);
}

/* The text of the only entry. */
static void message_of(const char *line, char text[400])
{
	static const struct endpoint_rules rules = {.default_scheme = SCHEME_HTTP};
	static struct list_reader r;

	text[0] = '\0';
	assert_int_equal(list_reader_init(&r, &rules, 10, masked_copy, text), 0);
	assert_int_equal(list_reader_feed(&r, line, strlen(line)), 0);
	assert_int_equal(list_reader_end(&r), 0);
	assert_true(text[0] != '\0');
	list_reader_fini(&r);
}

static void masked_is(const char *line, const char *expected)
{
	char text[400];

	message_of(line, text);
	assert_string_equal(text, expected);
}

static void test_messages_show_what_is_no_secret(void **state)
{
	(void)state;
	masked_is("http://user:word@192.0.2.1:80", "http://***@192.0.2.1:80");
	masked_is("192.0.2.1:99999:user:word", "192.0.2.1:99999:***");
	masked_is("user:word:192.0.2.3:80800", "***:192.0.2.3:80800");
	masked_is("socks5://user:word@192.0.2.1:0", "socks5://***@192.0.2.1:0");
	masked_is("192.0.2.1:80a", "192.0.2.1:***");
	masked_is("10.0.0.1:80", "10.0.0.1:80");
	masked_is("tor:9050", "tor:9050");
	masked_is("Array", "Array");
	masked_is("vmess://eyJhZGQiOiJ3b3JkIn0=", "vmess://***");
	masked_is("gw.example.com:80:john.doe:9000", "***");
	masked_is("2001:db8::1:8080", "2001:db8::1:8080");
	masked_is("2001:db8::1:word", "***");
	masked_is("[2001:db8::zz]:80:u:word", "[2001:db8::zz]:80:***");
	masked_is("192.0.2.1:80 user:word", "192.0.2.1:80...");
	masked_is("192.0.2.9,99999,user,word", "192.0.2.9...");
}

/* Wherever a password stands in a line that is refused, the message does not hold it. */
static void test_messages_never_show_a_password(void **state)
{
	static const char *const lines[] = {
	    "socks4://user:hunter2@192.0.2.1:80",
	    "user:hunter2@192.0.2.1",
	    "http://user:hunter2@",
	    "http://:hunter2@192.0.2.1:80",
	    "gw.example.com:80:john.doe:hunter2:",
	    "gw.example.com:80:hunter2:90",
	    "user:hunter2@x@y",
	    "192.0.2.1:99999@user:hunter2",
	    "user:hunter2@http://192.0.2.1:80",
	    "http://http://user:hunter2@192.0.2.1:80",
	    "user:hunter2",
	    "user:hunter2:tor:80",
	    "192.0.2.1:0:user:hunter2",
	    "192.0.2.1 0 user hunter2",
	    "192.0.2.1:80 user:hunter2",
	    "192.0.2.1,0,user,hunter2",
	    "http 192.0.2.1 99999 user hunter2",
	    "user:hun#hunter2:tor:80",
	    "ss://hunter2@192.0.2.1:80",
	    "\"user:hunter2@192.0.2.1:80",
	    "user:hunter2:192.0.2.1:80,x@y",
	    "user:pw:hunter2.x:1:y",
	    "[user:hunter2@192.0.2.1:80",
	    "user:hunter2@192.0.2.1:80:US",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		char text[400];

		message_of(lines[i], text);
		if (strstr(text, "hunter2"))
			fail_msg("%s is shown as %s", lines[i], text);
	}
}

static void test_messages_are_short(void **state)
{
	char line[4000], text[400];

	(void)state;
	for (int form = 0; form < 5; form++) {
		static const char *const ends[] = {"!", ":", ":80", ":u:p", ".x:80:u:p"};

		memset(line, 'a', sizeof(line));
		memcpy(line + 3000, ends[form], strlen(ends[form]) + 1);
		message_of(line, text);
		assert_true(strlen(text) <= 300);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_messages_show_what_is_no_secret),
	    cmocka_unit_test(test_messages_never_show_a_password),
	    cmocka_unit_test(test_messages_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
