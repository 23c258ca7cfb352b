/* http_split.h - for the tests of HTTP: one message, cut in every way, must always mean the same. */
#ifndef FAIRLEAD_TESTS_HTTP_SPLIT_H
#define FAIRLEAD_TESTS_HTTP_SPLIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/http.h"

/* A literal with its length: NUL bytes are part of some cases. */
#define BYTES(literal)                                                                             \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* cmocka's own assert_string_equal() wants a NUL at the end. */
#define assert_text(t, word)                                                                       \
	do {                                                                                       \
		assert_int_equal((t).len, strlen(word));                                           \
		assert_memory_equal((t).at, (word), strlen(word));                                 \
	} while (0)

/* What the helpers give for a head that has no end yet; no reason and no -errno. */
#define MORE (-9999)

struct bytes_case {
	struct text bytes;
	int want; /* 0, a reason or MORE */
};

/* `len` bytes in a block of exactly that size, so that the address sanitizer sees each byte read behind them. */
static inline char *exact_copy(const char *bytes, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return copy;
}

static inline long scan_once(struct http_scan *scan, struct text t, size_t len)
{
	char *copy = exact_copy(t.at, len);
	long result = http_scan_head(scan, copy, len);

	free(copy);
	return result;
}

/* Scans `first` bytes, then one more at a time (step 1) or all the rest (step = t.len). */
static inline long scan_in_steps(struct text t, size_t first, size_t step)
{
	struct http_scan scan = {0};
	size_t len = first < t.len ? first : t.len;
	long result = scan_once(&scan, t, len);

	while (result == 0 && len < t.len) {
		len = t.len - len > step ? len + step : t.len;
		result = scan_once(&scan, t, len);
	}
	return result;
}

/* The verdict on `t`: whole, byte by byte and in two pieces cut at every place; they must agree. */
static inline long scan_everywhere(struct text t)
{
	long whole = scan_in_steps(t, t.len, t.len);
	size_t cut;

	if (scan_in_steps(t, 0, 1) != whole)
		fail_msg("byte by byte it is not %ld: %s", whole, t.at);
	for (cut = 0; cut <= t.len; cut++) {
		if (scan_in_steps(t, cut, t.len) != whole)
			fail_msg("cut at %zu it is not %ld: %s", cut, whole, t.at);
	}
	return whole;
}

#endif
