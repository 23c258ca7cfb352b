/* test_conf.c - settings: precedence, ranges, units, messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/conf.h"
#include "base/conf_value.h"
#include "base/secret.h"

static struct conf conf;
static struct conf_error error;

static const struct conf_place from_flag = {.level = FROM_FLAG};
static const struct conf_place from_environment = {.level = FROM_ENVIRONMENT};
static const struct conf_place from_file = {.level = FROM_FILE, .file = "f.ini", .line = 12};

static int set_up(void **state)
{
	(void)state;
	memset(&error, 0, sizeof error);
	return conf_init(&conf);
}

static int tear_down(void **state)
{
	(void)state;
	conf_fini(&conf);
	return 0;
}

static void set(enum conf_id id, const char *value, struct conf_place place)
{
	if (conf_set(&conf, id, value, place, &error))
		fail_msg("%s", error.text);
}

static void refuse(enum conf_id id, const char *value, struct conf_place place, const char *text)
{
	assert_int_equal(conf_set(&conf, id, value, place, &error), -EINVAL);
	assert_string_equal(error.text, text);
}

static void test_the_default_of_every_row_is_within_its_range(void **state)
{
	int64_t number;
	char why[256];

	(void)state;
	for (int id = 0; id < CONF_ROWS; id++) {
		const struct conf_row *row = conf_row((enum conf_id)id);
		bool may_be_empty = row->kind == KIND_PATH || row->kind == KIND_URL;

		if (may_be_empty && !*row->initial)
			continue;
		if (conf_value_parse(row, row->initial, &number, why, sizeof why))
			fail_msg("%s: %s", row->name, why);
	}
}

static void test_every_row_has_a_name_of_its_own_a_group_and_help(void **state)
{
	(void)state;
	for (int id = 0; id < CONF_ROWS; id++) {
		const struct conf_row *row = conf_row((enum conf_id)id);

		assert_int_equal(conf_find(row->name), id);
		assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(row->name));
		assert_true(row->groups != 0);
		assert_true(row->min <= row->max);
		assert_true(strlen(row->help) > 10 && row->help[strlen(row->help) - 1] != '.');
		assert_true((row->kind == KIND_BOOL) == (*row->placeholder == '\0'));
	}
}

static void test_a_row_is_named_as_its_enumerator(void **state)
{
	(void)state;
#define CONF(name, text, kind, initial, min, max, groups, where, placeholder, help)                \
	{                                                                                          \
		char env[64];                                                                      \
		conf_env_name(CONF_##name, env, sizeof env);                                       \
		assert_string_equal(env, "FAIRLEAD_" #name);                                       \
	}
#include "tables/config.def"
}

static void test_a_flag_has_dashes(void **state)
{
	char name[64];

	(void)state;
	conf_flag_name(CONF_CONNECT_TIMEOUT, name, sizeof name);
	assert_string_equal(name, "--connect-timeout");
}

static void test_nothing_is_set_at_first(void **state)
{
	(void)state;
	for (int id = 0; id < CONF_ROWS; id++)
		assert_false(conf_is_set(&conf, (enum conf_id)id));
	assert_int_equal(conf_int(&conf, CONF_TRIES), 3);
	assert_int_equal(conf_ms(&conf, CONF_CONNECT_TIMEOUT), 5000);
	assert_int_equal(conf_bytes(&conf, CONF_RETRY_BODY), 65536);
	assert_string_equal(conf_text(&conf, CONF_POOL), "proxies");
	assert_string_equal(conf_text(&conf, CONF_REDIS), "");
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 0), "127.0.0.1:8888");
}

static void test_a_flag_beats_the_environment_and_that_beats_the_file(void **state)
{
	(void)state;
	set(CONF_TRIES, "4", from_file);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	set(CONF_TRIES, "5", from_environment);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 5);
	set(CONF_TRIES, "6", from_flag);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 6);
	assert_int_equal(conf_level(&conf, CONF_TRIES), FROM_FLAG);
}

static void test_the_order_of_reading_does_not_matter(void **state)
{
	(void)state;
	set(CONF_TRIES, "6", from_flag);
	set(CONF_TRIES, "5", from_environment);
	set(CONF_TRIES, "4", from_file);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 6);
}

static void test_a_value_below_a_higher_one_is_judged_too(void **state)
{
	(void)state;
	set(CONF_TRIES, "6", from_flag);
	refuse(CONF_TRIES, "0", from_file, "f.ini:12: tries = 0: must be 1 to 10");
	assert_int_equal(conf_int(&conf, CONF_TRIES), 6);
}

static void test_the_last_of_two_flags_counts(void **state)
{
	(void)state;
	set(CONF_TRIES, "6", from_flag);
	set(CONF_TRIES, "7", from_flag);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 7);
}

static void test_a_wrong_value_names_itself_its_place_and_its_range(void **state)
{
	(void)state;
	refuse(CONF_TRIES, "0", from_flag, "--tries 0: must be 1 to 10");
	refuse(CONF_TRIES, "11", from_environment, "FAIRLEAD_TRIES=11: must be 1 to 10");
	refuse(CONF_TRIES, "3x", from_file, "f.ini:12: tries = 3x: must be 1 to 10");
	refuse(CONF_TRIES, "", from_flag, "--tries '': must be 1 to 10");
	refuse(CONF_TRIES, "99999999999999999999", from_flag,
	       "--tries 99999999999999999999: must be 1 to 10");
	assert_int_equal(conf_int(&conf, CONF_TRIES), 3);
}

static void test_durations_have_units(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {{"250ms", 250}, {"1s", 1000}, {"5m", 300000}, {"1h", 3600000}, {"0", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		set(CONF_DRAIN_TIMEOUT, cases[i].text, from_flag);
		assert_int_equal(conf_ms(&conf, CONF_DRAIN_TIMEOUT), cases[i].ms);
	}
}

static void test_a_duration_without_unit_is_asked_for_one(void **state)
{
	(void)state;
	refuse(CONF_CONNECT_TIMEOUT, "5", from_flag,
	       "--connect-timeout 5: needs a unit: 5ms, 5s, 5m or 5h");
}

static void test_a_duration_out_of_range_is_told_the_range_with_units(void **state)
{
	(void)state;
	refuse(CONF_CONNECT_TIMEOUT, "9ms", from_flag, "--connect-timeout 9ms: must be 10ms to 5m");
	refuse(CONF_CONNECT_TIMEOUT, "1y", from_flag, "--connect-timeout 1y: must be 10ms to 5m");
	refuse(CONF_CONNECT_TIMEOUT, "-1s", from_flag, "--connect-timeout -1s: must be 10ms to 5m");
	refuse(CONF_CONNECT_TIMEOUT, "9223372036854775807h", from_flag,
	       "--connect-timeout 9223372036854775807h: must be 10ms to 5m");
}

static void test_sizes_have_binary_units(void **state)
{
	(void)state;
	set(CONF_RETRY_BODY, "100", from_flag);
	assert_int_equal(conf_bytes(&conf, CONF_RETRY_BODY), 100);
	set(CONF_RETRY_BODY, "2k", from_flag);
	assert_int_equal(conf_bytes(&conf, CONF_RETRY_BODY), 2048);
	set(CONF_RETRY_BODY, "1M", from_flag);
	assert_int_equal(conf_bytes(&conf, CONF_RETRY_BODY), 1048576);
	refuse(CONF_RETRY_BODY, "17m", from_flag, "--retry-body 17m: must be 0 to 16m");
}

static void test_a_number_is_printed_as_it_would_be_written(void **state)
{
	char text[32];

	(void)state;
	conf_value_print(KIND_MS, 90000, text, sizeof text);
	assert_string_equal(text, "90s");
	conf_value_print(KIND_MS, 1500, text, sizeof text);
	assert_string_equal(text, "1500ms");
	conf_value_print(KIND_BYTES, 65536, text, sizeof text);
	assert_string_equal(text, "64k");
	conf_value_print(KIND_BYTES, 1000, text, sizeof text);
	assert_string_equal(text, "1000");
}

static void test_switches_know_eight_words(void **state)
{
	static const char *const yes[] = {"true", "1", "yes", "on", "TRUE"};
	static const char *const no[] = {"false", "0", "no", "off", "Off"};

	(void)state;
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		set(CONF_JSON, yes[i], from_environment);
		assert_true(conf_bool(&conf, CONF_JSON));
		set(CONF_JSON, no[i], from_environment);
		assert_false(conf_bool(&conf, CONF_JSON));
	}
	refuse(CONF_JSON, "maybe", from_flag, "--json maybe: must be true or false");
}

static void test_a_choice_is_one_of_its_words(void **state)
{
	(void)state;
	set(CONF_COLON_ORDER, "user-first", from_flag);
	assert_int_equal(conf_enum(&conf, CONF_COLON_ORDER), 2);
	assert_string_equal(conf_text(&conf, CONF_COLON_ORDER), "user-first");
	refuse(CONF_COLON_ORDER, "host", from_flag,
	       "--colon-order host: must be one of auto, host-first, user-first");
	refuse(CONF_COLON_ORDER, "", from_flag,
	       "--colon-order '': must be one of auto, host-first, user-first");
}

static void test_a_text_has_a_length(void **state)
{
	char name[66];

	(void)state;
	memset(name, 'a', 65);
	name[65] = '\0';
	refuse(CONF_PROXY_NAME, "", from_flag, "--proxy-name '': must have 1 to 64 bytes");
	assert_int_equal(conf_set(&conf, CONF_PROXY_NAME, name, from_flag, &error), -EINVAL);
	set(CONF_PROXY_NAME, name + 1, from_flag);
	assert_string_equal(conf_text(&conf, CONF_PROXY_NAME), name + 1);
}

static void test_flags_of_a_list_add_up_and_replace_the_file(void **state)
{
	(void)state;
	set(CONF_LIST, "file.txt", from_file);
	set(CONF_LIST, "a,b.txt", from_flag);
	set(CONF_LIST, "c.txt", from_flag);
	set(CONF_LIST, "late.txt", from_file);
	assert_int_equal(conf_count(&conf, CONF_LIST), 2);
	assert_string_equal(conf_at(&conf, CONF_LIST, 0), "a,b.txt");
	assert_string_equal(conf_at(&conf, CONF_LIST, 1), "c.txt");
}

static void test_commas_separate_in_environment_and_file(void **state)
{
	(void)state;
	set(CONF_LISTEN, " 127.0.0.1:1, [::1]:2 ,,unix:/x", from_environment);
	assert_int_equal(conf_count(&conf, CONF_LISTEN), 3);
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 0), "127.0.0.1:1");
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 1), "[::1]:2");
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 2), "unix:/x");
}

static void test_a_list_has_a_bound(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		set(CONF_LISTEN, "127.0.0.1:1", from_flag);
	refuse(CONF_LISTEN, "127.0.0.1:2", from_flag,
	       "--listen 127.0.0.1:2: there may be at most 64");
}

static void test_the_environment_is_read_and_an_empty_variable_is_none(void **state)
{
	(void)state;
	setenv("FAIRLEAD_TRIES", "7", 1);
	setenv("FAIRLEAD_POOL", "", 1);
	setenv("FAIRLEAD_COUNT", "9", 1);
	assert_int_equal(conf_load_env(&conf, &error), 0);
	unsetenv("FAIRLEAD_TRIES");
	unsetenv("FAIRLEAD_POOL");
	unsetenv("FAIRLEAD_COUNT");
	assert_int_equal(conf_int(&conf, CONF_TRIES), 7);
	assert_string_equal(conf_text(&conf, CONF_POOL), "proxies");
	assert_int_equal(conf_int(&conf, CONF_COUNT), 1);
}

static void test_how_lists_are_read_is_set_like_the_rest(void **state)
{
	(void)state;
	assert_string_equal(conf_text(&conf, CONF_ON_REJECT), "skip");
	assert_string_equal(conf_text(&conf, CONF_FORMAT), "auto");
	assert_string_equal(conf_text(&conf, CONF_HTTPS_MEANS), "tls");
	assert_int_equal(conf_ms(&conf, CONF_LIST_INTERVAL), 600000);
	assert_int_equal(conf_ms(&conf, CONF_LIST_GRACE), 600000);
	assert_int_equal(conf_bytes(&conf, CONF_LIST_MAX_BYTES), 67108864);
	assert_int_equal(conf_ms(&conf, CONF_LIST_TIMEOUT), 60000);
	refuse(CONF_LIST_INTERVAL, "9s", from_flag, "--list-interval 9s: must be 10s to 7d");
	refuse(CONF_LIST_GRACE, "31d", from_flag, "--list-grace 31d: must be 0 to 30d");
	refuse(CONF_LIST_MAX_BYTES, "2g", from_flag, "--list-max-bytes 2g: must be 1k to 1g");
	refuse(CONF_LIST_SPLIT, "city", from_file,
	       "f.ini:12: list_split = city: must be one of none, country, anonymity");
}

/* Prints the settings in force into `buffer`. */
static void print_into(char *buffer, size_t size)
{
	FILE *out = fmemopen(buffer, size, "w");

	assert_non_null(out);
	conf_print(&conf, out);
	assert_int_equal(fclose(out), 0);
}

static void test_a_password_is_in_no_dump_and_no_message(void **state)
{
	static char dump[16384];
	char url[4200] = "redis://name:hunter2@host/";

	(void)state;
	set(CONF_REDIS, url, from_flag);
	print_into(dump, sizeof dump);
	assert_null(strstr(dump, "hunter2"));
	assert_non_null(strstr(dump, "redis = redis://***@host/\n"));
	assert_string_equal(conf_text(&conf, CONF_REDIS), url);
	memset(url + strlen(url), 'x', 4150);
	assert_int_equal(conf_set(&conf, CONF_REDIS, url, from_flag, &error), -EINVAL);
	assert_null(strstr(error.text, "hunter2"));
}

static void test_a_message_is_one_line_and_fits(void **state)
{
	char value[2000];

	(void)state;
	memset(value, '\n', sizeof value);
	value[1999] = '\0';
	assert_int_equal(conf_set(&conf, CONF_TRIES, value, from_flag, &error), -EINVAL);
	assert_null(strchr(error.text, '\n'));
	assert_non_null(strstr(error.text, "...: must be 1 to 10"));
}

static void test_credentials_are_found_in_every_form(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
	    {"http://u:p@h:1", "http://***@h:1"},
	    {"redis://:p@h", "redis://***@h"},
	    {"http://token@h:1", "http://***@h:1"},
	    {"http://u:p/a@b@h:1", "http://***@h:1"},
	    {"u:p@h:1", "***@h:1"},
	    {"1.2.3.4:80:u:p", "1.2.3.4:80:***"},
	    {"socks5://h.example:80:u:p:q", "socks5://h.example:80:***"},
	    {"u:p:1.2.3.4:80", "***:1.2.3.4:80"},
	};
	char shown[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		secret_print(cases[i].text, shown, sizeof shown);
		assert_string_equal(shown, cases[i].shown);
	}
}

static void test_what_holds_no_credentials_is_left_alone(void **state)
{
	static const char *const cases[] = {
	    "http://h:1",
	    "unix:///run/x@y",
	    "a/b@c",
	    "2001:db8::1",
	    "::1",
	    "join=keep",
	    "https://h.example/@user/list.txt",
	    "",
	    "@",
	    "1.2.3.4:80",
	    "name@host",
	};
	size_t start, len;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (secret_find(cases[i], &start, &len))
			fail_msg("%s", cases[i]);
}

static void test_the_markdown_has_a_row_for_each_setting(void **state)
{
	static char text[65536];
	FILE *out = fmemopen(text, sizeof text, "w");

	(void)state;
	assert_non_null(out);
	conf_markdown(out);
	assert_int_equal(fclose(out), 0);
	for (int id = 0; id < CONF_ROWS; id++) {
		char flag[64], cell[80];

		conf_flag_name((enum conf_id)id, flag, sizeof flag);
		snprintf(cell, sizeof cell, "\n| `%s` |", flag);
		assert_non_null(strstr(text, cell));
		assert_null(strstr(strstr(text, cell) + 1, cell));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_the_default_of_every_row_is_within_its_range),
	    TEST(test_every_row_has_a_name_of_its_own_a_group_and_help),
	    TEST(test_a_row_is_named_as_its_enumerator),
	    TEST(test_a_flag_has_dashes),
	    TEST(test_nothing_is_set_at_first),
	    TEST(test_a_flag_beats_the_environment_and_that_beats_the_file),
	    TEST(test_the_order_of_reading_does_not_matter),
	    TEST(test_a_value_below_a_higher_one_is_judged_too),
	    TEST(test_the_last_of_two_flags_counts),
	    TEST(test_a_wrong_value_names_itself_its_place_and_its_range),
	    TEST(test_durations_have_units),
	    TEST(test_a_duration_without_unit_is_asked_for_one),
	    TEST(test_a_duration_out_of_range_is_told_the_range_with_units),
	    TEST(test_sizes_have_binary_units),
	    TEST(test_a_number_is_printed_as_it_would_be_written),
	    TEST(test_switches_know_eight_words),
	    TEST(test_a_choice_is_one_of_its_words),
	    TEST(test_a_text_has_a_length),
	    TEST(test_flags_of_a_list_add_up_and_replace_the_file),
	    TEST(test_commas_separate_in_environment_and_file),
	    TEST(test_a_list_has_a_bound),
	    TEST(test_the_environment_is_read_and_an_empty_variable_is_none),
	    TEST(test_how_lists_are_read_is_set_like_the_rest),
	    TEST(test_a_password_is_in_no_dump_and_no_message),
	    TEST(test_a_message_is_one_line_and_fits),
	    TEST(test_credentials_are_found_in_every_form),
	    TEST(test_what_holds_no_credentials_is_left_alone),
	    TEST(test_the_markdown_has_a_row_for_each_setting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
