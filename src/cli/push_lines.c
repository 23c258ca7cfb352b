/* push_lines.c - cuts what comes on standard input into lines of bounded length. */
#include "cli/push_lines.h"

#include <string.h>

#define READ_SIZE ((size_t)65536)

void push_lines_init(struct push_lines *lines, char delimiter, size_t max)
{
	*lines = (struct push_lines){.delimiter = delimiter, .max = max};
	buffer_init(&lines->bytes, max + 1 + READ_SIZE);
}

void push_lines_fini(struct push_lines *lines)
{
	buffer_fini(&lines->bytes);
}

static void drop(struct push_lines *lines, size_t len)
{
	buffer_consume(&lines->bytes, len);
	lines->scanned = 0;
}

char *push_lines_reserve(struct push_lines *lines, size_t *ret_size)
{
	*ret_size = READ_SIZE;
	return buffer_reserve(&lines->bytes, READ_SIZE);
}

void push_lines_commit(struct push_lines *lines, size_t len)
{
	buffer_commit(&lines->bytes, len);
}

/* Gives out `len` bytes, of which `cut` are the delimiter. */
static enum push_line give(struct push_lines *lines, size_t len, size_t cut, const char **ret,
			   size_t *ret_len)
{
	lines->number++;
	lines->taken = len + cut;
	*ret = buffer_at(&lines->bytes);
	*ret_len = len;
	return len > lines->max ? PUSH_LINE_TOO_LONG : PUSH_LINE;
}

/* No delimiter is there. */
static enum push_line wait_for_more(struct push_lines *lines, const char **ret, size_t *ret_len)
{
	size_t len = buffer_len(&lines->bytes);

	lines->scanned = len;
	if (lines->is_skipping) {
		drop(lines, len);
	} else if (len > lines->max) {
		lines->is_skipping = true;
		lines->number++;
		drop(lines, len);
		return PUSH_LINE_TOO_LONG;
	} else if (lines->is_ended && len > 0) {
		return give(lines, len, 0, ret, ret_len);
	}
	return PUSH_LINE_NONE;
}

enum push_line push_lines_next(struct push_lines *lines, const char **ret, size_t *ret_len)
{
	const char *start, *end;

	drop(lines, lines->taken);
	lines->taken = 0;
	for (;;) {
		size_t len = buffer_len(&lines->bytes);

		start = buffer_at(&lines->bytes);
		end = len > lines->scanned
			  ? memchr(start + lines->scanned, lines->delimiter, len - lines->scanned)
			  : NULL;
		if (!end)
			return wait_for_more(lines, ret, ret_len);
		if (!lines->is_skipping)
			return give(lines, (size_t)(end - start), 1, ret, ret_len);
		/* The rest of a line that was told already. */
		lines->is_skipping = false;
		drop(lines, (size_t)(end - start) + 1);
	}
}
