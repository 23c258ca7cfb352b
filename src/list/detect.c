/* detect.c - what kind of list a file is, or that it is none, in the order of docs/lists.md. */
#include "list/detect.h"

#include <stdbool.h>
#include <string.h>

#include "list/csv.h"
#include "list/json_scan.h"
#include "list/text.h"

#define BASE64_MIN ((size_t)40)

static bool starts_with(const char *head, size_t len, const char *bytes, size_t count)
{
	return len >= count && memcmp(head, bytes, count) == 0;
}

static bool is_utf16(const char *head, size_t len)
{
	return starts_with(head, len, "\xff\xfe", 2) || starts_with(head, len, "\xfe\xff", 2);
}

/* gzip (RFC 1952), and zip: a local file, or an empty archive. */
static bool is_packed(const char *head, size_t len)
{
	return starts_with(head, len, "\x1f\x8b", 2) || starts_with(head, len, "PK\x03\x04", 4) ||
	       starts_with(head, len, "PK\x05\x06", 4);
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || is_line_end(c);
}

/* A key without anything behind it but space, at the start of a line. */
static bool has_key(const char *head, size_t len, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i + n <= len; i++) {
		if (i > 0 && !is_line_end(head[i - 1]))
			continue;
		if (memcmp(head + i, key, n) == 0 && (i + n == len || is_space(head[i + n])))
			return true;
	}
	return false;
}

static bool is_base64_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '/' || c == '-' || c == '_';
}

static bool is_base64_word(const char *head, size_t len)
{
	size_t i = 0, start;

	while (i < len && is_space(head[i]))
		i++;
	for (start = i; i < len && is_base64_char(head[i]);)
		i++;
	while (i < len && head[i] == '=')
		i++;
	if (i - start < BASE64_MIN)
		return false;
	while (i < len && is_space(head[i]))
		i++;
	return i == len;
}

enum verdict list_detect(const char *head, size_t len)
{
	if (is_utf16(head, len))
		return VERDICT_ENCODING_UTF16;
	if (is_packed(head, len))
		return VERDICT_BINARY_FILE;
	if (starts_with(head, len, "\xef\xbb\xbf", 3)) {
		head += 3;
		len -= 3;
	}
	if (memmem(head, len, "FindProxyForURL", 15))
		return VERDICT_PAC_FILE;
	if (has_key(head, len, "proxies:") || has_key(head, len, "Proxy:"))
		return VERDICT_CLASH_YAML;
	if (is_base64_word(head, len))
		return VERDICT_BASE64_SUBSCRIPTION;
	return VERDICT_ACCEPTED;
}

/* --- formats ---------------------------------------------------------------------------------- */

static const char *const format_words[LIST_FORMAT_COUNT] = {
    [LIST_AUTO] = "auto", [LIST_LINES] = "lines", [LIST_CSV] = "csv",
    [LIST_JSON] = "json", [LIST_JSONL] = "jsonl",
};

const char *list_format_word(enum list_format format)
{
	return format_words[format];
}

int list_format_from_text(const char *text)
{
	for (int i = 0; i < LIST_FORMAT_COUNT; i++)
		if (strcmp(format_words[i], text) == 0)
			return i;
	return -1;
}

static struct span space_skip(struct span s)
{
	while (s.len > 0 && is_space(s.at[0])) {
		s.at++;
		s.len--;
	}
	return s;
}

static struct span line_first(struct span s)
{
	size_t len = 0;

	while (len < s.len && !is_line_end(s.at[len]))
		len++;
	return (struct span){s.at, len};
}

static int piece_ignore(enum json_piece piece, uint64_t line, const char *text, size_t len,
			int scheme, void *arg)
{
	(void)piece;
	(void)line;
	(void)text;
	(void)len;
	(void)scheme;
	(void)arg;
	return 0;
}

static bool is_whole_document(struct span s)
{
	struct json_scan scan;
	bool is_whole;

	json_scan_init(&scan, 1, piece_ignore, NULL);
	is_whole = json_scan_feed(&scan, s.at, s.len) == 0 && json_scan_is_closed(&scan);
	json_scan_fini(&scan);
	return is_whole;
}

/* The first line is a whole document and more follows; or the first line is none, but the next
 * begins one: inside one document an object never stands behind a finished line like that. */
static bool is_json_lines(struct span s)
{
	struct span first = line_first(s), next;

	next = space_skip((struct span){s.at + first.len, s.len - first.len});
	if (next.len == 0)
		return false;
	if (is_whole_document(first))
		return true;
	first = span_trim(first);
	return next.at[0] == '{' && !memchr("[{,:", first.at[first.len - 1], 4);
}

enum list_format list_format_detect(const char *head, size_t len)
{
	struct span s = space_skip(span_drop_mark((struct span){head, len})), next;

	s = span_drop_mark(s);
	if (s.len == 0)
		return LIST_LINES;
	if (s.at[0] == '{')
		return is_json_lines(s) ? LIST_JSONL : LIST_JSON;
	if (s.at[0] == '[') {
		next = space_skip((struct span){s.at + 1, s.len - 1});
		return next.len == 0 || memchr("{\"[]", next.at[0], 4) ? LIST_JSON : LIST_LINES;
	}
	next = line_first(s);
	return list_csv_is_header(next.at, next.len) ? LIST_CSV : LIST_LINES;
}
