/* test_lines.c - plain proxy lists: one rule after the other. */
#include "list_check.h"

#include <errno.h>

static void test_chains_lines_are_read(void **state)
{
	(void)state;
	line_is("socks5 192.0.2.1 1080", "accepted socks5://192.0.2.1:1080");
	line_is("http\t192.0.2.1\t8080  user p%40ss # c",
		"accepted http://user:p%2540ss@192.0.2.1:8080");
	line_is("SOCKS4 [2001:db8::1] 1080", "accepted socks4://[2001:db8::1]:1080");
	line_is("https proxy.example.com 443 u p:w",
		"accepted https://u:p%3Aw@proxy.example.com:443");
	line_is("socks5 2001:db8::1 1080", "rejected ipv6-unbracketed");
	line_is("socks5 192.0.2.1 70000", "rejected port-range");
	line_is("socks4 192.0.2.1 1080 user pass", "rejected socks4-password");
	line_is("socks5 192.0.2.1 1080 user", "rejected not-an-endpoint");
	line_is("http proxies of today", "rejected not-an-endpoint");
}

static void test_a_label_with_a_colon_is_never_dropped(void **state)
{
	(void)state;
	line_is("192.0.2.1:80 user:key", "rejected extra-field-with-colon");
	line_is("192.0.2.1:80,198.51.100.1:81", "rejected extra-field-with-colon");
	line_is("192.0.2.1 80 user:key", "rejected extra-field-with-colon");
	line_is("192.0.2.1:80 | a:b", "rejected extra-field-with-colon");
	line_is("192.0.2.1:80 US a:b", "accepted http://192.0.2.1:80");
	line_is("192.0.2.1:80 # a:b", "accepted http://192.0.2.1:80");
	line_is("192.0.2.1:80#a:b", "accepted http://192.0.2.1:80");
}

static void test_only_the_first_label_names_the_scheme(void **state)
{
	(void)state;
	line_is("192.0.2.1:1080 SOCKS5", "accepted socks5://192.0.2.1:1080");
	line_is("192.0.2.1:1080:socks5", "accepted socks5://192.0.2.1:1080");
	line_is("192.0.2.1:1080 US socks5", "accepted http://192.0.2.1:1080");
	line_is("socks4://192.0.2.1:1080 socks5", "accepted socks4://192.0.2.1:1080");
	line_is("192.0.2.1:1080 direct", "accepted http://192.0.2.1:1080");
	line_is("192.0.2.1:1080 HTTP/HTTPS", "accepted http://192.0.2.1:1080");
}

static void test_separators_belong_to_credentials(void **state)
{
	(void)state;
	line_is("u,s;er:p|w@192.0.2.1:80 US", "accepted http://u%2Cs%3Ber:p%7Cw@192.0.2.1:80");
	line_is("192.0.2.1:80:user:p,w;#|", "accepted http://user:p%2Cw%3B%23%7C@192.0.2.1:80");
	line_is("us,er:pa#ss:192.0.2.1:80", "accepted http://us%2Cer:pa%23ss@192.0.2.1:80");
	line_is("user:pass:192.0.2.1:80|US|x:y", "accepted http://user:pass@192.0.2.1:80");
	line_is("user:pass:192.0.2.1:80#US:x", "accepted http://user:pass@192.0.2.1:80");
	line_is("192.0.2.1:80|me@example.com", "accepted http://192.0.2.1:80");
}

static void test_quotes_and_list_marks_are_removed_once(void **state)
{
	(void)state;
	line_is("  - 'http://192.0.2.1:80' , ", "accepted http://192.0.2.1:80");
	line_is("\"\"192.0.2.1:80\"\"", "rejected host-charset");
	line_is("\"192.0.2.1:80'", "rejected host-charset");
	line_is("- - 192.0.2.1:80", "rejected not-an-endpoint");
	line_is("-", "rejected not-an-endpoint");
	line_is("\"\"", "rejected not-an-endpoint");
	line_is(",", "rejected not-an-endpoint");
	line_is("-192.0.2.1:80", "rejected ipv4-form");
}

static void test_ranges_are_not_expanded(void **state)
{
	(void)state;
	line_is("192.0.2.0/24", "rejected cidr");
	line_is("192.0.2.0/24:8080", "rejected cidr");
	line_is("http://192.0.2.0/24:8080", "rejected cidr");
	line_is("2001:db8::/32", "rejected cidr");
	line_is("[2001:db8::]/32:80", "rejected cidr");
	line_is("192.0.2.1-192.0.2.9:80", "rejected cidr");
	line_is("192.0.2.1-9:80", "rejected cidr");
	line_is("192.0.2.1:8080-8090", "rejected port-syntax");
}

static void test_direct_never_comes_from_a_list(void **state)
{
	(void)state;
	list_is("direct://\nDIRECT://192.0.2.1\n", "1 rejected direct\n2 rejected direct\n");
}

static void test_ends_of_lines_may_differ(void **state)
{
	static const char input[] =
	    "192.0.2.1:1\r\n\r\r\n\n192.0.2.1:2\r192.0.2.1:3\n\r192.0.2.1:4";

	(void)state;
	reading_equals(input, sizeof(input) - 1, LIST_AUTO, NULL,
		       "1 accepted http://192.0.2.1:1\n2 skipped blank\n3 skipped blank\n"
		       "4 skipped blank\n5 accepted http://192.0.2.1:2\n"
		       "6 accepted http://192.0.2.1:3\n7 skipped blank\n"
		       "8 accepted http://192.0.2.1:4\n");
}

static void test_a_line_has_at_most_4096_bytes(void **state)
{
	static const char first[] = "192.0.2.1:1 ", second[] = "\n192.0.2.1:2";
	char input[5000];
	const char *expected = "1 accepted http://192.0.2.1:1\n2 accepted http://192.0.2.1:2\n";

	(void)state;
	for (size_t len = 4095; len <= 4097; len++) {
		memset(input, 'x', sizeof(input));
		memcpy(input, first, sizeof(first) - 1);
		memcpy(input + len, second, sizeof(second));
		if (len > 4096)
			expected = "1 rejected line-too-long\n2 accepted http://192.0.2.1:2\n";
		reading_equals(input, len + sizeof(second) - 1, LIST_AUTO, NULL, expected);
	}
}

static void test_controls_spoil_a_line_but_not_a_comment(void **state)
{
	static const char input[] =
	    "# \x01\0\n192.0.2.1:1 \x7f\n\x01\n192.0.2.1:1 # \0\n192.0.2.1:2";

	(void)state;
	reading_equals(input, sizeof(input) - 1, LIST_AUTO, NULL,
		       "1 skipped comment\n2 rejected control-char\n3 rejected control-char\n"
		       "4 rejected control-char\n5 accepted http://192.0.2.1:2\n");
}

static void scheme_copied(const struct list_entry *e, void *arg)
{
	snprintf(arg, LIST_SCHEME_MAX, "%s", e->scheme);
}

static void test_unsupported_schemes_are_named(void **state)
{
	static char line[] = "Hysteria2://x";
	char scheme[LIST_SCHEME_MAX];
	struct reading how = {.step = 13};

	(void)state;
	list_run((struct bytes){line, 13}, &how, scheme_copied, scheme);
	assert_string_equal(scheme, "hysteria2");
}

static void entry_ignore(const struct list_entry *e, void *arg)
{
	(void)e;
	(void)arg;
}

static void test_too_many_entries_end_the_reading(void **state)
{
	static const char input[] = "192.0.2.1:1\n192.0.2.1:1\n192.0.2.1:2\n192.0.2.1:3\n";
	static struct list_reader r;

	(void)state;
	assert_int_equal(list_reader_init(&r, &defaults, 2, entry_ignore, NULL), 0);
	assert_int_equal(list_reader_feed(&r, input, sizeof(input) - 1), 0);
	assert_int_equal(list_reader_end(&r), -ENOBUFS);
	assert_int_equal(r.output.counts[VERDICT_ACCEPTED], 2);
	assert_int_equal(r.output.counts[VERDICT_DUPLICATE], 1);
	list_reader_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chains_lines_are_read),
	    cmocka_unit_test(test_a_label_with_a_colon_is_never_dropped),
	    cmocka_unit_test(test_only_the_first_label_names_the_scheme),
	    cmocka_unit_test(test_separators_belong_to_credentials),
	    cmocka_unit_test(test_quotes_and_list_marks_are_removed_once),
	    cmocka_unit_test(test_ranges_are_not_expanded),
	    cmocka_unit_test(test_direct_never_comes_from_a_list),
	    cmocka_unit_test(test_ends_of_lines_may_differ),
	    cmocka_unit_test(test_a_line_has_at_most_4096_bytes),
	    cmocka_unit_test(test_controls_spoil_a_line_but_not_a_comment),
	    cmocka_unit_test(test_unsupported_schemes_are_named),
	    cmocka_unit_test(test_too_many_entries_end_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
