/* endpoint_split.c - where the parts of an entry stand: url-form, at-form, colon-form, column-form
 * (docs/lists.md).
 *
 * Each form is one reading of the text. A reading fits when its host and port are grammatical;
 * whether the address may be used is asked later, so that a bogon never turns a host into a user
 * name. */
#include <errno.h>
#include <string.h>

#include "base/endpoint_parts.h"

/* One reading of "host:port". */
struct hostport {
	struct span host, port;
	int host_verdict, verdict; /* 0 = it fits */
	const char *end;           /* behind the port and one '/' */
};

static struct span span_between(const char *from, const char *to)
{
	return (struct span){from, (size_t)(to - from)};
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_all_digits(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_digit(s.at[i]))
			return false;
	return s.len > 0;
}

static bool ends_hostport(char c)
{
	return c == ':' || c == '/' || c == '#' || is_separator(c);
}

static bool is_scheme_mark(char c)
{
	return c == '+' || c == '-' || c == '.';
}

static const char *delimiter_find(const char *at, const char *end)
{
	while (at < end && !ends_hostport(*at))
		at++;
	return at;
}

static const char *word_end(const char *at, const char *end)
{
	while (at < end && *at != ' ' && *at != '\t')
		at++;
	return at;
}

static const char *host_end(const char *at, const char *end)
{
	const char *bracket;

	if (at == end || *at != '[')
		return delimiter_find(at, end);
	bracket = memchr(at, ']', (size_t)(end - at));
	return bracket ? delimiter_find(bracket, end) : end;
}

void parts_init(struct endpoint_parts *ret)
{
	*ret = (struct endpoint_parts){.scheme = -1};
}

/* A host without a port. "10.0.0.0/8" is a range, not a path. */
static int portless_verdict(struct span host, const char *after, const char *end)
{
	struct address a;
	struct span s = host;

	if (end - after < 2 || after[0] != '/' || !is_digit(after[1]))
		return VERDICT_MISSING_PORT;
	if (s.at[0] == '[')
		s = (struct span){host.at + 1, host.len - 2};
	return address_parse(&a, s.at, s.len) ? VERDICT_MISSING_PORT : VERDICT_CIDR;
}

static const char *slash_skip(const char *at, const char *end)
{
	if (at < end && *at == '/' && (at + 1 == end || at[1] == '#' || is_separator(at[1])))
		return at + 1;
	return at;
}

static struct hostport hostport_read(const char *at, const char *end,
				     const struct endpoint_rules *rules)
{
	struct hostport h = {.host = span_between(at, host_end(at, end))};
	const char *after = h.host.at + h.host.len;

	h.host_verdict = host_parse(NULL, h.host, false, rules->allow_single_label);
	h.verdict = h.host_verdict;
	h.end = after;
	if (after == end || *after != ':') {
		if (h.verdict == 0)
			h.verdict = portless_verdict(h.host, after, end);
		return h;
	}
	h.port = span_between(after + 1, delimiter_find(after + 1, end));
	h.end = slash_skip(h.port.at + h.port.len, end);
	if (h.verdict == 0)
		h.verdict = port_parse(NULL, h.port);
	if (h.verdict == 0 && h.end < end && *h.end == '/')
		h.verdict = VERDICT_TRAILING_PATH;
	return h;
}

/* A host followed by a mistyped port is still host-first: a typo must not swap host and
 * credentials (rule 5). */
static bool hostport_is_typo(const struct hostport *h)
{
	return h->verdict != 0 && h->host_verdict == 0 && is_all_digits(h->port);
}

static void parts_take(struct endpoint_parts *p, const struct hostport *h)
{
	p->host = h->host;
	p->port = h->port;
	p->end = h->end;
}

/* Splits at the first colon. */
static void parts_credentials(struct endpoint_parts *p, struct span s, bool is_encoded)
{
	const char *colon = memchr(s.at, ':', s.len), *end = s.at + s.len;

	p->user = span_between(s.at, colon ? colon : end);
	p->password = colon ? span_between(colon + 1, end) : span_between(end, end);
	p->has_credentials = true;
	p->is_encoded = is_encoded;
}

/* userinfo "@" hostport */
static struct hostport at_last(struct span word, const char *at, const struct endpoint_rules *rules)
{
	const char *end = word.at + word.len;
	struct hostport h = hostport_read(at + 1, end, rules);

	if (h.verdict == 0 && h.end < end && *h.end == ':')
		h.verdict = VERDICT_PORT_SYNTAX;
	return h;
}

/* hostport "@" rawcred, only asked when the other reading fails. */
static bool at_first(struct endpoint_parts *p, struct span word, const struct endpoint_rules *rules)
{
	const char *end = word.at + word.len, *at = memchr(word.at, '@', word.len);
	struct hostport h = hostport_read(word.at, at, rules);

	if (h.verdict != 0 || h.port.at + h.port.len != at)
		return false;
	if (!memchr(at + 1, ':', (size_t)(end - at - 1)))
		return false;
	parts_take(p, &h);
	parts_credentials(p, span_between(at + 1, end), false);
	p->end = end;
	return true;
}

static int at_form(struct endpoint_parts *p, struct span word, const struct endpoint_rules *rules)
{
	const char *at = memrchr(word.at, '@', word.len);
	struct hostport h = at_last(word, at, rules);

	if (h.verdict != 0 && !hostport_is_typo(&h) && at_first(p, word, rules))
		return 0;
	parts_take(p, &h);
	parts_credentials(p, span_between(word.at, at), true);
	return h.verdict;
}

/* rawcred ":" hostport: the rightmost colon behind the first one that has a host and a port
 * behind it. `ret` holds the last two fields when nothing fits. */
static bool user_first_find(struct hostport *ret, struct span word,
			    const struct endpoint_rules *rules)
{
	const char *end = word.at + word.len, *first = memchr(word.at, ':', word.len);
	struct hostport h;
	size_t seen = 0;

	*ret = (struct hostport){.verdict = VERDICT_MISSING_PORT};
	for (const char *at = end - 1; at > first; at--) {
		if (*at != ':' || seen++ == 0)
			continue;
		h = hostport_read(at + 1, end, rules);
		if (h.verdict == 0 && h.end < end && *h.end == ':')
			h.verdict = VERDICT_PORT_SYNTAX;
		if (seen == 2 || h.verdict == 0)
			*ret = h;
		if (h.verdict == 0)
			return true;
	}
	return false;
}

static int user_first(struct endpoint_parts *p, struct span word, const struct hostport *h)
{
	if (h->verdict)
		return h->verdict;
	parts_take(p, h);
	parts_credentials(p, span_between(word.at, h->host.at - 1), false);
	return 0;
}

/* What stands behind "host:port": nothing, ":label" or ":user:pass". */
static int host_first(struct endpoint_parts *p, struct span word, const struct hostport *h)
{
	const char *end = word.at + word.len, *rest = h->end + 1, *at = rest;

	if (h->verdict)
		return h->verdict;
	parts_take(p, h);
	if (h->end == end || *h->end != ':')
		return 0;
	if (memchr(rest, ':', (size_t)(end - rest))) {
		parts_credentials(p, span_between(rest, end), false);
		p->end = end;
		return 0;
	}
	while (at < end && !is_separator(*at))
		at++;
	p->label = span_between(rest, at);
	p->end = at;
	return 0;
}

static size_t colon_count(struct span word)
{
	size_t count = 0;

	for (size_t i = 0; i < word.len; i++)
		count += word.at[i] == ':';
	return count;
}

static int colon_form(struct endpoint_parts *p, struct span word,
		      const struct endpoint_rules *rules)
{
	struct hostport h = hostport_read(word.at, word.at + word.len, rules), u;
	bool is_host_first = h.verdict == 0, is_user_first;

	/* Only "host:port:" leaves a choice; "host:port,label" does not. */
	if (rules->colon_order == COLON_HOST_FIRST || colon_count(word) < 3)
		return host_first(p, word, &h);
	if (is_host_first && (h.end == word.at + word.len || *h.end != ':'))
		return host_first(p, word, &h);
	if (is_host_first && !memchr(h.end + 1, ':', (size_t)(word.at + word.len - h.end - 1)))
		return host_first(p, word, &h);
	is_user_first = user_first_find(&u, word, rules);
	if (rules->colon_order == COLON_USER_FIRST)
		return user_first(p, word, &u);
	if (is_host_first && is_user_first)
		return VERDICT_AMBIGUOUS_COLON_LIST;
	if (is_user_first && !hostport_is_typo(&h))
		return user_first(p, word, &u);
	return host_first(p, word, &h);
}

/* The length of "scheme" when "scheme://" stands at the start of `s`, else 0 (RFC 3986 3.1). */
static size_t scheme_len(struct span s)
{
	size_t n = 0;

	while (n < s.len && (((s.at[n] | 0x20) >= 'a' && (s.at[n] | 0x20) <= 'z') ||
			     (n > 0 && (is_digit(s.at[n]) || is_scheme_mark(s.at[n])))))
		n++;
	return n > 0 && s.len - n >= 3 && memcmp(s.at + n, "://", 3) == 0 ? n : 0;
}

static int scheme_read(struct endpoint_parts *p, struct span *word)
{
	size_t n = scheme_len(*word);
	int scheme;

	if (n == 0)
		return 0;
	if (n == 5 && strncasecmp(word->at, "socks", 5) == 0)
		return VERDICT_AMBIGUOUS_SCHEME;
	scheme = scheme_from_text(word->at, n);
	if (scheme == SCHEME_DIRECT)
		return VERDICT_DIRECT;
	if (scheme < 0)
		return VERDICT_UNSUPPORTED_SCHEME;
	p->scheme = scheme;
	*word = (struct span){word->at + n + 3, word->len - n - 3};
	return 0;
}

static bool has_known_scheme(struct span s)
{
	size_t n = scheme_len(s);

	return n > 0 &&
	       (scheme_from_text(s.at, n) >= 0 || (n == 5 && strncasecmp(s.at, "socks", 5) == 0));
}

/* "2001:db8::1:8080": an address as it stands, or in front of its last field. */
static bool is_unbracketed_ipv6(struct span word)
{
	const char *colon = memrchr(word.at, ':', word.len);
	struct address a;

	if (colon_count(word) < 2)
		return false;
	return address_parse(&a, word.at, word.len) == 0 ||
	       (address_parse(&a, word.at, (size_t)(colon - word.at)) == 0 && a.family == AF_INET6);
}

/* "192.0.2.1-192.0.2.9", "192.0.2.1-9", "2001:db8::/32" */
static bool is_range(struct span word)
{
	const char *end = word.at + word.len, *at = word.at;
	struct address a;

	while (at < end && *at != '-' && *at != '/')
		at++;
	return end - at >= 2 && is_digit(at[1]) &&
	       address_parse(&a, word.at, (size_t)(at - word.at)) == 0;
}

/* A better reason than that of the reading that failed. */
static int failure_verdict(const struct endpoint_parts *p, struct span word, int verdict)
{
	const char *at = memrchr(word.at, '@', word.len);

	if (at && has_known_scheme(span_between(at + 1, word.at + word.len)))
		return VERDICT_SCHEME_AFTER_USERINFO;
	if (is_unbracketed_ipv6(word))
		return VERDICT_IPV6_UNBRACKETED;
	if (is_range(word))
		return VERDICT_CIDR;
	/* A word without anything of an endpoint in it. */
	if (p->scheme < 0 && !at && !memchr(word.at, ':', word.len) &&
	    !memchr(word.at, '.', word.len) && word.at[0] != '[')
		return VERDICT_NOT_AN_ENDPOINT;
	return verdict;
}

int parts_split(struct endpoint_parts *ret, const char *text, size_t len,
		const struct endpoint_rules *rules)
{
	struct span word = span_between(text, word_end(text, text + len));
	int at_verdict = 0, r;

	parts_init(ret);
	ret->end = word.at + word.len;
	if (word.len == 0)
		return VERDICT_NOT_AN_ENDPOINT;
	r = scheme_read(ret, &word);
	if (r)
		return r;
	if (has_known_scheme(word))
		return VERDICT_DOUBLE_SCHEME;
	if (word.len == 0)
		return VERDICT_EMPTY_HOST;
	if (memchr(word.at, '@', word.len)) {
		at_verdict = at_form(ret, word, rules);
		if (at_verdict == 0)
			return 0;
		ret->has_credentials = false;
	}
	r = colon_form(ret, word, rules);
	return r ? failure_verdict(ret, word, at_verdict ? at_verdict : r) : 0;
}

/* Skips white space with at most one other separator in it. */
static const char *separator_skip(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (at < end && *at != ' ' && is_separator(*at))
		at++;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

int parts_split_columns(struct endpoint_parts *ret, const char *text, size_t len,
			const struct endpoint_rules *rules)
{
	const char *end = text + len, *at = host_end(text, end);
	struct span host = span_between(text, at), port;
	int r;

	if (at == end || !is_separator(*at) || host.len == 0)
		return -ENOENT;
	if (host.at[0] != '[' && !memchr(host.at, '.', host.len))
		return -ENOENT;
	at = separator_skip(at, end);
	port.at = at;
	while (at < end && is_digit(*at))
		at++;
	port.len = (size_t)(at - port.at);
	if (port.len == 0 || (at < end && *at != '#' && !is_separator(*at)))
		return -ENOENT;
	parts_init(ret);
	ret->host = host;
	ret->port = port;
	ret->end = at;
	r = host_parse(NULL, host, false, rules->allow_single_label);
	return r ? r : port_parse(NULL, port);
}
