/* reader.h - a proxy list of any kind, from its bytes to its entries.
 *
 * Holds back the first LIST_HEAD_MAX bytes, decides on them what the file is, then passes
 * everything on. A file that is no list is one entry with line 0. Kinds so far: lines. */
#ifndef FAIRLEAD_LIST_READER_H
#define FAIRLEAD_LIST_READER_H

#include "base/buffer.h"
#include "list/lines.h"

struct list_reader {
	struct list_output output;
	struct list_lines lines;
	struct buffer head;
	enum { LIST_UNDECIDED, LIST_REFUSED, LIST_LINES } kind;
};

/* `max_entries`: how many different endpoints are accepted. Returns 0 or -errno;
 * list_reader_fini() is safe then. */
MUST_USE int list_reader_init(struct list_reader *r, const struct endpoint_rules *rules,
			      size_t max_entries, list_entry_cb *cb, void *arg);
void list_reader_fini(struct list_reader *r);

/* Return 0, -ENOMEM or -ENOBUFS (too many entries); after an error only list_reader_fini() is
 * called. */
MUST_USE int list_reader_feed(struct list_reader *r, const char *bytes, size_t len);
MUST_USE int list_reader_end(struct list_reader *r);

#endif
