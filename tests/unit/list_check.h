/* list_check.h - for the tests of list/: bytes in, what the reader said out, as EXPECTED.tsv writes it. */
#ifndef FAIRLEAD_TESTS_LIST_CHECK_H
#define FAIRLEAD_TESTS_LIST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list/reader.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ENTRIES_MAX ((size_t)1000000)

static const struct endpoint_rules defaults = {.default_scheme = SCHEME_HTTP};

struct bytes {
	char *data;
	size_t len;
};

/* "line verdict result\n" for each entry; line 0 is the whole file. */
struct got {
	char *text;
	size_t len, size, entries;
};

static inline struct bytes file_read(const char *path)
{
	struct bytes b = {0};
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	b.len = (size_t)ftell(f);
	rewind(f);
	b.data = malloc(b.len + 1);
	assert_non_null(b.data);
	assert_int_equal(fread(b.data, 1, b.len, f), b.len);
	b.data[b.len] = '\0';
	fclose(f);
	return b;
}

static inline const char *verdict_class(enum verdict v)
{
	if (v == VERDICT_ACCEPTED || v == VERDICT_DUPLICATE)
		return verdict_word((int)v);
	if (v == VERDICT_BLANK || v == VERDICT_COMMENT || v == VERDICT_HEADER)
		return "skipped";
	return "rejected";
}

static inline void got_add(struct got *g, unsigned long line, const char *verdict,
			   const char *result)
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

static inline const char *got_text(const struct got *g)
{
	return g->text ? g->text : "";
}

static inline void entry_collect(const struct list_entry *e, void *arg)
{
	static char canonical[ENDPOINT_TEXT_MAX];

	if (e->endpoint)
		endpoint_print(e->endpoint, SHOW_SECRET, canonical, sizeof(canonical));
	got_add(arg, (unsigned long)e->line, verdict_class(e->verdict),
		e->endpoint ? canonical : verdict_word((int)e->verdict));
}

/* How a list is read. */
struct reading {
	enum list_format format;
	const struct endpoint_rules *rules; /* NULL = defaults */
	size_t step;                        /* bytes at a time, 0 = all at once */
};

/* Each piece stands at an address of its own, so that sanitizers see any step outside. */
static inline void list_run(struct bytes b, const struct reading *how, list_entry_cb *cb, void *arg)
{
	static struct list_reader r;
	size_t step = how->step ? how->step : b.len + 1;

	assert_int_equal(
	    list_reader_init(&r, how->rules ? how->rules : &defaults, ENTRIES_MAX, cb, arg), 0);
	list_reader_force(&r, how->format);
	for (size_t at = 0; at < b.len; at += step) {
		size_t n = b.len - at < step ? b.len - at : step;
		char *piece = malloc(n);

		assert_non_null(piece);
		memcpy(piece, b.data + at, n);
		assert_int_equal(list_reader_feed(&r, piece, n), 0);
		free(piece);
	}
	assert_int_equal(list_reader_end(&r), 0);
	list_reader_fini(&r);
}

/* Whole, by single bytes and by pairs. */
static inline void reading_equals(const char *input, size_t len, enum list_format format,
				  const struct endpoint_rules *rules, const char *expected)
{
	for (size_t step = 0; step <= 2; step++) {
		struct reading how = {format, rules, step};
		struct bytes b = {(char *)(uintptr_t)input, len};
		struct got g = {0};

		list_run(b, &how, entry_collect, &g);
		if (strcmp(got_text(&g), expected) != 0)
			fail_msg("in steps of %zu:\n%s-- expected:\n%s-- of:\n%.*s", step,
				 got_text(&g), expected, (int)len, input);
		free(g.text);
	}
}

static inline void list_is(const char *input, const char *expected)
{
	reading_equals(input, strlen(input), LIST_AUTO, NULL, expected);
}

/* A list of one line. */
static inline void line_is(const char *line, const char *expected)
{
	char text[5000];

	snprintf(text, sizeof(text), "1 %s\n", expected);
	list_is(line, text);
}

#endif
