/* split.c - bytes into lines, as they come. */
#include "list/split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void list_split_init(struct list_split *s, size_t max, list_line_cb *cb, void *arg)
{
	*s = (struct list_split){.cb = cb, .arg = arg, .max = max};
}

void list_split_fini(struct list_split *s)
{
	if (s->bytes)
		explicit_bzero(s->bytes, s->max);
	free(s->bytes);
	s->bytes = NULL;
	s->len = 0;
}

static int line_end(struct list_split *s, const char *text, size_t len)
{
	bool is_too_long = s->is_too_long || len > s->max;

	s->line++;
	s->len = 0;
	s->is_open = s->is_too_long = false;
	return s->cb(s->line, is_too_long ? NULL : text, is_too_long ? 0 : len, s->arg);
}

/* Keeps the part of a line that goes on in the next feed, or ended in this one. */
static int line_keep(struct list_split *s, const char *bytes, size_t len)
{
	s->is_open = s->is_open || len > 0;
	if (s->is_too_long || len > s->max - s->len) {
		s->is_too_long = true;
		s->len = 0;
		return 0;
	}
	if (!s->bytes && len > 0) {
		s->bytes = malloc(s->max);
		if (!s->bytes)
			return -ENOMEM;
	}
	if (len > 0)
		memcpy(s->bytes + s->len, bytes, len);
	s->len += len;
	return 0;
}

static int line_finish(struct list_split *s, const char *bytes, size_t len)
{
	int r;

	if (!s->is_open)
		return line_end(s, bytes, len);
	r = line_keep(s, bytes, len);
	return r ? r : line_end(s, s->bytes, s->len);
}

static const char *line_end_find(const char *at, const char *end)
{
	while (at < end && *at != '\n' && *at != '\r')
		at++;
	return at;
}

int list_split_feed(struct list_split *s, const char *bytes, size_t len)
{
	const char *at = bytes, *end = bytes + len, *stop;
	int r = 0;

	while (at < end && !r) {
		if (s->after_cr && *at == '\n') {
			s->after_cr = false;
			at++;
			continue;
		}
		s->after_cr = false;
		stop = line_end_find(at, end);
		if (stop == end)
			return line_keep(s, at, (size_t)(stop - at));
		s->after_cr = *stop == '\r';
		r = line_finish(s, at, (size_t)(stop - at));
		at = stop + 1;
	}
	return r;
}

int list_split_end(struct list_split *s)
{
	return s->is_open ? line_end(s, s->bytes, s->len) : 0;
}
