/* detect.c - files that are no list. The order is that of docs/lists.md. */
#include "list/detect.h"

#include <stdbool.h>
#include <string.h>

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
