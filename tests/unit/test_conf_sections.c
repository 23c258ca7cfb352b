/* test_conf_sections.c - sections [source NAME] of the settings file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/conf.h"
#include "base/conf_source.h"
#include "base/conf_value.h"

static struct conf conf;
static struct conf_error error;

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

/* Loads a file of that content into fresh settings; the result of conf_load_file(). Its name in
 * messages is cut down to "F". */
static int load(const char *content)
{
	char path[] = "/tmp/fairlead-test-conf-XXXXXX";
	int fd = mkstemp(path);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	conf_fini(&conf);
	assert_int_equal(conf_init(&conf), 0);
	r = conf_load_file(&conf, path, &error);
	unlink(path);
	if (strncmp(error.text, path, strlen(path)) == 0) {
		error.text[0] = 'F';
		memmove(error.text + 1, error.text + strlen(path),
			strlen(error.text + strlen(path)) + 1);
	}
	return r;
}

static void accept_file(const char *content)
{
	if (load(content))
		fail_msg("%s", error.text);
}

static void refuse_file(const char *content, const char *text)
{
	assert_int_equal(load(content), -EINVAL);
	assert_string_equal(error.text, text);
}

/* One setting in a source that is else complete. */
static void refuse_setting(const char *setting, const char *text)
{
	char content[256], expected[256];

	snprintf(content, sizeof content, "[source a]\nplace = a.txt\n%s\n", setting);
	snprintf(expected, sizeof expected, "F:3: %s", text);
	refuse_file(content, expected);
}

static void refuse_place(const char *place, const char *why)
{
	char content[256], expected[256];

	snprintf(content, sizeof content, "[source a]\nplace = %s\n", place);
	snprintf(expected, sizeof expected, "F:2: place = %s: %s", place, why);
	refuse_file(content, expected);
}

static void test_the_default_of_every_row_is_within_its_range(void **state)
{
	int64_t number;
	char why[256];

	(void)state;
	for (int id = 0; id < SOURCE_ROWS; id++) {
		const struct conf_row *row = conf_source_row((enum conf_source_id)id);

		if (id != SOURCE_PLACE &&
		    conf_value_parse(row, row->initial, &number, why, sizeof why))
			fail_msg("%s: %s", row->name, why);
	}
}

static void test_every_row_has_a_name_of_its_own_and_help(void **state)
{
	(void)state;
	for (int id = 0; id < SOURCE_ROWS; id++) {
		const struct conf_row *row = conf_source_row((enum conf_source_id)id);

		assert_int_equal(conf_source_find(row->name), id);
		assert_true(row->min <= row->max);
		assert_true(row->kind != KIND_LIST);
		assert_true(strlen(row->help) > 10 && row->help[strlen(row->help) - 1] != '.');
		assert_true((row->kind == KIND_BOOL) == (*row->placeholder == '\0'));
	}
}

/* A list of --list and one of a section are read alike unless somebody says otherwise. */
static void test_a_row_that_is_a_setting_too_has_the_same_values_and_default(void **state)
{
	(void)state;
	for (int id = 0; id < SOURCE_ROWS; id++) {
		const struct conf_row *row = conf_source_row((enum conf_source_id)id), *twin;
		char name[64];
		int setting = conf_find(row->name);

		snprintf(name, sizeof name, "list_%s", row->name);
		if (setting < 0)
			setting = conf_find(name);
		assert_true((setting < 0) == (id == SOURCE_PLACE));
		if (setting < 0)
			continue;
		twin = conf_row((enum conf_id)setting);
		assert_int_equal(row->kind, twin->kind);
		assert_string_equal(row->initial, twin->initial);
		assert_string_equal(row->placeholder, twin->placeholder);
		assert_int_equal(row->min, twin->min);
		assert_int_equal(row->max, twin->max);
	}
}

static void test_there_is_no_source_at_first(void **state)
{
	(void)state;
	assert_int_equal(conf_source_count(&conf), 0);
	accept_file("tries = 3\n");
	assert_int_equal(conf_source_count(&conf), 0);
}

static void test_a_source_needs_no_more_than_its_place(void **state)
{
	(void)state;
	accept_file("[source free]\nplace = lists/free.txt\n");
	assert_int_equal(conf_source_count(&conf), 1);
	assert_string_equal(conf_source_name(&conf, 0), "free");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_PLACE), "lists/free.txt");
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_INTERVAL), 600000);
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_GRACE), 600000);
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_SPLIT), "none");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_FORMAT), "auto");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_DEFAULT_SCHEME), "http");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_HTTPS_MEANS), "tls");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_COLON_ORDER), "auto");
	assert_false(conf_source_bool(&conf, 0, SOURCE_ALLOW_SINGLE_LABEL));
	assert_int_equal(conf_source_bytes(&conf, 0, SOURCE_MAX_BYTES), 64 << 20);
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_TIMEOUT), 60000);
	assert_true(conf_source_is_set(&conf, 0, SOURCE_PLACE));
	assert_false(conf_source_is_set(&conf, 0, SOURCE_INTERVAL));
}

static void test_a_source_takes_what_its_section_says(void **state)
{
	(void)state;
	accept_file("[source paid]\nplace = https://lists.example/p?t=1#x\ninterval = 1h\n"
		    "grace = 0\nsplit = country\nformat = csv\ndefault_scheme = socks5\n"
		    "https_means = connect\ncolon_order = user-first\n"
		    "allow_single_label = yes\nmax_bytes = 1k\ntimeout = 5s\n");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_PLACE),
			    "https://lists.example/p?t=1#x");
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_INTERVAL), 3600000);
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_GRACE), 0);
	assert_int_equal(conf_source_enum(&conf, 0, SOURCE_SPLIT), 1);
	assert_int_equal(conf_source_enum(&conf, 0, SOURCE_FORMAT), 2);
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_DEFAULT_SCHEME), "socks5");
	assert_int_equal(conf_source_enum(&conf, 0, SOURCE_HTTPS_MEANS), 1);
	assert_int_equal(conf_source_enum(&conf, 0, SOURCE_COLON_ORDER), 2);
	assert_true(conf_source_bool(&conf, 0, SOURCE_ALLOW_SINGLE_LABEL));
	assert_int_equal(conf_source_bytes(&conf, 0, SOURCE_MAX_BYTES), 1024);
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_TIMEOUT), 5000);
}

static void test_sources_keep_apart_from_each_other_and_from_the_settings(void **state)
{
	(void)state;
	accept_file("tries = 4\n[source a]\nplace = a.txt\ninterval = 1m\n\n[source b.2_x-Y]\n"
		    "place = b.txt\n[fairlead]\nformat = json\ndefault_scheme = https\n");
	assert_int_equal(conf_source_count(&conf), 2);
	assert_string_equal(conf_source_name(&conf, 1), "b.2_x-Y");
	assert_string_equal(conf_source_text(&conf, 1, SOURCE_PLACE), "b.txt");
	assert_int_equal(conf_source_ms(&conf, 0, SOURCE_INTERVAL), 60000);
	assert_int_equal(conf_source_ms(&conf, 1, SOURCE_INTERVAL), 600000);
	assert_string_equal(conf_source_text(&conf, 1, SOURCE_FORMAT), "auto");
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	assert_string_equal(conf_text(&conf, CONF_FORMAT), "json");
}

static void test_a_source_without_place_is_refused_at_its_line(void **state)
{
	static const char what[] = "has no place: set it to the file or URL of the list";
	char text[128];

	(void)state;
	snprintf(text, sizeof text, "F:2: [source a] %s", what);
	refuse_file("\n[source a]\n", text);
	refuse_file("\n[source a]\ninterval = 1m\n[source b]\nplace = b.txt\n", text);
	snprintf(text, sizeof text, "F:3: [source b] %s", what);
	refuse_file("[source a]\nplace = a.txt\n[source b]\n[fairlead]\n", text);
}

static void test_a_place_is_a_file_or_a_url_of_http(void **state)
{
	static const char *const good[] = {
	    "/x",         "x y.txt",      "./a://b",         "a:b",      "HTTP://h",
	    "https://h/", "http://h?x=1", "http://[::1]:8/", "list.csv", "http:/x"};
	char content[128];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(content, sizeof content, "[source a]\nplace = %s\n", good[i]);
		accept_file(content);
		assert_string_equal(conf_source_text(&conf, 0, SOURCE_PLACE), good[i]);
	}
	refuse_place("ftp://h/x", "must be a file, or a URL of http:// or https://");
	refuse_place("file:///x", "must be a file, or a URL of http:// or https://");
	refuse_place("httpx://h", "must be a file, or a URL of http:// or https://");
	refuse_file("[source a]\nplace = a\x01z\n",
		    "F:2: place = a\\x01z: must not hold control characters");
	refuse_place("http://", "must name a host");
	refuse_place("https:///x", "must name a host");
	refuse_file("[source a]\nplace =\n", "F:2: place = : must have 1 to 4096 bytes");
}

static void test_a_wrong_value_is_told_as_that_of_a_setting(void **state)
{
	(void)state;
	refuse_setting("interval = 5", "interval = 5: needs a unit: 5ms, 5s, 5m or 5h");
	refuse_setting("interval = 9s", "interval = 9s: must be 10s to 7d");
	refuse_setting("interval = 8d", "interval = 8d: must be 10s to 7d");
	refuse_setting("grace = 31d", "grace = 31d: must be 0 to 30d");
	refuse_setting("split = city", "split = city: must be one of none, country, anonymity");
	refuse_setting("format = xml",
		       "format = xml: must be one of auto, lines, csv, json, jsonl");
	refuse_setting("https_means = no", "https_means = no: must be one of tls, connect");
	refuse_setting("allow_single_label = 2", "allow_single_label = 2: must be true or false");
	refuse_setting("max_bytes = 1023", "max_bytes = 1023: must be 1k to 1g");
	refuse_setting("max_bytes = 2g", "max_bytes = 2g: must be 1k to 1g");
}

static void test_an_unknown_setting_is_told_where_it_would_be_known(void **state)
{
	(void)state;
	refuse_setting("plase = x", "unknown setting 'plase' of a source");
	refuse_setting("tries = 3",
		       "unknown setting 'tries' of a source; it belongs under [fairlead]");
	refuse_file("grace = 1m\n",
		    "F:1: unknown setting 'grace'; it belongs under a [source NAME]");
}

static void test_a_setting_stands_once_in_a_source(void **state)
{
	(void)state;
	refuse_setting("place = b.txt", "place is set twice, first on line 2");
	refuse_setting("  interval = 5m", "place is set twice, first on line 2; an indented line "
					  "goes on with the setting above it");
}

static void test_a_source_stands_once(void **state)
{
	(void)state;
	refuse_file("[source a]\nplace = a\n[source b]\nplace = b\n[source  a ]\nplace = c\n",
		    "F:5: [source a] stands twice, first on line 1");
}

static void test_a_name_is_of_letters_digits_and_three_marks(void **state)
{
	static const char *const bad[] = {"", "a b", "a/b", "a:b", "\xc3\xa9", "{a}", "a;b"};
	char content[128], text[256];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(content, sizeof content, "[source %s]\nplace = x\n", bad[i]);
		snprintf(text, sizeof text,
			 "F:1: [source %s]: a name has 1 to 40 letters, digits, '.', '_' and '-'",
			 bad[i]);
		refuse_file(content, text);
	}
	assert_int_equal(load("[source]\nplace = x\n"), -EINVAL);
}

static void test_a_name_is_at_most_40_bytes_long(void **state)
{
	char content[128];

	(void)state;
	snprintf(content, sizeof content, "[source %040d]\nplace = x\n", 7);
	accept_file(content);
	assert_int_equal(strlen(conf_source_name(&conf, 0)), 40);
	snprintf(content, sizeof content, "[source %041d]\nplace = x\n", 7);
	assert_int_equal(load(content), -EINVAL);
}

static void test_a_section_is_not_indented(void **state)
{
	static const char what[] = "F:3: a section must start at the beginning of its line";

	(void)state;
	refuse_file("tries = 3\n[fairlead]\n  [source a]\nplace = x\n", what);
	refuse_file("# x\n\n\t[source a]\nplace = x\n", what);
	accept_file("listen = 127.0.0.1:1\n  [::1]:2\n");
	assert_int_equal(conf_count(&conf, CONF_LISTEN), 2);
}

static void test_there_may_be_256_sources(void **state)
{
	static char content[257 * 32];
	size_t len = 0;

	(void)state;
	for (int i = 0; i < 256; i++)
		len += (size_t)snprintf(content + len, sizeof content - len,
					"[source s%d]\nplace = %d\n", i, i);
	accept_file(content);
	assert_int_equal(conf_source_count(&conf), 256);
	assert_string_equal(conf_source_text(&conf, 255, SOURCE_PLACE), "255");
	snprintf(content + len, sizeof content - len, "[source more]\n");
	refuse_file(content, "F:513: there may be at most 256 sources");
}

/* Prints the settings in force into `buffer`. */
static void print_into(char *buffer, size_t size)
{
	FILE *out = fmemopen(buffer, size, "w");

	assert_non_null(out);
	conf_print(&conf, out);
	assert_int_equal(fclose(out), 0);
}

static void test_a_dump_reads_back_as_the_same_sources(void **state)
{
	static char dump[16384], again[16384];

	(void)state;
	accept_file("[source a]\nplace = a b.txt\ninterval = 90s\nallow_single_label = on\n"
		    "[source b]\nplace = http://h/?x#y\nmax_bytes = 2048\nsplit = country\n"
		    "[source c]\nplace =;c.txt\n");
	print_into(dump, sizeof dump);
	assert_non_null(strstr(dump, ":2\nplace = a b.txt\n# from /tmp/"));
	assert_non_null(strstr(dump, "interval = 90s\n# default\ngrace = 10m\n"));
	accept_file(dump);
	assert_int_equal(conf_source_count(&conf), 3);
	assert_string_equal(conf_source_name(&conf, 1), "b");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_PLACE), "a b.txt");
	assert_string_equal(conf_source_text(&conf, 2, SOURCE_PLACE), ";c.txt");
	assert_true(conf_source_bool(&conf, 0, SOURCE_ALLOW_SINGLE_LABEL));
	assert_int_equal(conf_source_bytes(&conf, 1, SOURCE_MAX_BYTES), 2048);
	assert_int_equal(conf_source_enum(&conf, 1, SOURCE_SPLIT), 1);
	print_into(again, sizeof again);
	assert_non_null(strstr(again, "\n[source b]\n"));
	assert_non_null(strstr(again, "place = http://h/?x#y\n"));
}

static void test_a_password_in_a_place_is_in_no_dump_and_no_message(void **state)
{
	static char dump[16384];

	(void)state;
	accept_file("[source a]\nplace = https://me:hunter2@h.example/list\n");
	assert_string_equal(conf_source_text(&conf, 0, SOURCE_PLACE),
			    "https://me:hunter2@h.example/list");
	print_into(dump, sizeof dump);
	assert_null(strstr(dump, "hunter2"));
	assert_non_null(strstr(dump, "place = https://***@h.example/list\n"));
	refuse_file("[source a]\nplace = ftp://me:hunter2@h.example/list\n",
		    "F:2: place = ftp://***@h.example/list: must be a file, or a URL of http:// "
		    "or https://");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_the_default_of_every_row_is_within_its_range),
	    TEST(test_every_row_has_a_name_of_its_own_and_help),
	    TEST(test_a_row_that_is_a_setting_too_has_the_same_values_and_default),
	    TEST(test_there_is_no_source_at_first),
	    TEST(test_a_source_needs_no_more_than_its_place),
	    TEST(test_a_source_takes_what_its_section_says),
	    TEST(test_sources_keep_apart_from_each_other_and_from_the_settings),
	    TEST(test_a_source_without_place_is_refused_at_its_line),
	    TEST(test_a_place_is_a_file_or_a_url_of_http),
	    TEST(test_a_wrong_value_is_told_as_that_of_a_setting),
	    TEST(test_an_unknown_setting_is_told_where_it_would_be_known),
	    TEST(test_a_setting_stands_once_in_a_source),
	    TEST(test_a_source_stands_once),
	    TEST(test_a_name_is_of_letters_digits_and_three_marks),
	    TEST(test_a_name_is_at_most_40_bytes_long),
	    TEST(test_a_section_is_not_indented),
	    TEST(test_there_may_be_256_sources),
	    TEST(test_a_dump_reads_back_as_the_same_sources),
	    TEST(test_a_password_in_a_place_is_in_no_dump_and_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
