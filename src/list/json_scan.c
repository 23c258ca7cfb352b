/* json_scan.c - cuts JSON into its top-level elements, as the bytes come. */
#include "list/json_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/endpoint.h"
#include "list/text.h"

static const char *const wrappers[] = {"data", "proxies", "list", "results", "result"};

void json_scan_init(struct json_scan *s, uint64_t line, json_scan_cb *cb, void *arg)
{
	*s = (struct json_scan){.cb = cb, .arg = arg, .line = line};
}

void json_scan_fini(struct json_scan *s)
{
	if (s->bytes)
		explicit_bzero(s->bytes, JSON_ELEMENT_MAX);
	free(s->bytes);
	s->bytes = NULL;
}

void json_scan_restart(struct json_scan *s, uint64_t line)
{
	char *bytes = s->bytes;

	json_scan_init(s, line, s->cb, s->arg);
	s->bytes = bytes;
}

bool json_scan_is_closed(const struct json_scan *s)
{
	return !s->is_broken && s->frame_count == 0;
}

static int scan_break(struct json_scan *s)
{
	s->is_broken = true;
	return 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* --- text ------------------------------------------------------------------------------------- */

static int text_add(struct json_scan *s, char c)
{
	if (s->len == JSON_ELEMENT_MAX)
		s->is_too_long = true;
	if (s->is_too_long)
		return 0;
	if (!s->bytes) {
		s->bytes = malloc(JSON_ELEMENT_MAX);
		if (!s->bytes)
			return -ENOMEM;
	}
	s->bytes[s->len++] = c;
	return 0;
}

static void text_start(struct json_scan *s)
{
	s->len = 0;
	s->depth = 0;
	s->is_filled = s->is_too_long = s->is_too_deep = false;
	s->text_line = s->line;
}

static int element_tell(struct json_scan *s, int scheme)
{
	if (s->is_too_long)
		return s->cb(JSON_TOO_LONG, s->text_line, NULL, 0, scheme, s->arg);
	if (s->is_too_deep)
		return s->cb(JSON_TOO_DEEP, s->text_line, NULL, 0, scheme, s->arg);
	return s->cb(JSON_ELEMENT, s->text_line, s->bytes ? s->bytes : "", s->len, scheme, s->arg);
}

static int document_tell(struct json_scan *s)
{
	if (s->is_too_long || s->is_too_deep)
		return s->cb(JSON_DOCUMENT, s->text_line, NULL, 0, -1, s->arg);
	return s->cb(JSON_DOCUMENT, s->text_line, s->bytes, s->len, -1, s->arg);
}

/* --- inside a value --------------------------------------------------------------------------- */

enum token { TOKEN_INSIDE, TOKEN_COMMA, TOKEN_CLOSE, TOKEN_MISMATCH };

static void string_byte(struct json_scan *s, char c)
{
	if (c == '\n' || c == '\r')
		/* RFC 8259 7: never in a string. So a quote too many ends with its line. */
		s->is_string = s->is_escaped = false;
	else if (s->is_escaped)
		s->is_escaped = false;
	else if (c == '\\')
		s->is_escaped = true;
	else if (c == '"')
		s->is_string = false;
}

static void bracket_open(struct json_scan *s, char c)
{
	uint64_t bit = s->depth < JSON_DEPTH_MAX ? UINT64_C(1) << s->depth : 0;

	s->brackets = c == '[' ? s->brackets | bit : s->brackets & ~bit;
	s->is_too_deep = s->is_too_deep || !bit;
	s->depth++;
}

static enum token bracket_close(struct json_scan *s, char c)
{
	if (s->depth == 0)
		return TOKEN_CLOSE;
	s->depth--;
	if (s->depth < JSON_DEPTH_MAX && (s->brackets >> s->depth & 1) != (c == ']'))
		return TOKEN_MISMATCH;
	return TOKEN_INSIDE;
}

static enum token value_byte(struct json_scan *s, char c)
{
	if (s->is_string) {
		string_byte(s, c);
		return TOKEN_INSIDE;
	}
	if (c == '"')
		s->is_string = true;
	else if (c == '[' || c == '{')
		bracket_open(s, c);
	else if (c == ']' || c == '}')
		return bracket_close(s, c);
	else if (c == ',' && s->depth == 0)
		return TOKEN_COMMA;
	return TOKEN_INSIDE;
}

/* --- frames ----------------------------------------------------------------------------------- */

static int frame_push(struct json_scan *s, bool is_array, int scheme)
{
	if (s->frame_count == JSON_FRAMES_MAX)
		return scan_break(s);
	s->frames[s->frame_count++] = (struct json_frame){.is_array = is_array, .scheme = scheme};
	if (is_array) {
		s->has_elements = true;
		text_start(s);
	}
	return 0;
}

static int frame_pop(struct json_scan *s, char c)
{
	struct json_frame *f = &s->frames[s->frame_count - 1];

	if ((c == ']') != f->is_array)
		return scan_break(s);
	s->frame_count--;
	if (s->frame_count > 0)
		s->frames[s->frame_count - 1].member = MEMBER_DONE;
	else if (!s->has_elements)
		return document_tell(s);
	return 0;
}

/* --- arrays ----------------------------------------------------------------------------------- */

static int element_end(struct json_scan *s, const struct json_frame *f)
{
	int r;

	if (!s->is_filled)
		s->text_line = s->line;
	r = element_tell(s, f->scheme);
	text_start(s);
	return r;
}

/* Nothing between two commas, or behind the last, is an element that is no JSON. */
static int array_close(struct json_scan *s, struct json_frame *f, char c)
{
	int r = 0;

	if (c == ']' && (s->is_filled || f->has_comma))
		r = element_end(s, f);
	return r ? r : frame_pop(s, c);
}

static int array_byte(struct json_scan *s, struct json_frame *f, char c)
{
	if (!s->is_filled && is_space(c))
		return 0;
	switch (value_byte(s, c)) {
	case TOKEN_INSIDE:
		if (!s->is_filled)
			s->text_line = s->line;
		s->is_filled = true;
		return text_add(s, c);
	case TOKEN_COMMA:
		f->has_comma = true;
		return element_end(s, f);
	case TOKEN_CLOSE:
		return array_close(s, f, c);
	case TOKEN_MISMATCH:
		break;
	}
	return scan_break(s);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Whether elements are looked for below a member of this name. */
static bool is_wrapper(struct span name, int *scheme)
{
	int named = scheme_from_text(name.at, name.len);

	if (named >= 0 && named != SCHEME_DIRECT) {
		*scheme = named;
		return true;
	}
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++)
		if (span_is(name, wrappers[i]))
			return true;
	return false;
}

static int member_name(struct json_scan *s, struct json_frame *f, char c)
{
	if (s->is_string) {
		string_byte(s, c);
		if (s->is_string && s->name_len < JSON_NAME_MAX)
			s->name[s->name_len++] = c;
		if (!s->is_string)
			f->member = MEMBER_COLON;
		return c == '\n' || c == '\r' ? scan_break(s) : 0;
	}
	if (is_space(c) || c == ',')
		return 0;
	if (c == '}')
		return frame_pop(s, c);
	if (c != '"')
		return scan_break(s);
	s->is_string = true;
	s->name_len = 0;
	return 0;
}

static int member_rest(struct json_scan *s, struct json_frame *f, char c)
{
	switch (value_byte(s, c)) {
	case TOKEN_INSIDE:
		return 0;
	case TOKEN_COMMA:
		f->member = MEMBER_NAME;
		return 0;
	case TOKEN_CLOSE:
		return frame_pop(s, c);
	case TOKEN_MISMATCH:
		break;
	}
	return scan_break(s);
}

static int member_value(struct json_scan *s, struct json_frame *f, char c)
{
	int scheme = f->scheme;

	if (is_space(c))
		return 0;
	f->member = MEMBER_REST;
	s->depth = 0;
	if ((c == '[' || c == '{') && is_wrapper((struct span){s->name, s->name_len}, &scheme))
		return frame_push(s, c == '[', scheme);
	return member_rest(s, f, c);
}

static int member_done(struct json_scan *s, struct json_frame *f, char c)
{
	if (is_space(c))
		return 0;
	if (c == '}')
		return frame_pop(s, c);
	if (c != ',')
		return scan_break(s);
	f->member = MEMBER_NAME;
	return 0;
}

static int object_byte(struct json_scan *s, struct json_frame *f, char c)
{
	int r = s->has_elements ? 0 : text_add(s, c);

	if (r)
		return r;
	switch (f->member) {
	case MEMBER_NAME:
		return member_name(s, f, c);
	case MEMBER_COLON:
		if (c == ':')
			f->member = MEMBER_VALUE;
		return c == ':' || is_space(c) ? 0 : scan_break(s);
	case MEMBER_VALUE:
		return member_value(s, f, c);
	case MEMBER_REST:
		return member_rest(s, f, c);
	case MEMBER_DONE:
		return member_done(s, f, c);
	}
	return 0;
}

/* --- documents -------------------------------------------------------------------------------- */

static bool is_mark_byte(char c)
{
	return c == '\xef' || c == '\xbb' || c == '\xbf';
}

static int document_start(struct json_scan *s, char c)
{
	int r;

	if (is_space(c) || is_mark_byte(c))
		return 0;
	if (c != '[' && c != '{')
		return scan_break(s);
	s->document_count++;
	s->has_elements = false;
	text_start(s);
	r = frame_push(s, c == '[', -1);
	return r || c == '[' ? r : text_add(s, c);
}

static void line_count(struct json_scan *s, char c)
{
	if (c == '\r' || (c == '\n' && !s->after_cr))
		s->line++;
	s->after_cr = c == '\r';
}

int json_scan_feed(struct json_scan *s, const char *bytes, size_t len)
{
	struct json_frame *f;
	int r = 0;

	for (size_t i = 0; i < len && !r && !s->is_broken; i++) {
		f = s->frame_count ? &s->frames[s->frame_count - 1] : NULL;
		if (!f)
			r = document_start(s, bytes[i]);
		else if (f->is_array)
			r = array_byte(s, f, bytes[i]);
		else
			r = object_byte(s, f, bytes[i]);
		line_count(s, bytes[i]);
	}
	return r;
}
