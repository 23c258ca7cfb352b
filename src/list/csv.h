/* csv.h - proxy lists as tables: a first row of names, then one entry a row (RFC 4180).
 *
 * The separator is a comma, a semicolon or a tab. A quoted cell may hold separators, doubled
 * quotes and line ends. A row that is no row (too many or too few columns, a quote that does not
 * close within LIST_LINE_MAX bytes) costs its first line alone. */
#ifndef FAIRLEAD_LIST_CSV_H
#define FAIRLEAD_LIST_CSV_H

#include "list/entry.h"
#include "list/lines.h"

#define CSV_COLUMNS_MAX 256

struct list_csv {
	struct list_output *output;
	struct list_split split;
	char separator; /* '\0': the header is still to come */
	bool is_refused;
	size_t columns;
	int16_t names[CSV_COLUMNS_MAX]; /* field_name_find() of each column */
	/* the row that is open: its lines so far, each with '\n' behind it */
	char bytes[LIST_LINE_MAX + 1];
	size_t len, open_at; /* behind an open quote, or 0 */
	uint64_t line;       /* of the first byte */
};

/* Whether `line` names a host and a port in columns. */
bool list_csv_is_header(const char *line, size_t len);

void list_csv_init(struct list_csv *c, struct list_output *output);
void list_csv_fini(struct list_csv *c);

/* Return as list_lines_feed(). A first line that names neither a host and a port nor a proxy
 * refuses the file (csv-columns, line 0). */
MUST_USE int list_csv_feed(struct list_csv *c, const char *bytes, size_t len);
MUST_USE int list_csv_end(struct list_csv *c);

#endif
