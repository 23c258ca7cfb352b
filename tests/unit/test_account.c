/* test_account.c - the file of clients: what stands there, who is found, whose password it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/account.h"

/* HMAC-SHA-256 with the key 00 01 .. 0f over "secret", by Python's hmac. */
#define SALT "000102030405060708090a0b0c0d0e0f"
#define DIGEST "9cc810f633736c73be6be79d4c9b53872b1b01fd14b9fdf17f796ffadbbb613e"
#define SECRET "hmac-sha256:" SALT ":" DIGEST

static char path[] = "/tmp/test_account_XXXXXX";
static char error[256];
static struct accounts *accounts;

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	accounts_free(accounts);
	return unlink(path);
}

static int read_bytes(const char *bytes, size_t len)
{
	FILE *file = fopen(path, "w");
	struct accounts *read = NULL;
	int r;

	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	r = accounts_read(&read, path, error, sizeof(error));
	if (r == 0) {
		accounts_free(accounts);
		accounts = read;
	}
	assert_true(r == 0 || !read);
	return r;
}

static void read_good(const char *text)
{
	if (read_bytes(text, strlen(text)) != 0)
		fail_msg("%s", error);
}

/* The file is refused, and the message is its path and `want`. */
static void check_refused(const char *text, size_t len, const char *want)
{
	char line[256];

	if (read_bytes(text, len) != -EINVAL)
		fail_msg("it is taken: %s", text);
	snprintf(line, sizeof(line), "%s:%s", path, want);
	assert_string_equal(error, line);
}

static const char *found(const char *user)
{
	const struct account *account = accounts_find(accounts, user, strlen(user));

	return account ? account_name(account) : "nobody";
}

static bool is_password(const char *user, const char *password)
{
	return account_check(accounts_find(accounts, user, strlen(user)), password,
			     strlen(password));
}

static void test_lines_comments_and_white_space(void **state)
{
	(void)state;
	read_good("# clients\n\n"
		  "acme " SECRET "\n"
		  " \tb#c \t " SECRET " \t pools=eu # the shop\r\n"
		  "\t# more\r\n\r\n"
		  "last " SECRET "\t\n");
	assert_string_equal(found("acme"), "acme");
	assert_string_equal(found("b#c"), "b#c");
}

static void test_the_last_line_needs_no_line_feed(void **state)
{
	(void)state;
	read_good("acme " SECRET);
	assert_string_equal(found("acme"), "acme");
}

static void test_the_password_is_the_one_of_the_digest(void **state)
{
	(void)state;
	read_good("acme " SECRET "\n");
	assert_true(is_password("acme", "secret"));
	assert_true(is_password("acme-session-1", "secret"));
	assert_false(is_password("acme", "Secret"));
	assert_false(is_password("acme", "secret "));
	assert_false(is_password("acme", ""));
	assert_false(account_check(accounts_find(accounts, "acme", 4), "secret\0", 7));
}

static void test_nobody_has_a_password(void **state)
{
	(void)state;
	assert_false(account_check(NULL, "secret", 6));
	assert_false(account_check(NULL, "", 0));
}

static void test_the_longest_name_wins(void **state)
{
	(void)state;
	read_good("a " SECRET "\na-b " SECRET "\na-b-session " SECRET "\n-x " SECRET "\n");
	assert_string_equal(found("a"), "a");
	assert_string_equal(found("a-c"), "a");
	assert_string_equal(found("a-b"), "a-b");
	assert_string_equal(found("a-b-sess"), "a-b");
	assert_string_equal(found("a-b-session"), "a-b-session");
	assert_string_equal(found("a-b-session-1"), "a-b-session");
	assert_string_equal(found("a-b-sessions"), "a-b");
	assert_string_equal(found("-x-strict"), "-x");
}

static void test_a_name_ends_at_a_dash_or_at_the_end(void **state)
{
	(void)state;
	read_good("acme " SECRET "\n");
	assert_string_equal(found("acmeX"), "nobody");
	assert_string_equal(found("acm"), "nobody");
	assert_string_equal(found("ACME"), "nobody");
	assert_string_equal(found(""), "nobody");
	assert_string_equal(found("-"), "nobody");
	assert_string_equal(found("acme-"), "acme");
	assert_null(accounts_find(accounts, "acme\0", 5));
	assert_non_null(accounts_find(accounts, "acme-\0\xff", 7));
}

static void test_the_longest_possible_name_is_found(void **state)
{
	char name[128], line[256], user[512];

	(void)state;
	memset(name, 'n', 64);
	name[64] = '\0';
	snprintf(line, sizeof(line), "%s %s\n", name, SECRET);
	read_good(line);
	assert_string_equal(found(name), name);
	memset(user, '-', 300);
	memcpy(user, name, 64);
	user[300] = '\0';
	assert_string_equal(found(user), name);
	strcat(name, "n");
	assert_string_equal(found(name), "nobody");
}

static void test_pools_limit_an_account(void **state)
{
	const struct account *all, *some;

	(void)state;
	read_good("all " SECRET "\nsome " SECRET " pools=eu,us.east,X_1\n");
	all = accounts_find(accounts, "all", 3);
	some = accounts_find(accounts, "some", 4);
	assert_true(account_may_use(all, "eu"));
	assert_true(account_may_use(some, "eu"));
	assert_true(account_may_use(some, "us.east"));
	assert_true(account_may_use(some, "X_1"));
	assert_false(account_may_use(some, "us"));
	assert_false(account_may_use(some, "e"));
	assert_false(account_may_use(some, "x_1"));
	assert_false(account_may_use(some, "eu,us.east"));
	assert_false(account_may_use(some, ""));
}

static void test_lines_that_cannot_be_are_refused_with_their_number(void **state)
{
	static const char name[] = "2: a name has 1 to 64 visible ASCII characters without ':'";
	static const char digest[] = "2: the name must be followed by hmac-sha256:SALT:DIGEST, as "
				     "'fairlead auth' prints it";
	static const char rest[] = "2: only pools=ALIAS,... may follow the digest";
	static const char pools[] = "2: pools= needs aliases of letters, digits, '.' and '_', "
				    "separated by commas";
	static const struct {
		const char *line, *want;
	} rows[] = {
	    {"a:b " SECRET, name},
	    {"\303\244 " SECRET, name},
	    {"a\177 " SECRET, name},
	    {"0123456789012345678901234567890123456789012345678901234567890123x " SECRET, name},
	    {"acme", digest},
	    {"acme secret", digest},
	    {"acme # " SECRET, digest},
	    {"acme sha256:" SALT ":" DIGEST, digest},
	    {"acme HMAC-SHA256:" SALT ":" DIGEST, digest},
	    {"acme hmac-sha256:" SALT, digest},
	    {"acme hmac-sha256:" SALT ":", digest},
	    {"acme hmac-sha256:0" SALT ":" DIGEST, digest},
	    {"acme hmac-sha256:" SALT ":" DIGEST "00", digest},
	    {"acme hmac-sha256:x00102030405060708090a0b0c0d0e0f:" DIGEST, digest},
	    {"acme " SECRET " secret", rest},
	    {"acme " SECRET " pool=eu", rest},
	    {"acme " SECRET " pools=eu ,us", rest},
	    {"acme " SECRET " pools=", pools},
	    {"acme " SECRET " pools=,", pools},
	    {"acme " SECRET " pools=eu,", pools},
	    {"acme " SECRET " pools=eu,,us", pools},
	    {"acme " SECRET " pools=e-u", pools},
	    {"acme " SECRET " pools=eu pools=us", "2: pools= stands there twice"},
	    {"good " SECRET, "2: the name stands on line 1 already"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(text, sizeof(text), "good %s\n%s\n", SECRET, rows[i].line);
		check_refused(text, strlen(text), rows[i].want);
	}
}

static void test_a_file_must_have_an_account(void **state)
{
	static const char nul[] = "acme " SECRET "\0 pools=eu\n";

	(void)state;
	check_refused("", 0, " there is no account in it");
	check_refused("# none\n\n", 8, " there is no account in it");
	check_refused(nul, sizeof(nul) - 1, "1: there is a NUL byte");
}

static void test_a_file_that_cannot_be_read_is_named(void **state)
{
	struct accounts *none = NULL;

	(void)state;
	assert_int_equal(accounts_read(&none, "/nonexistent/clients", error, sizeof(error)),
			 -ENOENT);
	assert_string_equal(error, "/nonexistent/clients: No such file or directory");
	assert_int_equal(accounts_read(&none, "/tmp", error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "/tmp: it is no regular file");
	assert_null(none);
}

static void test_a_printed_line_reads_back(void **state)
{
	char line[256], again[256];

	(void)state;
	assert_int_equal(account_print_line("acme-1", "p\xc3\xa4 :ss", 7, line, sizeof(line)), 0);
	assert_int_equal(account_print_line("acme-1", "p\xc3\xa4 :ss", 7, again, sizeof(again)), 0);
	assert_string_not_equal(line, again);
	read_good(line);
	assert_true(is_password("acme-1", "p\xc3\xa4 :ss"));
	assert_false(is_password("acme-1", "other"));
}

static void test_a_line_is_printed_for_names_that_can_be(void **state)
{
	char line[256];

	(void)state;
	assert_int_equal(account_print_line("", "p", 1, line, sizeof(line)), -EINVAL);
	assert_int_equal(account_print_line("a b", "p", 1, line, sizeof(line)), -EINVAL);
	assert_int_equal(account_print_line("a:b", "p", 1, line, sizeof(line)), -EINVAL);
	assert_int_equal(account_print_line("#a", "p", 1, line, sizeof(line)), -EINVAL);
	assert_int_equal(account_print_line("a\n", "p", 1, line, sizeof(line)), -EINVAL);
	assert_int_equal(account_print_line("acme", "p", 1, line, 64), -EMSGSIZE);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The bound is far above what it takes (0.1 s), and far below what looking through all of them for each would. */
static void test_many_accounts_are_read_and_found_fast(void **state)
{
	const int count = 100000;
	char *text = malloc((size_t)count * 128), name[32];
	size_t len = 0;
	double start;

	(void)state;
	for (int i = 0; i < count; i++)
		len += (size_t)sprintf(text + len, "client-%d %s\n", i, SECRET);
	start = seconds();
	assert_int_equal(read_bytes(text, len), 0);
	for (int i = 0; i < count; i++) {
		sprintf(name, "client-%d-strict", i);
		assert_non_null(accounts_find(accounts, name, strlen(name)));
	}
	assert_true(seconds() - start < 5);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines_comments_and_white_space),
	    cmocka_unit_test(test_the_last_line_needs_no_line_feed),
	    cmocka_unit_test(test_the_password_is_the_one_of_the_digest),
	    cmocka_unit_test(test_nobody_has_a_password),
	    cmocka_unit_test(test_the_longest_name_wins),
	    cmocka_unit_test(test_a_name_ends_at_a_dash_or_at_the_end),
	    cmocka_unit_test(test_the_longest_possible_name_is_found),
	    cmocka_unit_test(test_pools_limit_an_account),
	    cmocka_unit_test(test_lines_that_cannot_be_are_refused_with_their_number),
	    cmocka_unit_test(test_a_file_must_have_an_account),
	    cmocka_unit_test(test_a_file_that_cannot_be_read_is_named),
	    cmocka_unit_test(test_a_printed_line_reads_back),
	    cmocka_unit_test(test_a_line_is_printed_for_names_that_can_be),
	    cmocka_unit_test(test_many_accounts_are_read_and_found_fast),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
