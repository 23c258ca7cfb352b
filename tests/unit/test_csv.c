/* test_csv.c - proxy lists as tables. */
#include "list_check.h"

static void test_a_first_line_with_host_and_port_is_a_header(void **state)
{
	(void)state;
	list_is("IP_Address;x;PORT\n192.0.2.1;;80\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
	list_is("\n\xef\xbb\xbf\"Host\"\t\"Port\"\r\n192.0.2.1\t80\r\n",
		"1 skipped blank\n2 skipped header\n3 accepted http://192.0.2.1:80\n");
	list_is("ip , port\n 192.0.2.1 , 80 \n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
	list_is("#,ip,port\n1,192.0.2.1,80\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
	list_is("ip,port", "1 skipped header\n");
	list_is("ip|port\n192.0.2.1|80\n",
		"1 rejected not-an-endpoint\n2 accepted http://192.0.2.1:80\n");
	list_is("host,country\n192.0.2.1,US\n",
		"1 rejected not-an-endpoint\n2 rejected missing-port\n");
}

static void test_of_two_names_the_better_counts(void **state)
{
	(void)state;
	list_is("host,ip,port\nname.example.com,192.0.2.1,80\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
	list_is("host,ip,port\nname.example.com,,80\n",
		"1 skipped header\n2 accepted http://name.example.com:80\n");
	list_is("ip,port,type,scheme\n192.0.2.1,80,residential,socks5\n",
		"1 skipped header\n2 accepted socks5://192.0.2.1:80\n");
	list_is("ip,port,type,scheme\n192.0.2.1,80,socks4,socks5\n",
		"1 skipped header\n2 accepted socks4://192.0.2.1:80\n");
	list_is("ip,port,proxy\n192.0.2.1,80,socks5://192.0.2.2:1080\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
}

static void test_a_quoted_cell_holds_anything(void **state)
{
	(void)state;
	list_is("ip,port,x\n192.0.2.1,80,\"a,\"\"b\"\"\r\n\r\nc\"\n192.0.2.2,80,\"\"\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n"
		"5 accepted http://192.0.2.2:80\n");
	list_is("ip,port,user,pass\n192.0.2.1,80,\"u\",\" p\"\" \"\n",
		"1 skipped header\n2 accepted http://u:%20p%22%20@192.0.2.1:80\n");
	list_is("ip,port,user,pass\n192.0.2.1,80,u,\"p\nw\"\n",
		"1 skipped header\n2 rejected credential-control-char\n");
	list_is("ip,port,x\n192.0.2.1,80,a\"b\n",
		"1 skipped header\n2 accepted http://192.0.2.1:80\n");
}

static void test_a_quote_that_does_not_close_costs_its_line(void **state)
{
	char input[12000], expected[400];
	size_t len;

	(void)state;
	list_is("ip,port,x\n192.0.2.1,80,\"a\n192.0.2.2,80,b\n192.0.2.3,80,c",
		"1 skipped header\n2 rejected csv-columns\n3 accepted http://192.0.2.2:80\n"
		"4 accepted http://192.0.2.3:80\n");
	len = (size_t)sprintf(input, "ip,port,x\n192.0.2.1,80,\"a\n");
	for (int i = 0; i < 4; i++)
		len += (size_t)sprintf(input + len, "192.0.2.2,%d,%01999d\n", i + 1, 0);
	snprintf(expected, sizeof(expected),
		 "1 skipped header\n2 rejected csv-columns\n3 accepted http://192.0.2.2:1\n"
		 "4 accepted http://192.0.2.2:2\n5 accepted http://192.0.2.2:3\n"
		 "6 accepted http://192.0.2.2:4\n");
	reading_equals(input, len, LIST_AUTO, NULL, expected);
}

static void test_an_open_row_does_not_cross_a_line_that_is_too_long(void **state)
{
	char input[6000];
	size_t len = (size_t)sprintf(input, "ip,port,x\n192.0.2.1,80,\"a\n%05000d\"\n", 0);

	(void)state;
	len += (size_t)sprintf(input + len, "192.0.2.2,80,b\n");
	reading_equals(input, len, LIST_AUTO, NULL,
		       "1 skipped header\n2 rejected csv-columns\n3 rejected line-too-long\n"
		       "4 accepted http://192.0.2.2:80\n");
}

static void test_many_lines_in_one_cell_take_linear_time(void **state)
{
	size_t size = 1 << 22, len = (size_t)0;
	struct reading how = {.step = 65536};
	struct got g = {0};
	char *input = malloc(size + 64);

	(void)state;
	assert_non_null(input);
	len = (size_t)sprintf(input, "ip,port,x\n192.0.2.1,80,\"");
	while (len < size) {
		memcpy(input + len, "\"\"\n", 3);
		len += 3;
	}
	list_run((struct bytes){input, len}, &how, entry_collect, &g);
	assert_true(g.entries > size / 4);
	free(g.text);
	free(input);
}

static void test_a_forced_table_may_have_a_proxy_column_alone(void **state)
{
	static const char table[] = "Proxy;Country\nsocks5://u:p@192.0.2.1:1080;DE\nx;DE\n";
	static const char none[] = "192.0.2.1,80\n192.0.2.2,80\n";

	(void)state;
	reading_equals(table, sizeof(table) - 1, LIST_CSV, NULL,
		       "1 skipped header\n2 accepted socks5://u:p@192.0.2.1:1080\n"
		       "3 rejected not-an-endpoint\n");
	reading_equals(none, sizeof(none) - 1, LIST_CSV, NULL, "0 rejected csv-columns\n");
}

static void test_a_forced_list_of_lines_is_no_table(void **state)
{
	static const char table[] = "ip,port\n192.0.2.1,80\n";

	(void)state;
	reading_equals(table, sizeof(table) - 1, LIST_LINES, NULL,
		       "1 rejected not-an-endpoint\n2 accepted http://192.0.2.1:80\n");
}

static void tags_collect(const struct list_entry *e, void *arg)
{
	if (e->endpoint)
		got_add(arg, (unsigned long)e->line, e->country[0] ? e->country : "-",
			e->anonymity[0] ? e->anonymity : "-");
}

static void test_country_and_anonymity_are_kept(void **state)
{
	static const char table[] = "ip,port,country,country_code,anonymity\n"
				    "192.0.2.1,1,Germany,DE, elite \n"
				    "192.0.2.2,2,United States,,\n"
				    "192.0.2.3,3,\"a\tb\",,\n"
				    "192.0.2.4,4,0123456789012345678901234567890,,x\n"
				    "192.0.2.5,5,01234567890123456789012345678901,,x\n";
	struct bytes b = {(char *)(uintptr_t)table, sizeof(table) - 1};
	struct reading how = {.step = 0};
	struct got g = {0};

	(void)state;
	list_run(b, &how, tags_collect, &g);
	assert_string_equal(g.text, "2 DE elite\n3 United States -\n4 - -\n"
				    "5 0123456789012345678901234567890 x\n6 - x\n");
	free(g.text);
}

static void test_options_reach_the_cells(void **state)
{
	static const char table[] = "ip,port,type\n10.0.0.1,80,https\ntor,9050,\n";
	struct endpoint_rules rules = {.default_scheme = SCHEME_SOCKS5,
				       .allow_private = true,
				       .allow_single_label = true,
				       .https_means_connect = true};

	(void)state;
	reading_equals(table, sizeof(table) - 1, LIST_AUTO, &rules,
		       "1 skipped header\n2 accepted http://10.0.0.1:80\n"
		       "3 accepted socks5://tor:9050\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_first_line_with_host_and_port_is_a_header),
	    cmocka_unit_test(test_of_two_names_the_better_counts),
	    cmocka_unit_test(test_a_quoted_cell_holds_anything),
	    cmocka_unit_test(test_a_quote_that_does_not_close_costs_its_line),
	    cmocka_unit_test(test_an_open_row_does_not_cross_a_line_that_is_too_long),
	    cmocka_unit_test(test_many_lines_in_one_cell_take_linear_time),
	    cmocka_unit_test(test_a_forced_table_may_have_a_proxy_column_alone),
	    cmocka_unit_test(test_a_forced_list_of_lines_is_no_table),
	    cmocka_unit_test(test_country_and_anonymity_are_kept),
	    cmocka_unit_test(test_options_reach_the_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
