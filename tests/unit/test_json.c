/* test_json.c - proxy lists as JSON. */
#include "list_check.h"

#include <errno.h>

static void test_names_have_any_case_and_an_order(void **state)
{
	(void)state;
	list_is("[{\"HOST\":\"x.example.com\",\"Ip\":\"192.0.2.1\",\"PORT\":80}]",
		"1 accepted http://192.0.2.1:80\n");
	list_is("[{\"host\":\"x.example.com\",\"ip\":\"\",\"port\":80}]",
		"1 accepted http://x.example.com:80\n");
	list_is("[{\"type\":\"elite\",\"scheme\":\"socks4\",\"ip\":\"192.0.2.1\",\"port\":80}]",
		"1 accepted socks4://192.0.2.1:80\n");
	list_is("[{\"type\":\"elite\",\"ip\":\"192.0.2.1\",\"port\":80}]",
		"1 rejected unsupported-scheme\n");
	list_is("[{\"hostname\":\"192.0.2.1\",\"port\":80}]", "1 rejected json-shape\n");
}

static void test_a_port_is_a_number_or_digits(void **state)
{
	static const char *const cases[][2] = {
	    {"80", "1 accepted http://192.0.2.1:80\n"},
	    {"\"80\"", "1 accepted http://192.0.2.1:80\n"},
	    {"80.5", "1 rejected port-syntax\n"},
	    {"-80", "1 rejected port-syntax\n"},
	    {"0", "1 rejected port-range\n"},
	    {"65536", "1 rejected port-range\n"},
	    {"1e300", "1 rejected port-range\n"},
	    {"080", "1 rejected json-syntax\n"},
	    {"\"080\"", "1 rejected port-leading-zero\n"},
	    {"\"+80\"", "1 rejected port-syntax\n"},
	    {"\" 80\"", "1 rejected port-syntax\n"},
	    {"\"\"", "1 rejected missing-port\n"},
	    {"null", "1 rejected missing-port\n"},
	    {"[80]", "1 rejected port-syntax\n"},
	    {"false", "1 rejected port-syntax\n"},
	    {"{}", "1 rejected port-syntax\n"},
	};
	char input[100];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(input, sizeof(input), "[{\"ip\":\"192.0.2.1\",\"port\":%s}]", cases[i][0]);
		list_is(input, cases[i][1]);
	}
}

static void test_schemes_give_one_entry_each(void **state)
{
	(void)state;
	list_is(
	    "[{\"ip\":\"192.0.2.1\",\"port\":80,\"protocols\":[\"HTTP\",\"socks\",\"socks5\"]}]",
	    "1 accepted http://192.0.2.1:80\n1 rejected ambiguous-scheme\n"
	    "1 accepted socks5://192.0.2.1:80\n");
	list_is("[{\"ip\":\"192.0.2.1\",\"port\":80,\"protocols\":[]}]",
		"1 accepted http://192.0.2.1:80\n");
	list_is("[{\"ip\":\"192.0.2.1\",\"port\":80,\"protocols\":[1]}]",
		"1 rejected json-shape\n");
	list_is("[{\"ip\":\"192.0.2.1\",\"port\":80,\"protocol\":\"direct\"}]",
		"1 rejected direct\n");
	list_is("[{\"ip\":\"192.0.2.1\",\"port\":80,\"protocol\":null,\"type\":\"\"}]",
		"1 accepted http://192.0.2.1:80\n");
}

static void test_a_host_may_hold_its_port(void **state)
{
	(void)state;
	list_is("[{\"ip\":\"192.0.2.1:80\"}]", "1 accepted http://192.0.2.1:80\n");
	list_is("[{\"ip\":\"192.0.2.1:99999\"}]", "1 rejected port-range\n");
	list_is("[{\"ip\":\"192.0.2.1\"}]", "1 rejected missing-port\n");
	list_is("[{\"ip\":\"2001:db8::1\"}]", "1 rejected missing-port\n");
	list_is("[{\"ip\":\"[2001:db8::1]:80\"}]", "1 accepted http://[2001:db8::1]:80\n");
	list_is("[{\"ip\":\"192.0.2.1:80\",\"type\":\"socks5\"}]",
		"1 accepted socks5://192.0.2.1:80\n");
}

static void test_a_proxy_counts_without_a_host_only(void **state)
{
	(void)state;
	list_is("[{\"proxy\":\"socks5://u:p%41@192.0.2.1:80\",\"protocol\":\"http\"}]",
		"1 accepted socks5://u:pA@192.0.2.1:80\n");
	list_is("[{\"proxy\":\"192.0.2.1:80\",\"protocol\":\"socks4\"}]",
		"1 accepted socks4://192.0.2.1:80\n");
	list_is("[{\"proxy\":\"socks5://192.0.2.1:80\",\"ip\":\"192.0.2.2\"}]",
		"1 rejected missing-port\n");
	list_is("[{\"proxy\":true}]", "1 rejected json-shape\n");
}

static void test_elements_stand_under_known_names(void **state)
{
	static const char *const names[] = {"data", "Proxies", "list",   "RESULTS", "result",
					    "http", "https",   "socks4", "socks5h"};
	char input[100];

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(input, sizeof(input),
			 "{\"a\":[\"192.0.2.2:80\"],\n\"%s\" : [\"http://192.0.2.1:80\"],\"b\":{}}",
			 names[i]);
		list_is(input, "2 accepted http://192.0.2.1:80\n");
	}
	list_is("{\"items\":[\"192.0.2.1:80\"]}", "0 rejected json-shape\n");
	list_is("{\"direct\":[\"192.0.2.1:80\"]}", "0 rejected json-shape\n");
	list_is("{\"data\":{\"socks5\":[\"192.0.2.1:80\"]},\"http\":[\"192.0.2.1:80\"]}",
		"1 accepted socks5://192.0.2.1:80\n1 accepted http://192.0.2.1:80\n");
}

static void test_what_does_not_close_drops_its_elements(void **state)
{
	(void)state;
	list_is("[\"192.0.2.1:80\",\n\"192.0.2.2:80\"", "0 rejected json-syntax\n");
	list_is("[\"192.0.2.1:80\"}", "0 rejected json-syntax\n");
	list_is("{\"data\":[\"192.0.2.1:80\"]", "0 rejected json-syntax\n");
	list_is("{\"data\":[\"192.0.2.1:80\"] x}", "0 rejected json-syntax\n");
	list_is("{data:[\"192.0.2.1:80\"]}", "0 rejected json-syntax\n");
	list_is("[{\"ip\":\"192.0.2.1\",\"port\":80,\"x\":[}]", "0 rejected json-syntax\n");
	list_is("{\"ip\":\"192.0.2.1\",\"port\":80,}", "0 rejected json-syntax\n");
	list_is("[\"192.0.2.1:80\"]\n]", "0 rejected json-syntax\n");
	list_is("{", "0 rejected json-syntax\n");
	list_is("[\"192.0.2.1:80", "0 rejected json-syntax\n");
}

static void test_one_bad_document_of_several_costs_itself(void **state)
{
	(void)state;
	list_is("{\n\"error\":1}\n{\n\"ip\":\"192.0.2.1\",\"port\":80}\n{\n,}\n[\"192.0.2.2:80\"]",
		"1 rejected json-shape\n3 accepted http://192.0.2.1:80\n"
		"5 rejected json-syntax\n7 accepted http://192.0.2.2:80\n");
	list_is("{\n\"ip\":\"10.0.0.1\",\"port\":80}", "1 rejected bogon\n");
	list_is("{\n\"ip\":\"192.0.2.1\",\"port\":80,\n}", "0 rejected json-syntax\n");
}

static void test_nothing_between_commas_is_no_json(void **state)
{
	(void)state;
	list_is("[\"192.0.2.1:80\",\n,\n]", "1 accepted http://192.0.2.1:80\n"
					    "2 rejected json-syntax\n3 rejected json-syntax\n");
	list_is("[]", "");
	list_is("[\n]\n", "");
	list_is("{}", "0 rejected json-shape\n");
}

static void test_a_dropped_document_leaves_nothing_behind(void **state)
{
	static const char input[] = "[\"192.0.2.1:80\",\"192.0.2.2:80\"";
	static struct list_reader r;
	struct dedupe_item item;
	struct got g = {0};
	size_t at = 0;

	(void)state;
	assert_int_equal(list_reader_init(&r, &defaults, 10, entry_collect, &g), 0);
	assert_int_equal(list_reader_feed(&r, input, sizeof(input) - 1), 0);
	assert_int_equal(list_reader_end(&r), 0);
	assert_false(list_reader_next(&r, &at, &item));
	assert_int_equal(r.output.counts[VERDICT_ACCEPTED], 0);
	assert_int_equal(r.output.counts[VERDICT_JSON_SYNTAX], 1);
	list_reader_fini(&r);
	free(g.text);
}

static void test_what_was_accepted_stays_in_order_with_its_tags(void **state)
{
	static const char input[] =
	    "[{\"ip\":\"192.0.2.2\",\"port\":80,\"user\":\"u\",\"country\":\"DE\"},"
	    "\"10.0.0.1:80\",\"192.0.2.1:80\",{\"ip\":\"192.0.2.1\",\"port\":80,\"cc\":\"US\"}]";
	static struct list_reader r;
	struct dedupe_item item;
	struct got g = {0};
	size_t at = 0;

	(void)state;
	assert_int_equal(list_reader_init(&r, &defaults, 10, entry_collect, &g), 0);
	assert_int_equal(list_reader_feed(&r, input, sizeof(input) - 1), 0);
	assert_int_equal(g.entries, 0);
	assert_int_equal(list_reader_end(&r), 0);
	assert_int_equal(g.entries, 4);
	assert_true(list_reader_next(&r, &at, &item));
	assert_string_equal(item.text, "http://u:@192.0.2.2:80");
	assert_string_equal(item.country, "DE");
	assert_true(list_reader_next(&r, &at, &item));
	assert_string_equal(item.text, "http://192.0.2.1:80");
	assert_string_equal(item.country, "");
	assert_false(list_reader_next(&r, &at, &item));
	list_reader_fini(&r);
	free(g.text);
}

static void tags_collect(const struct list_entry *e, void *arg)
{
	got_add(arg, (unsigned long)e->line, e->country, e->anonymity);
}

static void test_country_and_anonymity_are_kept(void **state)
{
	static const char input[] =
	    "[{\"ip\":\"192.0.2.1\",\"port\":80,\"country\":\"x\",\"CC\":\"DE\",\"anon\":\"elite\"}"
	    ",\n"
	    "{\"ip\":\"192.0.2.2\",\"port\":80,\"geo\":\"FR\",\"level\":\"high\"},\n"
	    "{\"proxy\":\"192.0.2.3:80\",\"geolocation\":{\"country\":\"CN\"},\"level\":3},\n"
	    "{\"ip\":\"192.0.2.4\",\"port\":80,\"anonymityLevel\":\"a\",\"ip_data\":{"
	    "\"countryCode\":"
	    "\"US\"}},\n"
	    "{\"ip\":\"192.0.2.5\",\"port\":80,\"country\":\"a\\tb\",\"anonymity\":null}]";
	struct bytes b = {(char *)(uintptr_t)input, sizeof(input) - 1};
	struct reading how = {.step = 0};
	struct got g = {0};

	(void)state;
	list_run(b, &how, tags_collect, &g);
	assert_string_equal(g.text, "1 DE elite\n2 FR high\n3 CN \n4 US a\n5  \n");
	free(g.text);
}

static void text_collect(const struct list_entry *e, void *arg)
{
	got_add(arg, (unsigned long)e->line, e->text, e->scheme);
}

static void test_messages_show_no_password(void **state)
{
	static const char input[] =
	    "[{\"ip\":\"192.0.2.1\",\"port\":80,\"user\":\"u\",\"pass\":\"hunter2\"},\n"
	    "{\"ip\":\"192.0.2.2\",\"port\":0,\"user\":\"u\",\"pass\":\"hunter2\"},\n"
	    "{\"ip\":\"2001:db8::1\",\"port\":80,\"type\":\"Vmess\",\"pass\":\"hunter2\"},\n"
	    "{\"ip\":\"u:hunter2@192.0.2.1\",\"port\":80},\n"
	    "{\"proxy\":\"u:hunter2@192.0.2.1\"},\n\"u:hunter2@192.0.2.1\",\n"
	    "{\"port\":80,\"pass\":\"hunter2\"},\n{\"pass\":\"hunter2\",}]";
	struct bytes b = {(char *)(uintptr_t)input, sizeof(input) - 1};
	struct reading how = {.step = 0};
	struct got g = {0};

	(void)state;
	list_run(b, &how, text_collect, &g);
	assert_null(strstr(g.text, "hunter2"));
	assert_non_null(strstr(g.text, "1 http://***@192.0.2.1:80 \n2 192.0.2.2:0 \n"
				       "3 Vmess://*** vmess\n"));
	assert_int_equal(g.entries, 8);
	free(g.text);
}

static void test_a_document_of_lines_is_found_by_its_second_line(void **state)
{
	(void)state;
	list_is("{\"ip\":\"192.0.2.1\",\"port\":80}\n", "1 accepted http://192.0.2.1:80\n");
	list_is("{\"ip\":\"192.0.2.1\",\"port\":80}\n\n{\"port\":80}",
		"1 accepted http://192.0.2.1:80\n2 skipped blank\n3 rejected json-shape\n");
	list_is("{\"ip\":\"192.0.2.1\n{\"ip\":\"192.0.2.2\",\"port\":80}",
		"1 rejected json-syntax\n2 accepted http://192.0.2.2:80\n");
	list_is("{\"ip\":\"192.0.2.1\",\n\"port\":80}\n{\"ip\":\"192.0.2.2\",\n\"port\":80}",
		"1 accepted http://192.0.2.1:80\n3 accepted http://192.0.2.2:80\n");
}

static void test_a_line_of_json_may_be_longer_than_a_plain_one(void **state)
{
	static char input[70000];
	char expected[100];

	(void)state;
	for (size_t fill = 65000; fill <= 66000; fill += 1000) {
		size_t len = (size_t)sprintf(
		    input, "{\"x\":\"%0*d\",\"ip\":\"192.0.2.1\",\"port\":80}\n{\"a\":1}",
		    (int)fill, 0);

		snprintf(expected, sizeof(expected), "1 %s\n2 rejected json-shape\n",
			 fill > 65536 ? "rejected line-too-long" : "accepted http://192.0.2.1:80");
		reading_equals(input, len, LIST_JSONL, NULL, expected);
	}
}

static void test_options_reach_the_elements(void **state)
{
	static const char input[] =
	    "{\"https\":[\"10.0.0.1:80\"],\"data\":[\"a.example:1:b.example:2\"]}";
	struct endpoint_rules rules = {.default_scheme = SCHEME_SOCKS5,
				       .colon_order = COLON_USER_FIRST,
				       .allow_private = true,
				       .https_means_connect = true};

	(void)state;
	reading_equals(
	    input, sizeof(input) - 1, LIST_AUTO, &rules,
	    "1 accepted http://10.0.0.1:80\n1 accepted socks5://a.example:1@b.example:2\n");
}

static void entry_ignore(const struct list_entry *e, void *arg)
{
	(void)e;
	(void)arg;
}

static int feed_often(const char *piece, size_t times)
{
	static struct list_reader r;
	int result;

	assert_int_equal(list_reader_init(&r, &defaults, 1000, entry_ignore, NULL), 0);
	result = list_reader_feed(&r, "[", 1);
	for (size_t i = 0; i < times && !result; i++)
		result = list_reader_feed(&r, piece, strlen(piece));
	list_reader_fini(&r);
	return result;
}

static void test_what_waits_for_the_end_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(feed_often("[],[],", 499 + 65536), -ENOBUFS);
	assert_int_equal(feed_often("[[[[[[[[[[", 100000), 0);
	assert_int_equal(feed_often("{\"data\":", 100000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names_have_any_case_and_an_order),
	    cmocka_unit_test(test_a_port_is_a_number_or_digits),
	    cmocka_unit_test(test_schemes_give_one_entry_each),
	    cmocka_unit_test(test_a_host_may_hold_its_port),
	    cmocka_unit_test(test_a_proxy_counts_without_a_host_only),
	    cmocka_unit_test(test_elements_stand_under_known_names),
	    cmocka_unit_test(test_what_does_not_close_drops_its_elements),
	    cmocka_unit_test(test_one_bad_document_of_several_costs_itself),
	    cmocka_unit_test(test_nothing_between_commas_is_no_json),
	    cmocka_unit_test(test_a_dropped_document_leaves_nothing_behind),
	    cmocka_unit_test(test_what_was_accepted_stays_in_order_with_its_tags),
	    cmocka_unit_test(test_country_and_anonymity_are_kept),
	    cmocka_unit_test(test_messages_show_no_password),
	    cmocka_unit_test(test_a_document_of_lines_is_found_by_its_second_line),
	    cmocka_unit_test(test_a_line_of_json_may_be_longer_than_a_plain_one),
	    cmocka_unit_test(test_options_reach_the_elements),
	    cmocka_unit_test(test_what_waits_for_the_end_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
