/* http_request_case.h - for the tests of request heads: one case as a connection meets it. */
#ifndef FAIRLEAD_TESTS_HTTP_REQUEST_CASE_H
#define FAIRLEAD_TESTS_HTTP_REQUEST_CASE_H

#include "http_split.h"

#include <stdio.h>

static char *head;
static struct http_request request;

static inline int forget_head(void **state)
{
	(void)state;
	free(head);
	head = NULL;
	return 0;
}

/* A head cut short is never taken for a whole one. */
static inline void parse_prefixes(struct text t)
{
	struct http_request prefix;
	size_t len;

	for (len = 0; len < t.len; len++) {
		char *copy = exact_copy(t.at, len);

		assert_int_not_equal(http_parse_request(&prefix, copy, len), 0);
		free(copy);
	}
}

/* Scans and parses as a connection does; the result is in `request`, which points into `head`. */
static inline int read_request(struct text t)
{
	long len = scan_everywhere(t);

	if (len <= 0)
		return len < 0 ? (int)-len : MORE;
	assert_int_equal(len, t.len);
	forget_head(NULL);
	head = exact_copy(t.at, t.len);
	parse_prefixes(t);
	return http_parse_request(&request, head, t.len);
}

static inline void check_rows(const struct bytes_case *rows, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int got = read_request(rows[i].bytes);

		if (got != rows[i].want)
			fail_msg("got %s, want %s: %s", result_word(got), result_word(rows[i].want),
				 rows[i].bytes.at);
	}
}

/* All messages of the table end alike. */
static inline void check_all(const struct text *messages, size_t count, int want)
{
	size_t i;

	for (i = 0; i < count; i++)
		check_rows(&(struct bytes_case){messages[i], want}, 1);
}

/* `line` and a Host field as a message of its own. */
static inline int read_with_line(const char *line)
{
	char message[1024];
	int len = snprintf(message, sizeof(message), "%s\r\nHost: h\r\n\r\n", line);

	return read_request((struct text){message, (size_t)len});
}

/* `fields`, each with its CRLF, behind a POST. */
static inline int read_with_fields(const char *fields)
{
	char message[1024];
	int len = snprintf(message, sizeof(message), "POST http://h/ HTTP/1.1\r\nHost: h\r\n%s\r\n",
			   fields);

	return read_request((struct text){message, (size_t)len});
}

static inline void check_lines(const char *const *lines, size_t count, int want)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int got = read_with_line(lines[i]);

		if (got != want)
			fail_msg("got %s: %s", result_word(got), lines[i]);
	}
}

static inline void check_fields(const char *const *fields, size_t count, int want)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int got = read_with_fields(fields[i]);

		if (got != want)
			fail_msg("got %s: %s", result_word(got), fields[i]);
	}
}

#endif
