/* lines.h - the plain format of proxy lists: one entry a line (docs/lists.md).
 *
 * Pure and incremental: bytes in as they come, entries out through a list_output. */
#ifndef FAIRLEAD_LIST_LINES_H
#define FAIRLEAD_LIST_LINES_H

#include "list/entry.h"
#include "list/split.h"

#define LIST_LINE_MAX ((size_t)4096)

struct list_lines {
	struct list_output *output;
	struct list_split split;
};

/* `output`: the caller's, outlives this. */
void list_lines_init(struct list_lines *l, struct list_output *output);
void list_lines_fini(struct list_lines *l);

/* Returns 0, -ENOMEM or -ENOBUFS (too many entries); after an error the reader is used no more. */
MUST_USE int list_lines_feed(struct list_lines *l, const char *bytes, size_t len);

/* The input is complete: a last line without its end counts. Returns as list_lines_feed(). */
MUST_USE int list_lines_end(struct list_lines *l);

#endif
