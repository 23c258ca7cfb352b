/* lines.h - the plain format of proxy lists: one entry a line (docs/lists.md).
 *
 * Pure and incremental: bytes in as they come, entries out through a list_output. Of a line that
 * is too long nothing is kept. */
#ifndef FAIRLEAD_LIST_LINES_H
#define FAIRLEAD_LIST_LINES_H

#include <stdbool.h>

#include "list/entry.h"

#define LIST_LINE_MAX ((size_t)4096)

struct list_lines {
	struct list_output *output;
	uint64_t line; /* finished lines */
	size_t len;
	bool is_open, is_too_long, after_cr;
	char bytes[LIST_LINE_MAX];
};

/* `output`: the caller's, outlives this. */
void list_lines_init(struct list_lines *l, struct list_output *output);

/* Returns 0, -ENOMEM or -ENOBUFS (too many entries); after an error the reader is used no more. */
MUST_USE int list_lines_feed(struct list_lines *l, const char *bytes, size_t len);

/* The input is complete: a last line without its end counts. Returns as list_lines_feed(). */
MUST_USE int list_lines_end(struct list_lines *l);

#endif
