/* json.h - proxy lists as JSON: documents, or one document a line.
 *
 * The scanner cuts, jansson reads each element on its own, so that memory is bounded and a bad
 * element costs itself alone. A file of documents that does not close is one verdict (line 0,
 * json-syntax): its entries wait in the output until then. In JSON lines each line is such a
 * document for itself. */
#ifndef FAIRLEAD_LIST_JSON_H
#define FAIRLEAD_LIST_JSON_H

#include "list/entry.h"
#include "list/json_scan.h"
#include "list/split.h"

struct list_json {
	struct list_output *output;
	struct json_scan scan;
	bool is_lines, is_dry;
	enum verdict document_verdict; /* what was wrong with one as a whole */
	struct list_split split;       /* JSON lines */
};

/* `output`: the caller's, outlives this. */
void list_json_init(struct list_json *j, struct list_output *output, bool is_lines);
void list_json_fini(struct list_json *j);

/* Return 0, -ENOMEM or -ENOBUFS (too many entries); after an error the reader is used no more. */
MUST_USE int list_json_feed(struct list_json *j, const char *bytes, size_t len);
MUST_USE int list_json_end(struct list_json *j);

#endif
