/* lines.c - the plain format of proxy lists: lines, comments, what may surround an item. */
#include "list/lines.h"

#include <string.h>

#include "list/text.h"

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

static int line_read(uint64_t line, const char *text, size_t len, void *arg)
{
	struct list_lines *l = arg;
	struct span s = span_trim(span_drop_mark((struct span){text, len}));

	if (!text)
		return list_output_verdict(l->output, line, VERDICT_LINE_TOO_LONG, "", 0);
	if (s.len == 0)
		return list_output_verdict(l->output, line, VERDICT_BLANK, "", 0);
	if (span_is_comment(s))
		return list_output_verdict(l->output, line, VERDICT_COMMENT, "", 0);
	s = entry_unwrap(s);
	return list_output_item(l->output, line, s.at, s.len);
}

void list_lines_init(struct list_lines *l, struct list_output *output)
{
	l->output = output;
	list_split_init(&l->split, LIST_LINE_MAX, line_read, l);
}

void list_lines_fini(struct list_lines *l)
{
	list_split_fini(&l->split);
}

int list_lines_feed(struct list_lines *l, const char *bytes, size_t len)
{
	return list_split_feed(&l->split, bytes, len);
}

int list_lines_end(struct list_lines *l)
{
	return list_split_end(&l->split);
}
