/* reader.h - a proxy list of any kind, from its bytes to its entries.
 *
 * Holds back the first LIST_HEAD_MAX bytes, decides on them what the file is, then passes
 * everything on. A verdict on the file as a whole is one entry with line 0. What was accepted
 * stays in the reader, compactly, until list_reader_fini(). */
#ifndef FAIRLEAD_LIST_READER_H
#define FAIRLEAD_LIST_READER_H

#include "base/buffer.h"
#include "list/csv.h"
#include "list/detect.h"
#include "list/json.h"
#include "list/lines.h"

struct list_reader {
	struct list_output output;
	struct buffer head;
	enum list_format format; /* LIST_AUTO: not decided yet, or refused */
	bool is_decided;
	union {
		struct list_lines lines;
		struct list_csv csv;
		struct list_json json;
	} as;
};

/* `max_entries`: how many different endpoints are accepted. The format is found by content.
 * Returns 0 or -errno; list_reader_fini() is safe then. */
MUST_USE int list_reader_init(struct list_reader *r, const struct endpoint_rules *rules,
			      size_t max_entries, list_entry_cb *cb, void *arg);
void list_reader_fini(struct list_reader *r);

/* Before anything is fed: reads the file as `format`, whatever it looks like. What is no list at
 * all (UTF-16, gzip, a PAC file ...) is refused nevertheless. */
void list_reader_force(struct list_reader *r, enum list_format format);

/* Return 0, -ENOMEM or -ENOBUFS (too many entries); after an error only list_reader_fini() is
 * called. */
MUST_USE int list_reader_feed(struct list_reader *r, const char *bytes, size_t len);
MUST_USE int list_reader_end(struct list_reader *r);

/* After list_reader_end(): what was accepted, in order. *at is 0 first. False at the end. `ret`
 * points into the reader; its text is the canonical form with the credentials. */
bool list_reader_next(const struct list_reader *r, size_t *at, struct dedupe_item *ret);

#endif
