/* split.h - bytes into lines, as they come.
 *
 * Lines end with LF, CR or CRLF. A line that lies whole in what is fed is passed on where it
 * stands; only what is cut by a feed's end is kept, at most `max` bytes. Of a line that is too
 * long nothing is kept. */
#ifndef FAIRLEAD_LIST_SPLIT_H
#define FAIRLEAD_LIST_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

/* One line without its end; `text` is NULL when it was too long. What it returns other than 0
 * ends the feed. */
typedef int list_line_cb(uint64_t line, const char *text, size_t len, void *arg);

struct list_split {
	list_line_cb *cb;
	void *arg;
	uint64_t line; /* finished lines */
	char *bytes;   /* of the open line; NULL until one is cut */
	size_t len, max;
	bool is_open, is_too_long, after_cr;
};

void list_split_init(struct list_split *s, size_t max, list_line_cb *cb, void *arg);
void list_split_fini(struct list_split *s);

/* Returns 0, -ENOMEM, or what the callback returned. */
MUST_USE int list_split_feed(struct list_split *s, const char *bytes, size_t len);

/* The input is complete: a last line without its end counts. */
MUST_USE int list_split_end(struct list_split *s);

#endif
