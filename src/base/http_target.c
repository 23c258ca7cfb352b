/* http_target.c - the four forms of a request target (RFC 9112 3.2), authorities and host names. */
#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "base/http_parts.h"

#define NAME_MAX_BYTES 253
#define LABEL_MAX_BYTES 63
#define ADDRESS_TEXT_BYTES 46

/* Would a resolver take the label at the end of a name for a number? "0x7f" and "127" are how 127.0.0.1 hides. */
static bool label_is_number(struct text label)
{
	if (text_span(label, BYTE_DIGIT) == label.len)
		return true;
	return label.len >= 2 && label.at[0] == '0' && byte_lower(label.at[1]) == 'x' &&
	       text_span(text_skip(label, 2), BYTE_HEX) == label.len - 2;
}

/* A name: labels of 1 to 63 bytes, the last of them no number. */
static bool name_is_valid(struct text name)
{
	struct text label = {name.at, 0};
	size_t i;

	if (name.len == 0 || name.len > NAME_MAX_BYTES || text_span(name, BYTE_HOST) != name.len)
		return false;
	for (i = 0; i < name.len; i++) {
		if (name.at[i] != '.') {
			label.len++;
			continue;
		}
		if (label.len == 0 || label.len > LABEL_MAX_BYTES)
			return false;
		label = (struct text){name.at + i + 1, 0};
	}
	return label.len > 0 && label.len <= LABEL_MAX_BYTES && !label_is_number(label);
}

static int canonical_address(struct text host, char *buffer, size_t size)
{
	struct address address;

	if (size < ADDRESS_TEXT_BYTES || address_parse(&address, host.at, host.len) != 0)
		return -EINVAL;
	address_print(&address, buffer, size);
	return 0;
}

int http_canonical_host(struct text host, char *buffer, size_t size)
{
	struct text name = host;
	size_t i;

	if (host.len == 0)
		return -EINVAL;
	/* "name." and "name" are the same target, and must be the same to every rule. */
	if (host.at[host.len - 1] == '.')
		name.len--;
	if (!name_is_valid(name))
		return canonical_address(host, buffer, size);
	if (name.len >= size)
		return -EINVAL;
	for (i = 0; i < name.len; i++)
		buffer[i] = byte_lower(name.at[i]);
	buffer[name.len] = '\0';
	return 0;
}

/* Without leading zeros, because some read those as octal. */
static bool read_port(struct text digits, uint16_t *ret)
{
	unsigned port = 0;
	size_t i;

	if (digits.len == 0 || digits.len > 5 || text_span(digits, BYTE_DIGIT) != digits.len ||
	    digits.at[0] == '0')
		return false;
	for (i = 0; i < digits.len; i++)
		port = port * 10 + (unsigned)(digits.at[i] - '0');
	if (port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

/* Brackets hold IPv6 and nothing else: no zone, no IPvFuture (RFC 3986 3.2.2). */
static bool read_ip_literal(struct text *rest, struct text *ret_host)
{
	const char *end = memchr(rest->at, ']', rest->len);
	struct address address;
	struct text host;

	if (!end)
		return false;
	host = (struct text){rest->at + 1, (size_t)(end - rest->at) - 1};
	if (address_parse(&address, host.at, host.len) != 0 || address.family != AF_INET6)
		return false;
	*rest = text_skip(*rest, host.len + 2);
	*ret_host = host;
	return true;
}

static bool read_name(struct text *rest, struct text *ret_host)
{
	struct text host = {rest->at, text_span(*rest, BYTE_HOST)};
	char canonical[NAME_MAX_BYTES + 1];

	if (http_canonical_host(host, canonical, sizeof(canonical)) != 0)
		return false;
	*rest = text_skip(*rest, host.len);
	*ret_host = host;
	return true;
}

/* host [ ":" port ]; userinfo, commas and percent-encoding are none of it. `*port` stays as it is without a port. */
static bool read_authority(struct text authority, struct text *ret_host, uint16_t *port)
{
	bool is_literal = authority.len > 0 && authority.at[0] == '[';

	if (!(is_literal ? read_ip_literal : read_name)(&authority, ret_host))
		return false;
	if (authority.len == 0)
		return true;
	return authority.at[0] == ':' && read_port(text_skip(authority, 1), port);
}

bool http_host_is_valid(struct text value)
{
	struct text host;
	uint16_t port;

	return value.len == 0 || read_authority(value, &host, &port);
}

/* RFC 9110 9.3.6: CONNECT names host and port, there is no default. */
static int read_authority_form(struct http_request *r)
{
	r->form = HTTP_AUTHORITY_FORM;
	r->port = 0;
	if (!read_authority(r->target, &r->host, &r->port) || r->port == 0)
		return REASON_REQUEST_SYNTAX;
	return 0;
}

/* Is it scheme "://" ...? Then `ret` is the scheme. A bare "example.com:80" has no "//" and is no URI to us. */
static bool read_scheme(struct text target, struct text *ret)
{
	size_t n = 0;

	while (n < target.len && (byte_is(target.at[n], BYTE_HOST) || target.at[n] == '+') &&
	       target.at[n] != '_')
		n++;
	if (n == 0 || byte_lower(target.at[0]) < 'a' || byte_lower(target.at[0]) > 'z')
		return false;
	if (target.len < n + 3 || memcmp(target.at + n, "://", 3) != 0)
		return false;
	*ret = (struct text){target.at, n};
	return true;
}

static struct text absolute_path(const struct http_request *r, struct text behind_authority)
{
	if (behind_authority.len > 0)
		return behind_authority;
	/* RFC 9112 3.2.4: OPTIONS without path and query is about the server itself. */
	return http_method_is(r->method, "OPTIONS") ? (struct text){"*", 1} : (struct text){"/", 1};
}

static int read_absolute_form(struct http_request *r)
{
	struct text scheme, rest, authority;
	size_t n = 0;

	if (!read_scheme(r->target, &scheme))
		return REASON_REQUEST_SYNTAX;
	if (!text_is(scheme, "http"))
		return REASON_REQUEST_SCHEME;
	rest = text_skip(r->target, scheme.len + 3);
	while (n < rest.len && rest.at[n] != '/' && rest.at[n] != '?')
		n++;
	authority = (struct text){rest.at, n};
	r->form = HTTP_ABSOLUTE_FORM;
	r->port = 80;
	if (!read_authority(authority, &r->host, &r->port))
		return REASON_REQUEST_SYNTAX;
	r->path = absolute_path(r, text_skip(rest, n));
	return 0;
}

int http_read_target(struct http_request *r)
{
	bool is_asterisk = r->target.len == 1 && r->target.at[0] == '*';

	if (http_method_is(r->method, "CONNECT"))
		return read_authority_form(r);
	if (!is_asterisk && r->target.at[0] != '/')
		return read_absolute_form(r);
	if (is_asterisk && !http_method_is(r->method, "OPTIONS"))
		return REASON_REQUEST_SYNTAX;
	r->form = is_asterisk ? HTTP_ASTERISK_FORM : HTTP_ORIGIN_FORM;
	r->path = r->target;
	return 0;
}
