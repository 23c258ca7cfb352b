/* test_lines.c - plain proxy lists: every case file, every split, every prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list/reader.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define LISTS TEST_DATA_DIR "/lists/"
#define ROWS_MAX 600
#define PREFIX_FILE_MAX ((size_t)4096)

/* Their formats are read by the CSV and JSON readers, which have tests of their own. */
static const char *const other_formats[] = {
    "f17-csv-header.csv",    "f19-json-array-strings.json", "f20-json-array-objects.json",
    "f21-json-geonode.json", "f22-json-proxyscrape.json",   "f23-json-proxy-url-only.json",
    "f24-jsonl.txt",         "m34-json-broken.json",
};

struct row {
	char *file;
	unsigned long line; /* 0 = the whole file */
	char *verdict, *result;
};

static struct row rows[ROWS_MAX];
static size_t row_count;
static char *expected_text;

struct bytes {
	char *data;
	size_t len;
};

static struct bytes file_read(const char *name)
{
	char path[512];
	struct bytes b = {0};
	FILE *f;

	snprintf(path, sizeof(path), LISTS "%s", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	b.len = (size_t)ftell(f);
	rewind(f);
	b.data = malloc(b.len + 1);
	assert_int_equal(fread(b.data, 1, b.len, f), b.len);
	b.data[b.len] = '\0';
	fclose(f);
	return b;
}

static int rows_load(void **state)
{
	char *line, *save;

	(void)state;
	expected_text = file_read("EXPECTED.tsv").data;
	for (line = strtok_r(expected_text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct row *r = &rows[row_count];

		if (line[0] == '#')
			continue;
		r->file = strsep(&line, "\t");
		r->line = strtoul(strsep(&line, "\t"), NULL, 10);
		r->verdict = strsep(&line, "\t");
		r->result = strsep(&line, "\t");
		assert_true(++row_count < ROWS_MAX);
	}
	return row_count > 250 ? 0 : -1;
}

static int rows_free(void **state)
{
	(void)state;
	free(expected_text);
	return 0;
}

static bool is_other_format(const char *file)
{
	for (size_t i = 0; i < COUNT(other_formats); i++)
		if (strcmp(other_formats[i], file) == 0)
			return true;
	return false;
}

/* What the reader said, as EXPECTED.tsv writes it. */
struct got {
	char *text; /* "line verdict result\n" for each entry */
	size_t len, size, entries;
};

static const char *verdict_class(enum verdict v)
{
	if (v == VERDICT_ACCEPTED || v == VERDICT_DUPLICATE)
		return verdict_word((int)v);
	if (v == VERDICT_BLANK || v == VERDICT_COMMENT || v == VERDICT_HEADER)
		return "skipped";
	return "rejected";
}

static void got_add(struct got *g, unsigned long line, const char *verdict, const char *result)
{
	size_t room = strlen(verdict) + strlen(result) + 32;

	if (g->size - g->len < room) {
		g->size = g->size * 2 + room;
		g->text = realloc(g->text, g->size);
		assert_non_null(g->text);
	}
	g->len += (size_t)sprintf(g->text + g->len, "%lu %s %s\n", line, verdict, result);
	g->entries++;
}

static void entry_collect(const struct list_entry *e, void *arg)
{
	static char canonical[ENDPOINT_TEXT_MAX];

	if (e->endpoint)
		endpoint_print(e->endpoint, SHOW_SECRET, canonical, sizeof(canonical));
	got_add(arg, (unsigned long)e->line, verdict_class(e->verdict),
		e->endpoint ? canonical : verdict_word((int)e->verdict));
}

static const struct endpoint_rules defaults = {.default_scheme = SCHEME_HTTP};

/* Reads `b` in pieces of `step` bytes, each at an address of its own so that sanitizers see any
 * step outside. */
static void list_run(struct bytes b, size_t step, const struct endpoint_rules *rules,
		     list_entry_cb *cb, void *arg)
{
	static struct list_reader r;

	assert_int_equal(list_reader_init(&r, rules, 1000000, cb, arg), 0);
	for (size_t at = 0; at < b.len; at += step) {
		size_t n = b.len - at < step ? b.len - at : step;
		char *piece = malloc(n);

		memcpy(piece, b.data + at, n);
		assert_int_equal(list_reader_feed(&r, piece, n), 0);
		free(piece);
	}
	assert_int_equal(list_reader_end(&r), 0);
	list_reader_fini(&r);
}

static struct got expected_of(const char *file)
{
	struct got g = {0};

	got_add(&g, 0, "", "");
	g.len = g.entries = 0;
	g.text[0] = '\0';
	for (size_t i = 0; i < row_count; i++)
		if (strcmp(rows[i].file, file) == 0)
			got_add(&g, rows[i].line, rows[i].verdict, rows[i].result);
	return g;
}

static void file_check(const char *file, size_t step)
{
	struct got expected = expected_of(file), g = {0};
	struct bytes b = file_read(file);

	list_run(b, step ? step : b.len + 1, &defaults, entry_collect, &g);
	if (strcmp(g.text ? g.text : "", expected.text) != 0)
		fail_msg("%s in steps of %zu:\n%s-- expected:\n%s", file, step, g.text,
			 expected.text);
	free(b.data);
	free(g.text);
	free(expected.text);
}

static void files_each(void (*check)(const char *file, size_t step), size_t step)
{
	DIR *dir = opendir(LISTS);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] == '.' || strcmp(d->d_name, "EXPECTED.tsv") == 0)
			continue;
		check(d->d_name, step);
		count++;
	}
	closedir(dir);
	assert_true(count >= 50);
}

static void plain_file_check(const char *file, size_t step)
{
	if (!is_other_format(file))
		file_check(file, step);
}

static void test_every_plain_file_is_read_as_expected_at_once(void **state)
{
	(void)state;
	files_each(plain_file_check, 0);
}

static void test_every_plain_file_is_read_as_expected_byte_by_byte(void **state)
{
	(void)state;
	files_each(plain_file_check, 1);
}

static void test_every_plain_file_is_read_as_expected_in_64_kib(void **state)
{
	(void)state;
	files_each(plain_file_check, 65536);
}

/* All but the last entry of a file cut short are those of the whole file. */
static void prefixes_check(const char *file, size_t step)
{
	struct bytes b = file_read(file);
	struct got expected = expected_of(file);
	bool is_whole = expected.text[0] == '0' || is_other_format(file);

	for (struct bytes p = b; p.len > 0 && b.len <= PREFIX_FILE_MAX; p.len--) {
		struct got g = {0};
		char *last;

		list_run(p, step, &defaults, entry_collect, &g);
		last = g.text ? memrchr(g.text, '\n', g.len - 1) : NULL;
		if (!is_whole && last)
			assert_memory_equal(g.text, expected.text, (size_t)(last - g.text));
		free(g.text);
	}
	free(b.data);
	free(expected.text);
}

static void test_every_prefix_of_every_file_is_handled(void **state)
{
	(void)state;
	files_each(prefixes_check, PREFIX_FILE_MAX);
}

static void lists_equal(const char *input, size_t len, const struct endpoint_rules *rules,
			const char *expected)
{
	for (size_t step = 1; step <= 3; step++) {
		struct got g = {0};
		struct bytes b = {(char *)(uintptr_t)input, len};

		list_run(b, step == 3 ? len : step, rules, entry_collect, &g);
		assert_string_equal(g.text ? g.text : "", expected);
		free(g.text);
	}
}

static void line_is(const char *line, const char *expected)
{
	char text[5000];

	snprintf(text, sizeof(text), "1 %s\n", expected);
	lists_equal(line, strlen(line), &defaults, text);
}

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
	struct endpoint_rules rules = {.allow_direct = false};

	(void)state;
	lists_equal("direct://\nDIRECT://192.0.2.1\n", 29, &rules,
		    "1 rejected direct\n2 rejected direct\n");
}

static void test_ends_of_lines_may_differ(void **state)
{
	static const char input[] =
	    "192.0.2.1:1\r\n\r\r\n\n192.0.2.1:2\r192.0.2.1:3\n\r192.0.2.1:4";

	(void)state;
	lists_equal(input, sizeof(input) - 1, &defaults,
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
		lists_equal(input, len + sizeof(second) - 1, &defaults, expected);
	}
}

static void test_controls_spoil_a_line_but_not_a_comment(void **state)
{
	static const char input[] =
	    "# \x01\0\n192.0.2.1:1 \x7f\n\x01\n192.0.2.1:1 # \0\n192.0.2.1:2";

	(void)state;
	lists_equal(input, sizeof(input) - 1, &defaults,
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

	(void)state;
	list_run((struct bytes){line, 13}, 13, &defaults, scheme_copied, scheme);
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
	    cmocka_unit_test(test_every_plain_file_is_read_as_expected_at_once),
	    cmocka_unit_test(test_every_plain_file_is_read_as_expected_byte_by_byte),
	    cmocka_unit_test(test_every_plain_file_is_read_as_expected_in_64_kib),
	    cmocka_unit_test(test_every_prefix_of_every_file_is_handled),
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

	return cmocka_run_group_tests(tests, rows_load, rows_free);
}
