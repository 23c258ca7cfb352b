/* csv.c - proxy lists as tables: a first row of names, then one entry a row. */
#include "list/csv.h"

#include <errno.h>
#include <string.h>

#include "list/fields.h"
#include "list/text.h"

static const char separators[] = {',', ';', '\t'};

/* --- cells ------------------------------------------------------------------------------------ */

enum row_end { ROW_ENDS, ROW_OPEN, ROW_BROKEN };

/* Behind the quote that closes; `at` is inside a quoted cell. */
static enum row_end quote_end(const char *at, const char *end, char separator, const char **ret)
{
	for (; at < end; at++) {
		if (*at != '"')
			continue;
		if (at + 1 == end || at[1] != '"')
			break;
		at++;
	}
	if (at == end)
		return ROW_OPEN;
	at++;
	*ret = at;
	return at == end || *at == separator || *at == '\n' ? ROW_ENDS : ROW_BROKEN;
}

/* Behind the cell that starts at `at`. A quote further inside is a character like any other. */
static enum row_end cell_end(const char *at, const char *end, char separator, const char **ret)
{
	if (at < end && *at == '"')
		return quote_end(at + 1, end, separator, ret);
	while (at < end && *at != separator && *at != '\n')
		at++;
	*ret = at;
	return ROW_ENDS;
}

/* The length of the row at the start of `s`, without its '\n'. `open_at`: where a quoted cell was
 * left open before more was added, 0 = nowhere. */
static enum row_end row_find(struct span s, size_t open_at, char separator, size_t *ret_len)
{
	const char *at = s.at, *end = s.at + s.len;
	enum row_end r;

	if (open_at)
		r = quote_end(s.at + open_at, end, separator, &at);
	else
		r = cell_end(at, end, separator, &at);
	while (r == ROW_ENDS && at < end && *at != '\n')
		r = cell_end(at + 1, end, separator, &at);
	*ret_len = (size_t)(at - s.at);
	return r;
}

/* Takes the quotes off, in place. */
static struct span cell_unquote(char *at, size_t len)
{
	size_t out = 0;

	if (len == 0 || at[0] != '"')
		return (struct span){at, len};
	for (size_t i = 1; i + 1 < len; i++) {
		i += at[i] == '"';
		at[out++] = at[i];
	}
	return (struct span){at, out};
}

/* Splits a whole row in place; returns how many cells there are, of which `cells` has the first
 * `max`. */
static size_t row_split(char *row, size_t len, char separator, struct span *cells, size_t max)
{
	char *at = row, *end = row + len;
	const char *stop;
	size_t count = 0;

	for (;; at++) {
		if (cell_end(at, end, separator, &stop) != ROW_ENDS)
			return 0;
		if (count < max)
			cells[count] = cell_unquote(at, (size_t)(stop - at));
		count++;
		at += stop - at;
		if (at == end)
			return count;
	}
}

/* --- header ----------------------------------------------------------------------------------- */

/* Reads the columns' names. What of host, port and proxy there are tells whether this is a
 * header. */
static size_t header_read(const char *line, size_t len, char separator,
			  int16_t names[CSV_COLUMNS_MAX], bool has[FIELD_COUNT])
{
	struct span cells[CSV_COLUMNS_MAX];
	char row[LIST_LINE_MAX];
	size_t count;

	memset(has, 0, FIELD_COUNT * sizeof(*has));
	if (len > sizeof(row))
		return 0;
	memcpy(row, line, len);
	count = row_split(row, len, separator, cells, CSV_COLUMNS_MAX);
	if (count > CSV_COLUMNS_MAX)
		return 0;
	for (size_t i = 0; i < count; i++) {
		names[i] = (int16_t)field_name_find(span_trim(cells[i]));
		if (names[i] >= 0)
			has[field_name_field(names[i])] = true;
	}
	return count;
}

/* `with_port`: as a file's first line is recognized. Returns the separator or '\0'. */
static char separator_find(const char *line, size_t len, bool with_port, size_t *ret_columns,
			   int16_t names[CSV_COLUMNS_MAX])
{
	bool has[FIELD_COUNT];

	for (size_t i = 0; i < sizeof(separators); i++) {
		*ret_columns = header_read(line, len, separators[i], names, has);
		if (has[FIELD_HOST] && has[FIELD_PORT])
			return separators[i];
		if (!with_port && (has[FIELD_HOST] || has[FIELD_PROXY]))
			return separators[i];
	}
	return '\0';
}

bool list_csv_is_header(const char *line, size_t len)
{
	int16_t names[CSV_COLUMNS_MAX];
	size_t columns;

	return separator_find(line, len, true, &columns, names) != '\0';
}

/* Without a text: which cell holds a password is not known. */
static int columns_verdict(struct list_csv *c, uint64_t line)
{
	return list_output_verdict(c->output, line, VERDICT_CSV_COLUMNS, "", 0);
}

static int header_take(struct list_csv *c, uint64_t line, struct span s)
{
	c->separator = separator_find(s.at, s.len, true, &c->columns, c->names);
	if (!c->separator)
		c->separator = separator_find(s.at, s.len, false, &c->columns, c->names);
	if (c->separator)
		return list_output_verdict(c->output, line, VERDICT_HEADER, "", 0);
	c->is_refused = true;
	return columns_verdict(c, 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* "socks4,socks5", "HTTP / HTTPS": one cell with several. */
static void schemes_take(struct fields *f, int name, struct span cell)
{
	struct span schemes[FIELD_SCHEMES_MAX + 1];
	const char *at = cell.at, *end = cell.at + cell.len, *start;
	size_t count = 0;

	while (at < end && count <= FIELD_SCHEMES_MAX) {
		for (start = at; at < end && *at != '/' && *at != '+' && !is_separator(*at);)
			at++;
		if (at > start)
			schemes[count++] = (struct span){start, (size_t)(at - start)};
		at += at < end;
	}
	fields_set_schemes(f, name, schemes, count);
}

static void cell_take(struct fields *f, int name, struct span cell)
{
	enum field field = field_name_field(name);
	struct span trimmed = span_trim(cell);

	if (field == FIELD_USER || field == FIELD_PASSWORD)
		fields_set(f, name, cell);
	else if (field != FIELD_SCHEME)
		fields_set(f, name, trimmed);
	else if (field_name_is_plural(name))
		schemes_take(f, name, trimmed);
	else if (trimmed.len > 0)
		fields_set_schemes(f, name, &trimmed, 1);
}

static int row_read(struct list_csv *c, char *row, size_t len)
{
	struct span cells[CSV_COLUMNS_MAX];
	struct fields f;

	if (row_split(row, len, c->separator, cells, c->columns) != c->columns)
		return columns_verdict(c, c->line);
	fields_init(&f);
	for (size_t i = 0; i < c->columns; i++)
		if (c->names[i] >= 0)
			cell_take(&f, c->names[i], cells[i]);
	return fields_report(&f, c->output, c->line);
}

/* Blank lines and comments stand between rows only. A ';' may be an empty first cell. */
static int line_skip(struct list_csv *c, struct span s, bool *ret_is_skipped)
{
	struct span text = span_trim(s);
	bool is_comment = span_is_comment(text) && text.at[0] != c->separator, is_blank;

	/* A line of tabs may be a row of empty cells. */
	is_blank = text.len == 0 && (c->separator != '\t' || s.len + 1 < c->columns);
	*ret_is_skipped = is_comment || is_blank;
	if (!*ret_is_skipped)
		return 0;
	return list_output_verdict(c->output, c->line, is_comment ? VERDICT_COMMENT : VERDICT_BLANK,
				   "", 0);
}

/* The first `lines` lines, `len` bytes, are done. */
static void rows_drop(struct list_csv *c, size_t len, size_t lines)
{
	c->line += lines;
	c->len -= len;
	c->open_at = 0;
	memmove(c->bytes, c->bytes + len, c->len);
}

static size_t line_count(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += text[i] == '\n';
	return count;
}

/* One row, or one line that is none, at the start of what is held. `is_last`: nothing follows that
 * could close a quote. Sets *ret_is_open when more lines are needed. */
static int row_next(struct list_csv *c, bool is_last, bool *ret_is_open)
{
	const char *stop = memchr(c->bytes, '\n', c->len);
	size_t line_len = (size_t)(stop - c->bytes), len = line_len, lines;
	bool is_skipped;
	int r = line_skip(c, (struct span){c->bytes, line_len}, &is_skipped);

	if (!r && !is_skipped) {
		enum row_end found =
		    row_find((struct span){c->bytes, c->len}, c->open_at, c->separator, &len);

		*ret_is_open = found == ROW_OPEN && !is_last;
		if (*ret_is_open) {
			c->open_at = c->len;
			return 0;
		}
		if (found != ROW_ENDS)
			len = line_len;
		lines = line_count(c->bytes, len);
		r = found == ROW_ENDS ? row_read(c, c->bytes, len) : columns_verdict(c, c->line);
		c->line += lines;
	}
	rows_drop(c, len + 1, 1);
	return r;
}

/* All rows that are complete. */
static int rows_read(struct list_csv *c, bool is_last)
{
	bool is_open = false;
	int r = 0;

	while (c->len > 0 && !r && !is_open)
		r = row_next(c, is_last, &is_open);
	return r;
}

/* A whole line joins the row that is open. When there is no room for it, no quote that is open
 * closes in time: the lines are rows of their own. */
static int line_add(struct list_csv *c, uint64_t line, struct span s)
{
	int r = 0;

	while (c->len > 0 && s.len + 1 > sizeof(c->bytes) - c->len && !r) {
		bool is_open = false;

		r = row_next(c, true, &is_open);
		if (!r)
			r = rows_read(c, false);
	}
	if (r)
		return r;
	if (c->len == 0)
		c->line = line;
	memcpy(c->bytes + c->len, s.at, s.len);
	c->bytes[c->len + s.len] = '\n';
	c->len += s.len + 1;
	return rows_read(c, false);
}

static int csv_line(uint64_t line, const char *text, size_t len, void *arg)
{
	struct list_csv *c = arg;
	struct span s = span_drop_mark((struct span){text, len});
	int r;

	if (c->is_refused)
		return 0;
	if (!text) {
		r = rows_read(c, true);
		return r ? r : list_output_verdict(c->output, line, VERDICT_LINE_TOO_LONG, "", 0);
	}
	if (c->separator)
		return line_add(c, line, s);
	if (span_trim(s).len == 0)
		return list_output_verdict(c->output, line, VERDICT_BLANK, "", 0);
	return header_take(c, line, s);
}

void list_csv_init(struct list_csv *c, struct list_output *output)
{
	c->output = output;
	c->separator = '\0';
	c->is_refused = false;
	c->columns = c->len = c->open_at = 0;
	list_split_init(&c->split, LIST_LINE_MAX, csv_line, c);
}

void list_csv_fini(struct list_csv *c)
{
	list_split_fini(&c->split);
	explicit_bzero(c->bytes, sizeof(c->bytes));
}

int list_csv_feed(struct list_csv *c, const char *bytes, size_t len)
{
	return list_split_feed(&c->split, bytes, len);
}

int list_csv_end(struct list_csv *c)
{
	int r = list_split_end(&c->split);

	return r ? r : rows_read(c, true);
}
