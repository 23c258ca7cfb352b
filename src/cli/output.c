/* output.c - results as rows. */
#include "cli/output.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 sequence at `text` (RFC 3629: shortest form, no surrogates, up to
 * U+10FFFF), 0 if it is none. */
static size_t sequence_len(const unsigned char *text, size_t len)
{
	unsigned char c = text[0];
	size_t need = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || need > len)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f))
		return 0;
	if ((c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
		return 0;
	return need;
}

/* C0, DEL, and C1 (U+0080 to U+009F), which some terminals obey as well. */
static bool is_control(const unsigned char *text, size_t sequence)
{
	if (sequence == 1)
		return text[0] < 0x20 || text[0] == 0x7f;
	return sequence == 2 && text[0] == 0xc2 && text[1] < 0xa0;
}

/* A copy with what may not stand there as \xNN; NULL: no memory. */
static char *escape(const char *bytes, size_t len, bool keep_controls)
{
	const unsigned char *text = (const unsigned char *)bytes;
	char *copy = malloc(4 * len + 1), *to = copy;

	for (size_t i = 0; copy && i < len;) {
		size_t sequence = sequence_len(text + i, len - i);
		bool is_plain =
		    sequence && (!is_control(text + i, sequence) || (keep_controls && text[i]));

		if (is_plain) {
			memcpy(to, text + i, sequence);
			to += sequence;
			i += sequence;
		} else {
			to += snprintf(to, 5, "\\x%02x", text[i++]);
		}
	}
	if (copy)
		*to = '\0';
	return copy;
}

static char *cell_text(const struct cell *cell)
{
	char text[48] = "-";

	switch (cell->kind) {
	case CELL_KIND_NONE:
		break;
	case CELL_KIND_TEXT:
		return escape(cell->text, cell->len, false);
	case CELL_KIND_NUMBER:
		snprintf(text, sizeof text, "%lld", (long long)cell->number);
		break;
	case CELL_KIND_REAL:
		snprintf(text, sizeof text, "%.17g", cell->real);
		break;
	case CELL_KIND_BOOL:
		snprintf(text, sizeof text, cell->number ? "yes" : "no");
		break;
	}
	return strdup(text);
}

static json_t *cell_json(const struct cell *cell)
{
	json_t *json;
	char *text;

	switch (cell->kind) {
	case CELL_KIND_NONE:
		break;
	case CELL_KIND_TEXT:
		text = escape(cell->text, cell->len, true);
		json = text ? json_string(text) : NULL;
		free(text);
		return json;
	case CELL_KIND_NUMBER:
		return json_integer(cell->number);
	case CELL_KIND_REAL:
		/* JSON has no infinity, a sorted set may. */
		if (!__builtin_isfinite(cell->real))
			return json_string(cell->real > 0 ? "inf" : "-inf");
		return json_real(cell->real);
	case CELL_KIND_BOOL:
		return json_boolean(cell->number);
	}
	return json_null();
}

/* Of the whole process, for main(). */
static int first_error;

static void fail(struct output *o, int result)
{
	if (!o->result)
		o->result = result;
}

static void check_stream(struct output *o)
{
	if (ferror(o->stream))
		fail(o, errno ? -errno : -EIO);
}

static void print_json(struct output *o, const struct cell *cells)
{
	json_t *object = json_object();

	for (size_t i = 0; i < o->column_count; i++)
		if (json_object_set_new(object, o->columns[i].name, cell_json(&cells[i])))
			fail(o, -ENOMEM);
	/* 17 digits: a score read back is the same double. */
	if (!o->result && json_dumpf(object, o->stream, JSON_COMPACT | JSON_REAL_PRECISION(17)))
		fail(o, errno ? -errno : -EIO);
	json_decref(object);
	if (!o->result)
		fputc('\n', o->stream);
}

static void print_csv_text(struct output *o, size_t column, const char *text)
{
	if (column)
		fputc(',', o->stream);
	if (text[strcspn(text, ",\"\r\n")]) {
		fputc('"', o->stream);
		for (; *text; text++)
			fprintf(o->stream, *text == '"' ? "\"%c" : "%c", *text);
		fputc('"', o->stream);
	} else {
		fputs(text, o->stream);
	}
	if (column + 1 == o->column_count)
		fputc('\n', o->stream);
}

static void print_csv(struct output *o, const struct cell *cells)
{
	for (size_t i = 0; i < o->column_count && !o->result; i++) {
		char *text = cells[i].kind == CELL_KIND_NONE ? strdup("") : cell_text(&cells[i]);

		if (!text)
			fail(o, -ENOMEM);
		else
			print_csv_text(o, i, text);
		free(text);
	}
}

/* Columns on a terminal: bytes that do not continue a UTF-8 sequence. Wide characters are beyond
 * this. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_padded(struct output *o, size_t column, const char *text)
{
	int padding = o->widths[column] - text_width(text);
	bool is_last = column + 1 == o->column_count;

	if (padding < 0)
		padding = 0;
	if (o->is_right[column])
		fprintf(o->stream, "%*s%s%s", padding, "", text, is_last ? "\n" : "  ");
	else if (is_last)
		fprintf(o->stream, "%s\n", text);
	else
		fprintf(o->stream, "%s%*s  ", text, padding, "");
}

static void measure(struct output *o)
{
	for (size_t i = 0; i < o->waiting_rows * o->column_count; i++) {
		int *width = &o->widths[i % o->column_count];
		int own = text_width(o->waiting[i]);

		if (own > *width)
			*width = own;
	}
}

/* Aligns and prints the rows that wait, below the names of the columns. */
static void print_waiting(struct output *o)
{
	measure(o);
	for (size_t i = 0; i < o->column_count; i++)
		print_padded(o, i, o->columns[i].name);
	for (size_t i = 0; i < o->waiting_rows * o->column_count; i++)
		print_padded(o, i % o->column_count, o->waiting[i]);
}

static void free_waiting(struct output *o)
{
	for (size_t i = 0; o->waiting && i < o->waiting_rows * o->column_count; i++)
		free(o->waiting[i]);
	free(o->waiting);
	o->waiting = NULL;
	o->waiting_rows = 0;
}

static void print_record(struct output *o, char **texts)
{
	int widest = 0;

	for (size_t i = 0; i < o->column_count; i++)
		if (text_width(o->columns[i].name) > widest)
			widest = text_width(o->columns[i].name);
	if (o->row_count > 1)
		fputc('\n', o->stream);
	for (size_t i = 0; i < o->column_count; i++)
		fprintf(o->stream, "%-*s  %s\n", widest, o->columns[i].name, texts[i]);
}

static void print_plain(struct output *o, char **texts)
{
	for (size_t i = 0; i < o->column_count; i++)
		fprintf(o->stream, "%s%c", texts[i], i + 1 == o->column_count ? '\n' : '\t');
}

/* A row of a table waits until enough are there to align them; `texts` go over to it then.
 * Returns whether they did. */
static bool keep_waiting(struct output *o, char **texts)
{
	if (!o->waiting)
		return false;
	memcpy(&o->waiting[o->waiting_rows * o->column_count], texts,
	       o->column_count * sizeof *texts);
	if (++o->waiting_rows == OUTPUT_ALIGNED) {
		print_waiting(o);
		free_waiting(o);
	}
	return true;
}

static void print_texts(struct output *o, char **texts)
{
	if (o->shape == OUTPUT_RECORD)
		print_record(o, texts);
	else if (o->shape == OUTPUT_PLAIN)
		print_plain(o, texts);
	else
		for (size_t i = 0; i < o->column_count; i++)
			print_padded(o, i, texts[i]);
}

static void print_row(struct output *o, const struct cell *cells)
{
	char *texts[OUTPUT_COLUMNS_MAX] = {NULL};
	bool is_kept = false;

	for (size_t i = 0; i < o->column_count; i++) {
		texts[i] = cell_text(&cells[i]);
		if (!texts[i])
			fail(o, -ENOMEM);
		if (cells[i].kind == CELL_KIND_TEXT || cells[i].kind == CELL_KIND_BOOL)
			o->is_right[i] = false;
	}
	if (!o->result)
		is_kept = keep_waiting(o, texts);
	if (!o->result && !is_kept)
		print_texts(o, texts);
	for (size_t i = 0; i < o->column_count && !is_kept; i++)
		free(texts[i]);
}

void output_begin(struct output *o, FILE *stream, enum output_shape shape,
		  const struct column *columns, size_t count)
{
	*o = (struct output){.stream = stream, .shape = shape, .columns = columns};
	o->column_count = count < OUTPUT_COLUMNS_MAX ? count : OUTPUT_COLUMNS_MAX;
	for (size_t i = 0; i < o->column_count; i++) {
		o->widths[i] = text_width(columns[i].name);
		o->is_right[i] = true;
	}
	for (size_t i = 0; shape == OUTPUT_CSV && i < o->column_count; i++)
		print_csv_text(o, i, columns[i].name);
	if (shape != OUTPUT_TABLE)
		return;
	o->waiting = calloc(OUTPUT_ALIGNED * o->column_count, sizeof *o->waiting);
	if (!o->waiting)
		fail(o, -ENOMEM);
}

void output_row(struct output *o, const struct cell *cells)
{
	if (o->result)
		return;
	o->row_count++;
	if (o->shape == OUTPUT_JSON)
		print_json(o, cells);
	else if (o->shape == OUTPUT_CSV)
		print_csv(o, cells);
	else
		print_row(o, cells);
	check_stream(o);
}

int output_end(struct output *o)
{
	if (!o->result && o->waiting)
		print_waiting(o);
	free_waiting(o);
	if (!o->result && fflush(o->stream))
		fail(o, -errno);
	check_stream(o);
	return o->result;
}

void output_finish(struct output *o)
{
	output_note_error(output_end(o));
}

int output_error(void)
{
	return first_error;
}

size_t output_printable(const char *text, size_t len)
{
	size_t sequence = sequence_len((const unsigned char *)text, len);

	return sequence && !is_control((const unsigned char *)text, sequence) ? sequence : 0;
}

void output_note_error(int result)
{
	if (result && !first_error)
		first_error = result;
}

bool output_failed(const struct output *o)
{
	return o->result != 0;
}
