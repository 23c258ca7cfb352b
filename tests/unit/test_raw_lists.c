/* test_raw_lists.c - real lists give the counts of their README. */
#include "list_check.h"

#define REJECTS_MAX 2

struct expected {
	const char *file;
	uint64_t accepted, duplicate, skipped;
	struct {
		enum verdict verdict;
		uint64_t count;
	} rejects[REJECTS_MAX];
};

static const struct expected lists[] = {
    {"01-scheme-mixed-monosans-all.txt", 492, 0, 0, {{0}}},
    {"03-spys-me-columns-clarketm.txt", 400, 0, 2, {{VERDICT_NOT_AN_ENDPOINT, 6}}},
    {"19-json-wrapped-ranked-nikolait.json", 1471, 0, 0, {{0}}},
    {"20-pipe-geo-utf8-rdavydov.txt", 554, 0, 0, {{0}}},
    {"25-crlf-andigwandi.txt", 817, 1, 0, {{0}}},
    {"26-BIG-classDE-rx4096.txt",
     44710,
     0,
     0,
     {{VERDICT_BOGON, 5287}, {VERDICT_IPV4_LEADING_ZERO, 3}}},
    {"27-BIG-plain-ercin.txt", 59301, 0, 0, {{VERDICT_BOGON, 12}}},
    {"33-csv-header-quoted-kael.csv", 156, 0, 1, {{0}}},
};

static void entry_count(const struct list_entry *e, void *arg)
{
	uint64_t *counts = arg;

	counts[e->verdict]++;
}

static void list_check(const struct expected *x)
{
	uint64_t counts[VERDICT_COUNT] = {0}, total = 0, expected = 0;
	struct reading how = {.step = 65536};
	struct bytes b;
	char path[1024];

	snprintf(path, sizeof(path), TEST_DATA_DIR "/raw-lists/%s", x->file);
	b = file_read(path);
	list_run(b, &how, entry_count, counts);
	free(b.data);
	for (int v = 0; v < VERDICT_COUNT; v++)
		total += counts[v];
	assert_int_equal(counts[VERDICT_ACCEPTED], x->accepted);
	assert_int_equal(counts[VERDICT_DUPLICATE], x->duplicate);
	expected = x->accepted + x->duplicate + x->skipped;
	assert_int_equal(counts[VERDICT_BLANK] + counts[VERDICT_COMMENT] + counts[VERDICT_HEADER],
			 x->skipped);
	for (size_t i = 0; i < REJECTS_MAX; i++) {
		if (x->rejects[i].count > 0)
			assert_int_equal(counts[x->rejects[i].verdict], x->rejects[i].count);
		expected += x->rejects[i].count;
	}
	assert_int_equal(total, expected);
}

static void test_real_lists_give_the_counts_of_their_readme(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lists); i++)
		list_check(&lists[i]);
}

static void tags_count(const struct list_entry *e, void *arg)
{
	size_t *count = arg;

	if (strlen(e->country) == 2 && strcmp(e->anonymity, "elite") == 0)
		++*count;
}

static void test_a_real_table_gives_its_tags(void **state)
{
	struct bytes b = file_read(TEST_DATA_DIR "/raw-lists/33-csv-header-quoted-kael.csv");
	struct reading how = {.step = 0};
	size_t count = 0, expected = 0;

	(void)state;
	for (char *at = b.data; (at = strstr(at, ",elite,")); at++)
		expected++;
	list_run(b, &how, tags_count, &count);
	assert_true(expected > 0);
	assert_int_equal(count, expected);
	free(b.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_real_lists_give_the_counts_of_their_readme),
	    cmocka_unit_test(test_a_real_table_gives_its_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
