/* test_store_url.c - where the store is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/url.h"

struct row {
	const char *text, *host, *path, *user, *password;
	uint16_t port;
	int db;
	const char *printed;
};

static void check(const struct row *row)
{
	struct store_url url;
	char error[200] = "", printed[400];

	if (store_url_parse(&url, row->text, error, sizeof(error)))
		fail_msg("%s: %s", row->text, error);
	assert_int_equal(url.kind, row->path ? STORE_UNIX : STORE_TCP);
	assert_string_equal(url.path, row->path ? row->path : "");
	assert_string_equal(url.host, row->host ? row->host : "");
	assert_string_equal(url.user, row->user);
	assert_string_equal(url.password, row->password);
	assert_int_equal(url.port, row->port);
	assert_int_equal(url.db, row->db);
	store_url_print(&url, printed, sizeof(printed));
	assert_string_equal(printed, row->printed);
	store_url_wipe(&url);
	assert_string_equal(url.password, "");
	assert_string_equal(url.user, "");
}

static void test_tcp_urls_are_read(void **state)
{
	static const struct row rows[] = {
	    {"redis://h", "h", NULL, "", "", 6379, 0, "redis://h:6379/0"},
	    {"REDIS://h:1", "h", NULL, "", "", 1, 0, "redis://h:1/0"},
	    {"redis://h/", "h", NULL, "", "", 6379, 0, "redis://h:6379/0"},
	    {"redis://10.0.0.5:6380/3", "10.0.0.5", NULL, "", "", 6380, 3,
	     "redis://10.0.0.5:6380/3"},
	    {"redis://[::1]:7/2", "::1", NULL, "", "", 7, 2, "redis://[::1]:7/2"},
	    {"redis://[2001:db8::1]", "2001:db8::1", NULL, "", "", 6379, 0,
	     "redis://[2001:db8::1]:6379/0"},
	    {"redis://:secret@h", "h", NULL, "", "secret", 6379, 0, "redis://h:6379/0"},
	    {"redis://u:p%40%3a%2F%25@h:9/1", "h", NULL, "u", "p@:/%", 9, 1, "redis://h:9/1"},
	    {"redis://u:p@q:r@h", "h", NULL, "u", "p@q:r", 6379, 0, "redis://h:6379/0"},
	    {"redis://u@h", "h", NULL, "u", "", 6379, 0, "redis://h:6379/0"},
	    {"redis://:100%@h", "h", NULL, "", "100%", 6379, 0, "redis://h:6379/0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check(&rows[i]);
}

static void test_unix_urls_are_read(void **state)
{
	static const struct row rows[] = {
	    {"unix:///r.sock", NULL, "/r.sock", "", "", 0, 0, "unix:///r.sock"},
	    {"unix:///run/a@b/r.sock?db=5", NULL, "/run/a@b/r.sock", "", "", 0, 5,
	     "unix:///run/a@b/r.sock"},
	    {"unix://:pw@/run/r.sock", NULL, "/run/r.sock", "", "pw", 0, 0, "unix:///run/r.sock"},
	    {"unix://u:p/w@/run/r.sock?db=1", NULL, "/run/r.sock", "u", "p/w", 0, 1,
	     "unix:///run/r.sock"},
	    {"unix://:pw@/run/redis@1.sock", NULL, "/run/redis@1.sock", "", "pw", 0, 0,
	     "unix:///run/redis@1.sock"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check(&rows[i]);
}

static void test_what_is_no_url_is_refused_without_showing_the_password(void **state)
{
	static const char *const texts[] = {
	    "",
	    "h:6379",
	    "http://:secret@h",
	    "redis:/h",
	    "redis://",
	    "redis://:secret@",
	    "redis://:secret@h:",
	    "redis://:secret@h:0",
	    "redis://:secret@h:65536",
	    "redis://:secret@h:12x",
	    "redis://:secret@h/x",
	    "redis://:secret@h/16385",
	    "redis://:secret@h/1/2",
	    "redis://:secret@h?db=1",
	    "redis://:secret@h#1",
	    "redis://:secret@[::1",
	    "redis://:secret@[]:1",
	    "redis://:secret@[::1]1",
	    "redis://:secret%00@h",
	    "unix://:secret@run/r.sock",
	    "unix://",
	    "unix://run/secret.sock",
	    "unix:///r.sock?x=secret",
	    "unix:///r.sock?db=secret",
	    "rediss://:secret@h",
	    "redis+sentinel://:secret@h/m/0",
	    "rediss+cluster://:secret@h",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct store_url url;
		char error[200] = "";

		if (store_url_parse(&url, texts[i], error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' is read", texts[i]);
		assert_true(strlen(error) > 10);
		assert_null(strstr(error, "secret"));
	}
}

static void test_schemes_of_other_versions_are_named(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {{"rediss://h", "TLS"},
		    {"redis+sentinel://h:1/m/0", "Sentinel"},
		    {"redis+cluster://h:1", "Cluster"}};
	struct store_url url;
	char error[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(store_url_parse(&url, rows[i].text, error, sizeof(error)),
				 -EINVAL);
		assert_non_null(strstr(error, rows[i].word));
	}
}

static void test_parts_that_are_too_long_are_refused(void **state)
{
	static const struct {
		const char *before, *behind;
		size_t most;
	} rows[] = {{"redis://", "", 255},
		    {"redis://", "@h", 255},
		    {"redis://:", "@h", 511},
		    {"unix:///", "", 106}};
	struct store_url url;
	char text[700], error[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t more = 0; more < 2; more++) {
			size_t len = strlen(rows[i].before);

			strcpy(text, rows[i].before);
			memset(text + len, 'a', rows[i].most + more);
			strcpy(text + len + rows[i].most + more, rows[i].behind);
			assert_int_equal(store_url_parse(&url, text, error, sizeof(error)),
					 more ? -EINVAL : 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tcp_urls_are_read),
	    cmocka_unit_test(test_unix_urls_are_read),
	    cmocka_unit_test(test_what_is_no_url_is_refused_without_showing_the_password),
	    cmocka_unit_test(test_schemes_of_other_versions_are_named),
	    cmocka_unit_test(test_parts_that_are_too_long_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
