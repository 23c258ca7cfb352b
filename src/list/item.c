/* item.c - one item of a list. The endpoint's own grammar is base/endpoint_split.c; here is what
 * stands around it. */
#include "list/item.h"

#include <errno.h>
#include <string.h>

#define CHAIN_WORDS 6

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* A tag, a closing tag, a doctype or a processing instruction. */
static bool is_html(const char *text, size_t len)
{
	if (len < 2 || text[0] != '<')
		return false;
	return ((text[1] | 0x20) >= 'a' && (text[1] | 0x20) <= 'z') || text[1] == '/' ||
	       text[1] == '!' || text[1] == '?';
}

/* The first label: after white space with at most one other separator in it. */
static struct span label_read(const char *at, const char *end)
{
	const char *start;

	while (at < end && is_blank(*at))
		at++;
	if (at < end && is_separator(*at))
		at++;
	while (at < end && is_blank(*at))
		at++;
	start = at;
	while (at < end && !is_separator(*at))
		at++;
	return (struct span){start, (size_t)(at - start)};
}

/* What follows the endpoint: nothing, "#..." or labels. */
static int tail_read(struct endpoint_parts *p, const char *end)
{
	struct span label;

	if (p->end == end || *p->end == '#')
		return 0;
	label = label_read(p->end, end);
	if (label.len > 0 && label.at[0] == '#')
		return 0;
	/* Credentials or a second endpoint: dropping either would be wrong (rule 7). */
	if (memchr(label.at, ':', label.len))
		return VERDICT_EXTRA_FIELD_WITH_COLON;
	if (!p->label.at)
		p->label = label;
	return 0;
}

/* Splits at white space, a comment ends it. Returns how many words there are, at most
 * CHAIN_WORDS. */
static size_t words_split(struct span words[CHAIN_WORDS], const char *at, const char *end)
{
	size_t count = 0;

	while (at < end && count < CHAIN_WORDS) {
		const char *start = at;

		while (at < end && !is_blank(*at))
			at++;
		if (*start == '#')
			break;
		words[count++] = (struct span){start, (size_t)(at - start)};
		while (at < end && is_blank(*at))
			at++;
	}
	return count;
}

static bool is_chains_scheme(struct span s, int *ret)
{
	int scheme = scheme_from_text(s.at, s.len);

	*ret = scheme;
	return scheme == SCHEME_HTTP || scheme == SCHEME_HTTPS || scheme == SCHEME_SOCKS4 ||
	       scheme == SCHEME_SOCKS5;
}

static bool is_digits(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
	return s.len > 0;
}

/* An address without brackets, which would be read as several fields. */
static int chains_host_verdict(struct span host)
{
	struct address a;

	return memchr(host.at, ':', host.len) && address_parse(&a, host.at, host.len) == 0
		   ? VERDICT_IPV6_UNBRACKETED
		   : 0;
}

/* chains-form: "socks5 192.0.2.1 1080 user pass", as in proxychains.conf. -ENOENT: this is not
 * one. */
static int chains_read(struct endpoint_parts *ret, const char *text, const char *end)
{
	struct span words[CHAIN_WORDS];
	size_t count = words_split(words, text, end);
	int scheme;

	if (count < 3 || !is_chains_scheme(words[0], &scheme) || !is_digits(words[2]))
		return -ENOENT;
	if (count != 3 && count != 5)
		return VERDICT_NOT_AN_ENDPOINT;
	parts_init(ret);
	ret->scheme = scheme;
	ret->host = words[1];
	ret->port = words[2];
	ret->end = end;
	if (count == 5) {
		ret->user = words[3];
		ret->password = words[4];
		ret->has_credentials = true;
	}
	return chains_host_verdict(words[1]);
}

static int parts_read(struct endpoint_parts *ret, const char *text, size_t len,
		      const struct endpoint_rules *rules)
{
	struct endpoint_parts columns;
	int r = chains_read(ret, text, text + len), split;

	if (r != -ENOENT)
		return r;
	split = parts_split(ret, text, len, rules);
	if (split == 0)
		return tail_read(ret, text + len);
	r = parts_split_columns(&columns, text, len, rules);
	if (r == -ENOENT)
		return split;
	*ret = columns;
	return r ? r : tail_read(ret, text + len);
}

int list_item_split(struct endpoint_parts *ret, const char *text, size_t len,
		    const struct endpoint_rules *rules)
{
	for (size_t i = 0; i < len; i++)
		if (is_control(text[i]))
			return VERDICT_CONTROL_CHAR;
	if (is_html(text, len))
		return VERDICT_HTML;
	return parts_read(ret, text, len, rules);
}
