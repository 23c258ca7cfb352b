/* test_conf_file.c - settings from a file: lines, mistakes, and the dump that reads back. */
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

static struct conf conf;
static struct conf_error error;

static const struct conf_place from_flag = {.level = FROM_FLAG};
static const struct conf_place from_environment = {.level = FROM_ENVIRONMENT};

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

/* Loads a file of that content; the result of conf_load_file(). Its name in messages is cut down to
 * "F". */
static int load(const char *content)
{
	char path[] = "/tmp/fairlead-test-conf-XXXXXX";
	int fd = mkstemp(path);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
	r = conf_load_file(&conf, path, &error);
	unlink(path);
	if (strncmp(error.text, path, strlen(path)) == 0) {
		error.text[0] = 'F';
		memmove(error.text + 1, error.text + strlen(path),
			strlen(error.text + strlen(path)) + 1);
	}
	return r;
}

static void refuse_file(const char *content, const char *text)
{
	assert_int_equal(load(content), -EINVAL);
	assert_string_equal(error.text, text);
}

static void test_a_file_is_read(void **state)
{
	(void)state;
	assert_int_equal(load("# a comment\n[fairlead]\ntries = 4 ; why\nlisten =\n"
			      "  127.0.0.1:1\n  [::1]:2, unix:/x\nconnect_timeout=2s"),
			 0);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	assert_int_equal(conf_ms(&conf, CONF_CONNECT_TIMEOUT), 2000);
	assert_int_equal(conf_count(&conf, CONF_LISTEN), 3);
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 2), "unix:/x");
}

static void test_a_file_needs_no_section(void **state)
{
	(void)state;
	assert_int_equal(load("tries = 4\n"), 0);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
}

static void test_a_mistake_in_a_file_is_told_with_its_line(void **state)
{
	(void)state;
	refuse_file("\ntries = 11\n", "F:2: tries = 11: must be 1 to 10");
	refuse_file("trys = 3\n", "F:1: unknown setting 'trys'");
	refuse_file("tries = 3\n\ntries = 4\n", "F:3: tries is set twice, first on line 1");
	refuse_file("tries = 3\njunk\n", "F:2: not a line of the form 'name = value'");
	refuse_file("count = 3\n", "F:1: count cannot be set in a file");
	refuse_file("config = x\n", "F:1: config cannot be set in a file");
}

static void test_another_section_is_refused_with_its_line(void **state)
{
	(void)state;
	refuse_file("tries = 3\n\n[pool paid]\npolicy = x\n",
		    "F:3: unknown section [pool paid]; there are [fairlead] and [source NAME]");
	refuse_file("[pool]\n",
		    "F:1: unknown section [pool]; there are [fairlead] and [source NAME]");
	refuse_file("[sources a]\n",
		    "F:1: unknown section [sources a]; there are [fairlead] and [source NAME]");
	refuse_file("[fairlead\ntries = 3\n", "F:1: the ']' of this section is missing");
}

static void test_a_comment_may_stand_behind_each_line_of_a_list(void **state)
{
	(void)state;
	assert_int_equal(load("listen = a:1 ; one\n\n  # none\n  b:2 ; two = 2\n \n\tc:3\n"), 0);
	assert_int_equal(conf_count(&conf, CONF_LISTEN), 3);
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 1), "b:2");
	assert_string_equal(conf_at(&conf, CONF_LISTEN, 2), "c:3");
}

static void test_a_mark_of_byte_order_hides_no_section(void **state)
{
	(void)state;
	assert_int_equal(load("\xef\xbb\xbf[fairlead]\ntries = 4\n"), 0);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	refuse_file("\xef\xbb\xbf[pool]\ntries = 4\n",
		    "F:1: unknown section [pool]; there are [fairlead] and [source NAME]");
}

static void test_a_trial_is_for_the_command_line_alone(void **state)
{
	(void)state;
	refuse_file("dry_run = true\n", "F:1: dry_run cannot be set in a file");
	refuse_file("verdicts = true\n", "F:1: verdicts cannot be set in a file");
}

static void test_a_line_that_would_be_cut_is_refused(void **state)
{
	static char content[10000];

	(void)state;
	memset(content, 'a', sizeof content);
	memcpy(content, "pool = ", 7);
	strcpy(content + 9990, "\n");
	refuse_file(content, "F:1: the line is too long; a list can go on in indented lines below");
	memset(content, 'a', 300);
	strcpy(content + 300, " = 3\n");
	refuse_file(content, "F:1: the line is too long; a list can go on in indented lines below");
}

/* A line of `before`, `count` letters and `behind`, and then one with `tries`. */
static int load_long(const char *before, int count, const char *behind)
{
	static char content[10000], letters[9000];

	memset(letters, 'a', sizeof letters - 1);
	snprintf(content, sizeof content, "%s%.*s%s\ntries = 4\n", before, count, letters, behind);
	return load(content);
}

static void test_a_value_may_be_as_long_as_its_setting_allows(void **state)
{
	(void)state;
	for (int count = 170; count < 210; count++) {
		conf_fini(&conf);
		assert_int_equal(conf_init(&conf), 0);
		assert_int_equal(load_long("[fairlead]\nstate_dir = ", count, " \t"), 0);
		assert_int_equal(strlen(conf_text(&conf, CONF_STATE_DIR)), count);
		assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	}
	assert_int_equal(load_long("state_dir = ", 4095, " ; why = x"), 0);
	assert_int_equal(strlen(conf_text(&conf, CONF_STATE_DIR)), 4095);
	assert_int_equal(load_long("state_dir = ", 4096, ""), -EINVAL);
	assert_non_null(strstr(error.text, "...: must have 0 to 4095 bytes"));
}

static void test_a_long_line_is_read_as_a_short_one_would_be(void **state)
{
	(void)state;
	assert_int_equal(load_long("# pool = ", 300, ""), 0);
	assert_string_equal(conf_text(&conf, CONF_POOL), "proxies");
	assert_int_equal(load_long("\xef\xbb\xbflist: x,", 300, ",y"), 0);
	assert_int_equal(conf_count(&conf, CONF_LIST), 3);
	assert_string_equal(conf_at(&conf, CONF_LIST, 2), "y");
	assert_int_equal(load_long("allow_client =\n  b,", 300, "=c,d"), 0);
	assert_int_equal(conf_count(&conf, CONF_ALLOW_CLIENT), 3);
	assert_string_equal(conf_at(&conf, CONF_ALLOW_CLIENT, 2), "d");
	assert_int_equal(load_long("[", 300, "]"), -EINVAL);
	assert_non_null(strstr(error.text, "F:1: unknown section [aaa"));
	assert_int_equal(load_long("tries = 3\n", 300, ""), -EINVAL);
	assert_non_null(strstr(error.text, "F:2: "));
}

static void test_a_file_that_cannot_be_read_is_named(void **state)
{
	(void)state;
	assert_int_equal(conf_load_file(&conf, "/nonexistent/f.ini", &error), -ENOENT);
	assert_string_equal(error.text,
			    "cannot read /nonexistent/f.ini: No such file or directory");
	assert_int_equal(conf_load_file(&conf, "/tmp", &error), -EISDIR);
	assert_string_equal(error.text, "cannot read /tmp: Is a directory");
}

/* Prints the settings in force into `buffer`. */
static void print_into(char *buffer, size_t size)
{
	FILE *out = fmemopen(buffer, size, "w");

	assert_non_null(out);
	conf_print(&conf, out);
	assert_int_equal(fclose(out), 0);
}

static void test_a_dump_reads_back_as_the_same_settings(void **state)
{
	static char dump[16384], again[16384];

	(void)state;
	set(CONF_TRIES, "4", from_flag);
	set(CONF_LISTEN, "a:1,b:2", from_environment);
	assert_int_equal(load("idle_timeout = 90s\naccess_log = off\n"), 0);
	print_into(dump, sizeof dump);
	assert_non_null(strstr(dump, "# from --tries\ntries = 4\n"));
	assert_non_null(strstr(dump, "# from FAIRLEAD_LISTEN\nlisten = a:1\nlisten = b:2\n"));
	assert_non_null(strstr(dump, "# default\npool = proxies\n"));
	conf_fini(&conf);
	assert_int_equal(conf_init(&conf), 0);
	assert_int_equal(load(dump), 0);
	assert_int_equal(conf_int(&conf, CONF_TRIES), 4);
	assert_int_equal(conf_count(&conf, CONF_LISTEN), 2);
	assert_int_equal(conf_ms(&conf, CONF_IDLE_TIMEOUT), 90000);
	assert_false(conf_bool(&conf, CONF_ACCESS_LOG));
	print_into(again, sizeof again);
	assert_non_null(strstr(again, "idle_timeout = 90s\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_a_file_is_read),
	    TEST(test_a_file_needs_no_section),
	    TEST(test_a_mistake_in_a_file_is_told_with_its_line),
	    TEST(test_another_section_is_refused_with_its_line),
	    TEST(test_a_comment_may_stand_behind_each_line_of_a_list),
	    TEST(test_a_mark_of_byte_order_hides_no_section),
	    TEST(test_a_trial_is_for_the_command_line_alone),
	    TEST(test_a_line_that_would_be_cut_is_refused),
	    TEST(test_a_value_may_be_as_long_as_its_setting_allows),
	    TEST(test_a_long_line_is_read_as_a_short_one_would_be),
	    TEST(test_a_file_that_cannot_be_read_is_named),
	    TEST(test_a_dump_reads_back_as_the_same_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
