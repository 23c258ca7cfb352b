/* test_list_cases.c - every case file against its EXPECTED.tsv: whole, by bytes, and every prefix. */
#include "list_check.h"

#include <dirent.h>

#define ROWS_MAX 800
#define PREFIX_FILE_MAX ((size_t)4096)

static const char *const folders[] = {TEST_DATA_DIR "/lists/", TEST_DATA_DIR "/lists-own/"};

struct row {
	size_t folder;
	char *file;
	unsigned long line; /* 0 = the whole file */
	char *verdict, *result;
};

static struct row rows[ROWS_MAX];
static size_t row_count;
static char *expected_texts[COUNT(folders)];

static struct bytes case_read(size_t folder, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s%s", folders[folder], name);
	return file_read(path);
}

static void folder_load(size_t folder)
{
	char *line, *save;

	expected_texts[folder] = case_read(folder, "EXPECTED.tsv").data;
	for (line = strtok_r(expected_texts[folder], "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct row *r = &rows[row_count];

		if (line[0] == '#')
			continue;
		r->folder = folder;
		r->file = strsep(&line, "\t");
		r->line = strtoul(strsep(&line, "\t"), NULL, 10);
		r->verdict = strsep(&line, "\t");
		r->result = strsep(&line, "\t");
		assert_non_null(r->result);
		assert_true(++row_count < ROWS_MAX);
	}
}

static int rows_load(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(folders); i++)
		folder_load(i);
	return row_count > 250 ? 0 : -1;
}

static int rows_free(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(folders); i++)
		free(expected_texts[i]);
	return 0;
}

static struct got expected_of(size_t folder, const char *file)
{
	struct got g = {0};

	got_add(&g, 0, "", "");
	g.len = g.entries = 0;
	g.text[0] = '\0';
	for (size_t i = 0; i < row_count; i++)
		if (rows[i].folder == folder && strcmp(rows[i].file, file) == 0)
			got_add(&g, rows[i].line, rows[i].verdict, rows[i].result);
	return g;
}

static void file_check(size_t folder, const char *file, size_t step)
{
	struct got expected = expected_of(folder, file), g = {0};
	struct bytes b = case_read(folder, file);
	struct reading how = {.step = step};

	list_run(b, &how, entry_collect, &g);
	if (strcmp(got_text(&g), expected.text) != 0)
		fail_msg("%s in steps of %zu:\n%s-- expected:\n%s", file, step, got_text(&g),
			 expected.text);
	free(b.data);
	free(g.text);
	free(expected.text);
}

static size_t folder_each(size_t folder,
			  void (*check)(size_t folder, const char *file, size_t step), size_t step)
{
	DIR *dir = opendir(folders[folder]);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] == '.' || strcmp(d->d_name, "EXPECTED.tsv") == 0)
			continue;
		check(folder, d->d_name, step);
		count++;
	}
	closedir(dir);
	return count;
}

static void files_each(void (*check)(size_t folder, const char *file, size_t step), size_t step)
{
	assert_true(folder_each(0, check, step) >= 50);
	assert_true(folder_each(1, check, step) >= 20);
}

static void test_every_file_is_read_as_expected_at_once(void **state)
{
	(void)state;
	files_each(file_check, 0);
}

static void test_every_file_is_read_as_expected_byte_by_byte(void **state)
{
	(void)state;
	files_each(file_check, 1);
}

static void test_every_file_is_read_as_expected_in_64_kib(void **state)
{
	(void)state;
	files_each(file_check, 65536);
}

static const char *last_line(const char *text, const char *end)
{
	const char *at = memrchr(text, '\n', (size_t)(end - text) - 1);

	return at ? at + 1 : text;
}

/* How much of what was said stands whatever comes next: not the last entry, nor the lines of a
 * quoted cell that is cut. */
static size_t firm_len(const struct got *g)
{
	static const char row[] = " rejected csv-columns\n";
	const char *end = g->text + g->len, *last = end;

	if (g->entries == 0)
		return 0;
	do {
		end = last;
		last = last_line(g->text, end);
	} while (last > g->text && memmem(last, (size_t)(end - last), row, sizeof(row) - 1));
	return (size_t)((end < g->text + g->len ? end : last) - g->text);
}

/* A file cut short says what the whole file says, but for its end. A JSON document says all of it
 * or that it is none; its first bytes alone may look like a line. */
static void prefix_check(const char *file, struct bytes prefix, const struct got *expected)
{
	struct reading how = {.step = PREFIX_FILE_MAX};
	struct got g = {0};

	list_run(prefix, &how, entry_collect, &g);
	if (g.entries > 0 && strncmp(g.text, expected->text, firm_len(&g)) != 0)
		fail_msg("%s cut at %zu:\n%s-- expected:\n%s", file, prefix.len, g.text,
			 expected->text);
	if (strstr(file, ".json") && !strstr(file, ".jsonl") &&
	    strcmp(got_text(&g), expected->text) != 0 && strcmp(file, "json-joined.json") != 0) {
		assert_true(g.entries <= 1);
		assert_null(strstr(got_text(&g), "accepted"));
	}
	free(g.text);
}

static bool is_cut(const struct bytes *b, size_t len)
{
	if (b->len <= PREFIX_FILE_MAX)
		return true;
	for (size_t i = len > 2 ? len - 2 : 0; i < len + 2 && i < b->len; i++)
		if (b->data[i] == '\n' || b->data[i] == '\r')
			return true;
	return false;
}

static void prefixes_check(size_t folder, const char *file, size_t step)
{
	struct bytes b = case_read(folder, file);
	struct got expected = expected_of(folder, file);
	bool is_refused = expected.text[0] == '0'; /* its beginning need not tell yet */

	(void)step;
	for (size_t len = 0; len <= b.len; len++) {
		struct bytes prefix = {b.data, len};
		struct reading how = {.step = 0};
		struct got any = {0};

		if (!is_cut(&b, len))
			continue;
		if (is_refused)
			list_run(prefix, &how, entry_collect, &any);
		else
			prefix_check(file, prefix, &expected);
		free(any.text);
	}
	free(b.data);
	free(expected.text);
}

static void test_every_prefix_of_every_file_is_handled(void **state)
{
	(void)state;
	files_each(prefixes_check, 0);
}

static void test_each_word_of_the_closed_list_has_a_case(void **state)
{
	bool has[VERDICT_COUNT] = {false};

	(void)state;
	for (size_t i = 0; i < row_count; i++)
		for (int v = 0; v < VERDICT_COUNT; v++)
			if (strcmp(rows[i].result, verdict_word(v)) == 0 ||
			    strcmp(rows[i].verdict, verdict_word(v)) == 0)
				has[v] = true;
	for (int v = 0; v < VERDICT_COUNT; v++)
		if (!has[v])
			fail_msg("no case for %s", verdict_word(v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_file_is_read_as_expected_at_once),
	    cmocka_unit_test(test_every_file_is_read_as_expected_byte_by_byte),
	    cmocka_unit_test(test_every_file_is_read_as_expected_in_64_kib),
	    cmocka_unit_test(test_every_prefix_of_every_file_is_handled),
	    cmocka_unit_test(test_each_word_of_the_closed_list_has_a_case),
	};

	return cmocka_run_group_tests(tests, rows_load, rows_free);
}
