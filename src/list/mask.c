/* mask.c - an entry's text for messages, without anything that may be a secret. */
#include "list/mask.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/endpoint_parts.h"

#define WORD_SHOWN ((size_t)64)
#define PORT_SHOWN ((size_t)20)

static struct span span_between(const char *from, const char *to)
{
	return (struct span){from, (size_t)(to - from)};
}

/* Appends `s` with '?' for what is not printable ASCII. */
static void mask_add(char *buffer, size_t size, struct span s)
{
	size_t len = strlen(buffer);

	for (size_t i = 0; i < s.len && len + 1 < size; i++)
		buffer[len++] = (char)(s.at[i] > 0x20 && s.at[i] < 0x7f ? s.at[i] : '?');
	buffer[len] = '\0';
}

static void mask_text(char *buffer, size_t size, const char *text)
{
	mask_add(buffer, size, (struct span){text, strlen(text)});
}

static bool is_number(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
	return s.len > 0 && s.len <= PORT_SHOWN;
}

static bool is_dotted_number(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] != '.' && (s.at[i] < '0' || s.at[i] > '9'))
			return false;
	return s.len > 0;
}

/* Dotted numbers, a host name with a dot, or something in brackets. A user name may look like
 * that too, so it is shown with a numeric port behind it only. */
static bool is_hostlike(struct span s)
{
	bool has_dot = false;

	if (s.len == 0 || s.len > ENDPOINT_HOST_MAX)
		return false;
	if (s.at[0] == '[')
		return s.at[s.len - 1] == ']';
	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		has_dot = has_dot || c == '.';
		if (!(c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') ||
		      ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')))
			return false;
	}
	return has_dot;
}

/* One field up to a colon outside brackets, or a separator. */
static struct span field_next(const char **at, const char *end)
{
	const char *start = *at, *stop = start;

	if (stop < end && *stop == '[')
		while (stop < end && *stop != ']')
			stop++;
	while (stop < end && *stop != ':' && *stop != '/' && *stop != '#' && !is_separator(*stop))
		stop++;
	*at = stop;
	return span_between(start, stop);
}

/* "host:port" at `at`, or false; *ret_end stands behind it. */
static bool pair_at(const char *at, const char *end, const char **ret_end)
{
	struct span host = field_next(&at, end), port;

	if (!is_hostlike(host) || at == end || *at != ':')
		return false;
	at++;
	port = field_next(&at, end);
	*ret_end = at;
	return is_number(port);
}

/* Where the last two colon-separated fields begin; `start` if there are not more. */
static const char *last_pair(const char *start, const char *end)
{
	const char *at = end;
	int colons = 0;

	while (at > start) {
		at--;
		if (*at == ']')
			while (at > start && *at != '[')
				at--;
		if (*at == ':' && ++colons == 2)
			return at + 1;
	}
	return start;
}

/* A word without credentials in any grammar; a host with a mistyped port. */
static void mask_short(struct span word, char *buffer, size_t size)
{
	const char *end = word.at + word.len, *at = word.at;
	struct span first = field_next(&at, end), rest;
	bool shows_port;

	if (at < end && *at == ':') {
		rest = span_between(at + 1, end);
		shows_port = rest.len == 0 || is_number(rest);
		if (first.len <= ENDPOINT_HOST_MAX && (shows_port || is_dotted_number(first)))
			mask_add(buffer, size, first);
		else
			mask_text(buffer, size, "***");
		mask_text(buffer, size, shows_port ? ":" : ":***");
		if (shows_port)
			mask_add(buffer, size, rest);
		return;
	}
	if (first.len > WORD_SHOWN)
		first.len = WORD_SHOWN;
	mask_add(buffer, size, first);
	if (at < end || (size_t)(at - word.at) > WORD_SHOWN)
		mask_text(buffer, size, "...");
}

/* Fields with credentials before or behind the endpoint. */
static void mask_fields(struct span word, char *buffer, size_t size)
{
	const char *end = word.at + word.len, *pair_end, *last = last_pair(word.at, end);

	if (pair_at(word.at, end, &pair_end)) {
		mask_add(buffer, size, span_between(word.at, pair_end));
		mask_text(buffer, size, pair_end == end ? "" : *pair_end == ':' ? ":***" : "...");
	} else if (last > word.at && pair_at(last, end, &pair_end)) {
		mask_text(buffer, size, "***:");
		mask_add(buffer, size, span_between(last, pair_end));
		mask_text(buffer, size, pair_end == end ? "" : "...");
	} else {
		mask_text(buffer, size, "***");
	}
}

static void mask_at(struct span word, const char *at, char *buffer, size_t size)
{
	const char *end = word.at + word.len, *pair_end;

	mask_text(buffer, size, "***@");
	if (pair_at(at + 1, end, &pair_end) && pair_end == end)
		mask_add(buffer, size, span_between(at + 1, end));
	else
		mask_text(buffer, size, "***");
}

static size_t colons_outside_brackets(struct span word)
{
	size_t count = 0;
	bool inside = false;

	for (size_t i = 0; i < word.len; i++) {
		if (word.at[i] == '[')
			inside = true;
		else if (word.at[i] == ']')
			inside = false;
		count += word.at[i] == ':' && !inside;
	}
	return count;
}

/* Nothing but hexadecimal digits, colons and dots. */
static bool is_ipv6_text(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (hex_digit(s.at[i]) < 0 && s.at[i] != ':' && s.at[i] != '.')
			return false;
	return s.len <= WORD_SHOWN;
}

static void mask_word(struct span word, enum verdict verdict, char *buffer, size_t size)
{
	const char *at = memrchr(word.at, '@', word.len);

	/* Which field is the password is the very question. */
	if (verdict == VERDICT_AMBIGUOUS_COLON_LIST)
		mask_text(buffer, size, "***");
	else if (verdict == VERDICT_IPV6_UNBRACKETED && is_ipv6_text(word))
		mask_add(buffer, size, word);
	else if (at)
		mask_at(word, at, buffer, size);
	else if (colons_outside_brackets(word) > 1)
		mask_fields(word, buffer, size);
	else
		mask_short(word, buffer, size);
}

/* A supported scheme is shown, another one too, but nothing behind it: it may be an encoded
 * configuration. */
static bool mask_scheme(struct span *word, char *buffer, size_t size)
{
	const char *mark = memmem(word->at, word->len, "://", 3);
	size_t n;

	if (!mark)
		return true;
	n = (size_t)(mark - word->at);
	if (n == 0 || n >= 16 || memchr(word->at, ':', n) || memchr(word->at, '@', n))
		return true;
	mask_add(buffer, size, (struct span){word->at, n + 3});
	*word = (struct span){mark + 3, word->len - n - 3};
	return scheme_from_text(word->at - n - 3, n) >= 0;
}

void list_mask(const char *text, size_t len, enum verdict verdict, char *buffer, size_t size)
{
	const char *end = text + len, *at = text;
	struct span word;

	buffer[0] = '\0';
	while (at < end && *at != ' ' && *at != '\t')
		at++;
	word = span_between(text, at);
	if (mask_scheme(&word, buffer, size))
		mask_word(word, verdict, buffer, size);
	else
		mask_text(buffer, size, "***");
	if (at < end)
		mask_text(buffer, size, "...");
}
