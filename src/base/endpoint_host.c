/* endpoint_host.c - hosts and ports of proxy lists, strictly (docs/lists.md). */
#include <string.h>

#include "base/endpoint_parts.h"

#define LABEL_MAX ((size_t)63)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool all_digits(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_digit(s.at[i]))
			return false;
	return s.len > 0;
}

static int ipv6_verdict(struct address *ret, struct span s)
{
	struct address a;

	if (memchr(s.at, '%', s.len))
		return VERDICT_IPV6_ZONE;
	if (address_parse(&a, s.at, s.len) || a.family != AF_INET6)
		return VERDICT_IPV6_SYNTAX;
	/* A second spelling of an IPv4 address would be a second entry for the same proxy. */
	if (memcmp(a.bytes, (const uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12) == 0)
		return VERDICT_IPV6_V4MAPPED;
	*ret = a;
	return 0;
}

static int ipv6_host(char *ret, struct span s)
{
	struct address a;
	int r = ipv6_verdict(&a, s);

	if (r == 0 && ret)
		address_print(&a, ret, ENDPOINT_HOST_MAX + 1);
	return r;
}

/* What is wrong with a number of a dotted quad. */
static int octet_verdict(struct span s)
{
	unsigned value = 0;

	if (!all_digits(s))
		return VERDICT_IPV4_FORM;
	if (s.len > 1 && s.at[0] == '0')
		return VERDICT_IPV4_LEADING_ZERO;
	for (size_t i = 0; i < s.len && value <= 255; i++)
		value = value * 10 + (unsigned)(s.at[i] - '0');
	return value > 255 ? VERDICT_IPV4_OCTET_RANGE : 0;
}

/* The next label of `s` from *at on, without its dot. */
static struct span label_next(struct span s, size_t *at)
{
	const char *start = s.at + *at;
	const char *dot = memchr(start, '.', s.len - *at);
	size_t len = dot ? (size_t)(dot - start) : s.len - *at;

	*at += len + 1;
	return (struct span){start, len};
}

static size_t label_count(struct span s)
{
	size_t count = 1;

	for (size_t i = 0; i < s.len; i++)
		count += s.at[i] == '.';
	return count;
}

static int ipv4_verdict(struct span s)
{
	size_t at = 0;
	int r = 0, first = 0;

	if (label_count(s) != 4)
		return VERDICT_IPV4_FORM;
	while (at <= s.len) {
		r = octet_verdict(label_next(s, &at));
		if (r == VERDICT_IPV4_FORM)
			return r;
		if (!first)
			first = r;
	}
	return first;
}

/* Rule 3: whatever the C library may take for a number is one, so that no two readers see
 * different hosts. */
static bool is_numeric_label(struct span label)
{
	if (label.len >= 2 && label.at[0] == '0' && (label.at[1] | 0x20) == 'x') {
		for (size_t i = 2; i < label.len; i++)
			if (!is_hex(label.at[i]))
				return false;
		return true;
	}
	return all_digits(label);
}

static struct span last_label(struct span s)
{
	const char *dot = memrchr(s.at, '.', s.len);

	if (!dot)
		return s;
	return (struct span){dot + 1, s.len - (size_t)(dot + 1 - s.at)};
}

static int charset_verdict(struct span s)
{
	int r = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if ((unsigned char)c >= 0x80)
			r = VERDICT_IDN_HOST;
		else if (!is_alpha(c) && !is_digit(c) && c != '-' && c != '_' && c != '.')
			return VERDICT_HOST_CHARSET;
	}
	return r;
}

static bool is_label(struct span s)
{
	return s.len > 0 && s.len <= LABEL_MAX && s.at[0] != '-' && s.at[s.len - 1] != '-';
}

static bool is_localhost(struct span s)
{
	return s.len == 9 && strncasecmp(s.at, "localhost", 9) == 0;
}

/* `s`: without the trailing dot. */
static int name_verdict(struct span s, bool allow_single_label)
{
	struct span label = last_label(s);
	size_t at = 0;

	if (s.len > ENDPOINT_HOST_MAX)
		return VERDICT_HOSTNAME_LENGTH;
	if (label.len == 0 || !is_alpha(label.at[0]))
		return VERDICT_HOSTNAME_LABEL;
	while (at <= s.len)
		if (!is_label(label_next(s, &at)))
			return VERDICT_HOSTNAME_LABEL;
	if (label.len == s.len && !allow_single_label && !is_localhost(s))
		return VERDICT_SINGLE_LABEL_HOST;
	return 0;
}

static void host_lower(char *ret, struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		ret[i] = (char)(s.at[i] >= 'A' && s.at[i] <= 'Z' ? s.at[i] | 0x20 : s.at[i]);
	ret[s.len] = '\0';
}

static int name_host(char *ret, struct span s, bool allow_single_label)
{
	struct span name = s;
	int r = charset_verdict(s);

	if (r)
		return r;
	if (name.at[name.len - 1] == '.')
		name.len--;
	if (is_numeric_label(last_label(name)))
		r = name.len < s.len ? VERDICT_IPV4_FORM : ipv4_verdict(name);
	else
		r = name_verdict(name, allow_single_label);
	if (r == 0 && ret)
		host_lower(ret, name);
	return r;
}

int host_parse(char ret[ENDPOINT_HOST_MAX + 1], struct span text, bool is_bare,
	       bool allow_single_label)
{
	if (text.len == 0)
		return VERDICT_EMPTY_HOST;
	if (text.at[0] == '[') {
		if (text.at[text.len - 1] != ']')
			return VERDICT_IPV6_SYNTAX;
		return ipv6_host(ret, (struct span){text.at + 1, text.len - 2});
	}
	if (is_bare && memchr(text.at, ':', text.len))
		return ipv6_host(ret, text);
	return name_host(ret, text, allow_single_label);
}

bool host_is_bogon(const char *host)
{
	struct span s = {host, strlen(host)};
	struct address a;

	if (address_parse(&a, host, s.len) == 0)
		return address_is_bogon(&a);
	return is_localhost(last_label(s));
}

int port_parse(uint16_t *ret, struct span text)
{
	unsigned value = 0;

	if (text.len == 0)
		return VERDICT_MISSING_PORT;
	if (!all_digits(text))
		return VERDICT_PORT_SYNTAX;
	if (text.len > 1 && text.at[0] == '0')
		return VERDICT_PORT_LEADING_ZERO;
	for (size_t i = 0; i < text.len && value <= UINT16_MAX; i++)
		value = value * 10 + (unsigned)(text.at[i] - '0');
	if (value == 0 || value > UINT16_MAX)
		return VERDICT_PORT_RANGE;
	if (ret)
		*ret = (uint16_t)value;
	return 0;
}

bool is_separator(char c)
{
	return c == ' ' || c == '\t' || c == '|' || c == ',' || c == ';';
}
