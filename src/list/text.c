/* text.c - what the readers of all formats ask of a piece of text. */
#include "list/text.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct span span_trim(struct span s)
{
	while (s.len > 0 && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

struct span span_drop_mark(struct span s)
{
	if (s.len >= 3 && memcmp(s.at, "\xef\xbb\xbf", 3) == 0)
		return (struct span){s.at + 3, s.len - 3};
	return s;
}

bool span_is_comment(struct span s)
{
	if (s.len == 0)
		return false;
	return s.at[0] == '#' || s.at[0] == ';' || (s.len >= 2 && memcmp(s.at, "//", 2) == 0);
}

bool span_is(struct span s, const char *word)
{
	return strlen(word) == s.len && strncasecmp(word, s.at, s.len) == 0;
}
