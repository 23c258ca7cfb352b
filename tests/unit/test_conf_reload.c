/* test_conf_reload.c - settings that are read anew: what flags, environment and file say now. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/conf.h"

static struct conf old, fresh;
static struct conf_error error;
static char path[] = "/tmp/fairlead-test-reload-XXXXXX";

static void write_file(const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(content, file);
	assert_int_equal(fclose(file), 0);
}

static void set(enum conf_id id, const char *value, enum conf_level level)
{
	if (conf_set(&old, id, value, (struct conf_place){.level = level}, &error))
		fail_msg("%s", error.text);
}

/* A configuration in force: a flag, two defaults, one of them worked out, and a file. */
static int set_up(void **state)
{
	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	close(mkstemp(path));
	write_file("tries = 4\nallow_client = 10.0.0.0/8\n[source a]\nplace = /a\n");
	memset(&fresh, 0, sizeof fresh);
	if (conf_init(&old))
		return -1;
	set(CONF_CONFIG, path, FROM_FLAG);
	set(CONF_LISTEN, "127.0.0.1:1 auth=off", FROM_FLAG);
	set(CONF_LISTEN, "127.0.0.1:2", FROM_FLAG);
	set(CONF_STATE_DIR, "/home/x/state", FROM_DEFAULT);
	return conf_load_file(&old, path, &error);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unsetenv("FAIRLEAD_TRIES");
	conf_fini(&old);
	conf_fini(&fresh);
	return 0;
}

static void test_what_nobody_changed_is_the_same(void **state)
{
	(void)state;
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	for (int id = 0; id < CONF_ROWS; id++) {
		assert_true(conf_is_same(&fresh, &old, (enum conf_id)id));
		assert_int_equal(conf_level(&fresh, (enum conf_id)id),
				 conf_level(&old, (enum conf_id)id));
	}
	assert_int_equal(conf_source_count(&fresh), 1);
}

static void test_the_file_is_read_anew(void **state)
{
	(void)state;
	write_file("idle_timeout = 9s\n[source b]\nplace = /b\n[source c]\nplace = /c\n");
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_int_equal(conf_int(&fresh, CONF_TRIES), 3);
	assert_int_equal(conf_count(&fresh, CONF_ALLOW_CLIENT), 0);
	assert_int_equal(conf_ms(&fresh, CONF_IDLE_TIMEOUT), 9000);
	assert_int_equal(conf_source_count(&fresh), 2);
	assert_string_equal(conf_source_name(&fresh, 1), "c");
	assert_int_equal(conf_int(&old, CONF_TRIES), 4);
	assert_string_equal(conf_source_name(&old, 0), "a");
}

static void test_flags_stay_and_win(void **state)
{
	(void)state;
	write_file("listen = 127.0.0.1:9\n");
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_int_equal(conf_count(&fresh, CONF_LISTEN), 2);
	assert_string_equal(conf_at(&fresh, CONF_LISTEN, 0), "127.0.0.1:1 auth=off");
	assert_int_equal(conf_level(&fresh, CONF_LISTEN), FROM_FLAG);
}

static void test_the_environment_is_read_anew_and_wins_over_the_file(void **state)
{
	(void)state;
	setenv("FAIRLEAD_TRIES", "7", 1);
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_int_equal(conf_int(&fresh, CONF_TRIES), 7);
	assert_int_equal(conf_level(&fresh, CONF_TRIES), FROM_ENVIRONMENT);
}

static void test_a_default_that_was_worked_out_stays_until_something_sets_it(void **state)
{
	(void)state;
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_string_equal(conf_text(&fresh, CONF_STATE_DIR), "/home/x/state");
	conf_fini(&fresh);
	write_file("state_dir = /var/y\n");
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_string_equal(conf_text(&fresh, CONF_STATE_DIR), "/var/y");
}

static void test_a_bad_file_is_told_with_its_line_and_changes_nothing(void **state)
{
	struct conf before;
	char expected[128];

	(void)state;
	memset(&fresh, 0, sizeof fresh);
	before = fresh;
	write_file("tries = 5\nidle_timeout = soon\n");
	assert_int_equal(conf_reload(&fresh, &old, &error), -EINVAL);
	snprintf(expected, sizeof expected, "%s:2: idle_timeout = soon: must be 1s to 1d", path);
	assert_string_equal(error.text, expected);
	assert_memory_equal(&fresh, &before, sizeof fresh);
	unlink(path);
	assert_int_equal(conf_reload(&fresh, &old, &error), -ENOENT);
	assert_int_equal(conf_int(&old, CONF_TRIES), 4);
}

static void test_settings_are_the_same_by_their_value(void **state)
{
	(void)state;
	write_file("listen = x\ntries = 4\n");
	assert_int_equal(conf_reload(&fresh, &old, &error), 0);
	assert_true(conf_is_same(&fresh, &old, CONF_TRIES));
	assert_false(conf_is_same(&fresh, &old, CONF_ALLOW_CLIENT));
	assert_int_equal(conf_keep(&fresh, &old, CONF_ALLOW_CLIENT), 0);
	assert_true(conf_is_same(&fresh, &old, CONF_ALLOW_CLIENT));
	assert_string_equal(conf_at(&fresh, CONF_ALLOW_CLIENT, 0), "10.0.0.0/8");
	assert_int_equal(conf_level(&fresh, CONF_ALLOW_CLIENT), FROM_FILE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_what_nobody_changed_is_the_same),
	    TEST(test_the_file_is_read_anew),
	    TEST(test_flags_stay_and_win),
	    TEST(test_the_environment_is_read_anew_and_wins_over_the_file),
	    TEST(test_a_default_that_was_worked_out_stays_until_something_sets_it),
	    TEST(test_a_bad_file_is_told_with_its_line_and_changes_nothing),
	    TEST(test_settings_are_the_same_by_their_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
