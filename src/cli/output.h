/* output.h - results as rows: aligned text for people, JSON for programs.
 *
 * Text is aligned over the first OUTPUT_ALIGNED rows; what comes behind them is printed as it
 * comes, so that any number of rows needs bounded memory. JSON is one object a line. Bytes that
 * are not UTF-8 are shown as \xNN, and in text so are control bytes, so that a member's name
 * cannot steer a terminal. */
#ifndef FAIRLEAD_CLI_OUTPUT_H
#define FAIRLEAD_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/result.h"

#define OUTPUT_COLUMNS_MAX 24
#define OUTPUT_ALIGNED 512

enum output_shape {
	OUTPUT_TABLE,  /* a head line, then aligned columns */
	OUTPUT_RECORD, /* a line for each column, "name  value"; a blank line between rows */
	OUTPUT_PLAIN,  /* no head, columns separated by one tab */
	OUTPUT_JSON,
	OUTPUT_CSV, /* RFC 4180 with a head line, but lines end in a line feed */
};

struct column {
	const char *name; /* key in JSON */
};

enum cell_kind {
	CELL_KIND_NONE, /* null, "-" */
	CELL_KIND_TEXT,
	CELL_KIND_NUMBER,
	CELL_KIND_REAL, /* printed so that it reads back as the same double */
	CELL_KIND_BOOL
};

struct cell {
	enum cell_kind kind;
	const char *text;
	size_t len;
	int64_t number;
	double real;
};

#define CELL_NONE ((struct cell){.kind = CELL_KIND_NONE})
#define CELL_TEXT(t) ((struct cell){.kind = CELL_KIND_TEXT, .text = (t), .len = strlen(t)})
#define CELL_BYTES(t, l) ((struct cell){.kind = CELL_KIND_TEXT, .text = (t), .len = (l)})
#define CELL_NUMBER(n) ((struct cell){.kind = CELL_KIND_NUMBER, .number = (n)})
#define CELL_REAL(r) ((struct cell){.kind = CELL_KIND_REAL, .real = (r)})
#define CELL_BOOL(b) ((struct cell){.kind = CELL_KIND_BOOL, .number = (b)})

struct output {
	FILE *stream;
	enum output_shape shape;
	const struct column *columns;
	size_t column_count;
	size_t row_count;
	char **waiting; /* texts of the rows that are not aligned yet, a row after another; owned */
	size_t waiting_rows;
	int widths[OUTPUT_COLUMNS_MAX];
	bool is_right[OUTPUT_COLUMNS_MAX]; /* numbers only */
	int result;                        /* the first failure; nothing is printed behind it */
};

/* `columns` (at most OUTPUT_COLUMNS_MAX) stay with the caller until output_end(). */
void output_begin(struct output *o, FILE *stream, enum output_shape shape,
		  const struct column *columns, size_t count);

/* One row, a cell for each column; copied. */
void output_row(struct output *o, const struct cell *cells);

/* Prints what waits and flushes. 0, -ENOMEM, or the -errno of the first write that failed.
 * output_failed() tells earlier, so that nobody computes a million rows for a closed pipe. */
MUST_USE int output_end(struct output *o);

/* The same for a command, whose failure to write main() tells. */
void output_finish(struct output *o);

/* The first failure of any output of this process, as -errno; 0: none. */
int output_error(void);

bool output_failed(const struct output *o);

/* The length of the UTF-8 sequence at `text` (`len` > 0) that a terminal may get; 0: a control byte, or no UTF-8. */
size_t output_printable(const char *text, size_t len);

/* For those who print without a struct output: what output_error() tells, unless something failed before. */
void output_note_error(int result);

#endif
