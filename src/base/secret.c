/* secret.c - credentials inside of texts that people type. */
#include "base/secret.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_number(const char *text, size_t len)
{
	return len > 0 && strspn(text, "0123456789") >= len;
}

/* A host name or address in dotted form, as opposed to the first group of an IPv6 address. */
static bool may_be_host(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdefABCDEF:") < len;
}

/* The last '@' ends the credentials: a password that holds '/' or '@' as it stands is hidden
 * whole. A '/' before any ':' shows that they ended earlier, and that this '@' is part of a path.
 * */
static bool find_before_at(const char *text, bool is_url, size_t *ret_len)
{
	const char *at = strrchr(text, '@');
	size_t head = strcspn(text, ":/@");

	if (!at || at == text || text[head] == '/')
		return false;
	if (!is_url && text[head] != ':')
		return false;
	*ret_len = (size_t)(at - text);
	return true;
}

static bool find_in_colons(const char *text, size_t *ret_start, size_t *ret_len)
{
	const char *first = strchr(text, ':');
	const char *second = first ? strchr(first + 1, ':') : NULL;
	const char *last = strrchr(text, ':');
	const char *host = last;

	if (!second || !strchr(second + 1, ':') || strpbrk(text, "[/"))
		return false;
	if (is_number(first + 1, (size_t)(second - first - 1)) &&
	    may_be_host(text, (size_t)(first - text))) {
		*ret_start = (size_t)(second + 1 - text);
		*ret_len = strlen(second + 1);
		return true;
	}
	while (host[-1] != ':')
		host--;
	if (!is_number(last + 1, strlen(last + 1)) || !may_be_host(host, (size_t)(last - host)))
		return false;
	*ret_start = 0;
	*ret_len = (size_t)(host - 1 - text);
	return true;
}

bool secret_find(const char *text, size_t *ret_start, size_t *ret_len)
{
	const char *scheme_end = strstr(text, "://");
	const char *rest = scheme_end ? scheme_end + 3 : text;
	size_t start = 0, len = 0;

	if (!find_before_at(rest, scheme_end != NULL, &len) && !find_in_colons(rest, &start, &len))
		return false;
	*ret_start = (size_t)(rest - text) + start;
	*ret_len = len;
	return true;
}

/* Appends `len` bytes, escaped; returns false when the buffer is full. */
static bool add_escaped(const char *text, size_t len, char *buffer, size_t size, size_t *used)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		char shown[5];
		size_t shown_len;

		snprintf(shown, sizeof shown, c < 0x20 || c >= 0x7f ? "\\x%02x" : "%c", c);
		shown_len = strlen(shown);
		if (*used + shown_len + sizeof "..." > size) {
			memcpy(buffer + *used, "...", sizeof "...");
			return false;
		}
		memcpy(buffer + *used, shown, shown_len + 1);
		*used += shown_len;
	}
	return true;
}

void secret_print(const char *text, char *buffer, size_t size)
{
	size_t start = strlen(text), len = 0, used = 0;
	bool found = secret_find(text, &start, &len);

	buffer[0] = '\0';
	if (!add_escaped(text, start, buffer, size, &used))
		return;
	if (found && !add_escaped("***", 3, buffer, size, &used))
		return;
	add_escaped(text + start + len, strlen(text + start + len), buffer, size, &used);
}
