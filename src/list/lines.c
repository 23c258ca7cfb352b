/* lines.c - the plain format of proxy lists: lines, comments, what may surround an item. */
#include "list/lines.h"

#include <string.h>

#include "base/endpoint_parts.h"

void list_lines_init(struct list_lines *l, struct list_output *output)
{
	l->output = output;
	l->line = 0;
	l->len = 0;
	l->is_open = l->is_too_long = l->after_cr = false;
}

static struct span span_trim(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool is_comment(struct span s)
{
	return s.at[0] == '#' || s.at[0] == ';' || (s.len >= 2 && memcmp(s.at, "//", 2) == 0);
}

static bool is_quoted(struct span s)
{
	return s.len >= 2 && (s.at[0] == '"' || s.at[0] == '\'') && s.at[s.len - 1] == s.at[0];
}

/* A YAML item's mark, the comma and the quotes of a pasted JSON fragment. */
static struct span entry_unwrap(struct span s)
{
	if (s.len >= 2 && memcmp(s.at, "- ", 2) == 0)
		s = span_trim((struct span){s.at + 2, s.len - 2});
	if (s.len > 0 && s.at[s.len - 1] == ',')
		s = span_trim((struct span){s.at, s.len - 1});
	if (is_quoted(s))
		s = (struct span){s.at + 1, s.len - 2};
	return s;
}

/* The byte order mark of UTF-8, also where files were joined. */
static struct span mark_drop(struct span s)
{
	if (s.len >= 3 && memcmp(s.at, "\xef\xbb\xbf", 3) == 0)
		return (struct span){s.at + 3, s.len - 3};
	return s;
}

static int line_read(struct list_lines *l)
{
	struct span s = span_trim(mark_drop((struct span){l->bytes, l->len}));

	if (l->is_too_long) {
		list_output_verdict(l->output, l->line, VERDICT_LINE_TOO_LONG, "", 0);
		return 0;
	}
	if (s.len == 0 || is_comment(s)) {
		list_output_verdict(l->output, l->line, s.len ? VERDICT_COMMENT : VERDICT_BLANK, "",
				    0);
		return 0;
	}
	s = entry_unwrap(s);
	return list_output_item(l->output, l->line, s.at, s.len);
}

static int line_end(struct list_lines *l)
{
	int r;

	l->line++;
	r = line_read(l);
	l->len = 0;
	l->is_open = l->is_too_long = false;
	return r;
}

static void line_add(struct list_lines *l, const char *bytes, size_t len)
{
	l->is_open = true;
	if (l->is_too_long || len > LIST_LINE_MAX - l->len) {
		l->is_too_long = true;
		l->len = 0;
		return;
	}
	memcpy(l->bytes + l->len, bytes, len);
	l->len += len;
}

int list_lines_feed(struct list_lines *l, const char *bytes, size_t len)
{
	const char *at = bytes, *end = bytes + len, *start;
	int r;

	while (at < end) {
		if (l->after_cr && *at == '\n') {
			l->after_cr = false;
			at++;
			continue;
		}
		l->after_cr = false;
		for (start = at; at < end && *at != '\n' && *at != '\r';)
			at++;
		if (at > start)
			line_add(l, start, (size_t)(at - start));
		if (at == end)
			break;
		l->after_cr = *at++ == '\r';
		r = line_end(l);
		if (r)
			return r;
	}
	return 0;
}

int list_lines_end(struct list_lines *l)
{
	return l->is_open ? line_end(l) : 0;
}
