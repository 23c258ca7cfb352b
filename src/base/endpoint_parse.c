/* endpoint_parse.c - from the parts of an entry to an endpoint, and what credentials may hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/endpoint_parts.h"

#define SOCKS5_FIELD_MAX ((size_t)255) /* RFC 1929: one length byte */
#define ID_DIGEST_LEN ((size_t)16)

static bool is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* The next byte of user or password. A lone '%' is literal. */
static char byte_next(struct span s, bool is_encoded, size_t *at)
{
	int high, low;

	if (is_encoded && s.at[*at] == '%' && s.len - *at >= 3) {
		high = hex_digit(s.at[*at + 1]);
		low = hex_digit(s.at[*at + 2]);
		if (high >= 0 && low >= 0) {
			*at += 3;
			return (char)(high << 4 | low);
		}
	}
	return s.at[(*at)++];
}

/* Writes canonical percent-encoding at `*out`; adds the number of decoded bytes to *ret_len. */
static int field_encode(char **out, struct span s, bool is_encoded, bool allow_colon,
			size_t *ret_len)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t at = 0; at < s.len; ++*ret_len) {
		char c = byte_next(s, is_encoded, &at);

		if (is_control((unsigned char)c))
			return VERDICT_CREDENTIAL_CONTROL_CHAR;
		if (c == ':' && !allow_colon)
			return VERDICT_COLON_IN_USERNAME;
		if (is_unreserved(c)) {
			*(*out)++ = c;
			continue;
		}
		*(*out)++ = '%';
		*(*out)++ = digits[(unsigned char)c >> 4];
		*(*out)++ = digits[(unsigned char)c & 15];
	}
	return 0;
}

static int lengths_verdict(enum scheme scheme, size_t user_len, size_t password_len)
{
	switch (scheme) {
	case SCHEME_SOCKS4:
	case SCHEME_SOCKS4A:
		return password_len ? VERDICT_SOCKS4_PASSWORD : 0;
	case SCHEME_SOCKS5:
	case SCHEME_SOCKS5H:
		if (user_len > SOCKS5_FIELD_MAX || password_len > SOCKS5_FIELD_MAX)
			return VERDICT_CREDENTIAL_TOO_LONG;
		return password_len ? 0 : VERDICT_CREDENTIAL_TOO_LONG;
	case SCHEME_HTTP:
	case SCHEME_HTTPS:
	case SCHEME_DIRECT:
	case SCHEME_COUNT:
		break;
	}
	return 0;
}

/* RFC 7617 2: a user-id with a colon cannot be sent by Basic. */
static bool allows_colon(enum scheme scheme)
{
	return scheme != SCHEME_HTTP && scheme != SCHEME_HTTPS;
}

static int secret_build(char **ret, enum scheme scheme, const struct endpoint_parts *p)
{
	size_t size = 3 * (p->user.len + p->password.len) + 2, user_len = 0, password_len = 0;
	char *secret, *out;
	int r;

	if (p->user.len == 0)
		return p->password.len ? VERDICT_EMPTY_USER : 0;
	secret = out = malloc(size);
	if (!secret)
		return -ENOMEM;
	r = field_encode(&out, p->user, p->is_encoded, allows_colon(scheme), &user_len);
	*out++ = ':';
	if (r == 0)
		r = field_encode(&out, p->password, p->is_encoded, true, &password_len);
	if (r == 0)
		r = lengths_verdict(scheme, user_len, password_len);
	*out = '\0';
	if (r) {
		explicit_bzero(secret, size);
		free(secret);
		return r;
	}
	*ret = secret;
	return 0;
}

static enum scheme scheme_choose(const struct endpoint_parts *p, const struct endpoint_rules *rules)
{
	int scheme = p->scheme;

	if (scheme < 0)
		scheme = scheme_from_text(p->label.at, p->label.len);
	/* A label never asks for a direct connection. */
	if (scheme < 0 || scheme == SCHEME_DIRECT)
		scheme = (int)rules->default_scheme;
	if (scheme == SCHEME_HTTPS && rules->https_means_connect)
		scheme = SCHEME_HTTP;
	return (enum scheme)scheme;
}

int parts_build(struct endpoint *ret, const struct endpoint_parts *p,
		const struct endpoint_rules *rules)
{
	struct endpoint e = {.scheme = scheme_choose(p, rules)};
	int r;

	r = host_parse(e.host, p->host, p->is_bare_host, rules->allow_single_label);
	if (r)
		return r;
	r = port_parse(&e.port, p->port);
	if (r)
		return r;
	if (!rules->allow_private && host_is_bogon(e.host))
		return VERDICT_BOGON;
	if (p->has_credentials) {
		r = secret_build(&e.secret, e.scheme, p);
		if (r)
			return r;
	}
	*ret = e;
	return 0;
}

/* Behind "direct://": nothing, or the address to connect from. A private one is usual there. */
static int direct_parse(struct endpoint *ret, struct span source)
{
	struct endpoint e = {.scheme = SCHEME_DIRECT};
	struct address a;
	int r;

	if (source.len == 0) {
		*ret = e;
		return 0;
	}
	r = host_parse(e.host, source, false, true);
	if (r)
		return r;
	if (address_parse(&a, e.host, strlen(e.host)))
		return VERDICT_IPV4_FORM;
	*ret = e;
	return 0;
}

static bool is_direct(const char *text, size_t len)
{
	return len >= 9 && strncasecmp(text, "direct://", 9) == 0;
}

int endpoint_parse(struct endpoint *ret, const char *text, size_t len,
		   const struct endpoint_rules *rules)
{
	struct endpoint_parts parts;
	int r;

	for (size_t i = 0; i < len; i++)
		if (is_control((unsigned char)text[i]))
			return VERDICT_CONTROL_CHAR;
	if (rules->allow_direct && is_direct(text, len))
		return direct_parse(ret, (struct span){text + 9, len - 9});
	r = parts_split(&parts, text, len, rules);
	if (r)
		return r;
	if (parts.end != text + len)
		return VERDICT_NOT_AN_ENDPOINT;
	return parts_build(ret, &parts, rules);
}

/* "#" and 16 lower-case hex digits, as endpoint_id() writes them. */
static bool is_id_digest(const char *text, size_t len)
{
	if (len != ID_DIGEST_LEN + 1 || text[0] != '#')
		return false;
	for (size_t i = 1; i < len; i++)
		if (hex_digit(text[i]) < 0 || (text[i] >= 'A' && text[i] <= 'F'))
			return false;
	return true;
}

int endpoint_parse_id(struct endpoint *ret, bool *ret_has_secret, const char *id, size_t len)
{
	static const struct endpoint_rules rules = {
	    .colon_order = COLON_HOST_FIRST,
	    .allow_private = true,
	    .allow_single_label = true,
	    .allow_direct = true,
	};
	const char *hash = memchr(id, '#', len);
	size_t url_len = hash ? (size_t)(hash - id) : len;
	struct endpoint_parts parts;
	int r;

	if (hash && !is_id_digest(hash, len - url_len))
		return VERDICT_NOT_AN_ENDPOINT;
	if (is_direct(id, url_len)) {
		if (hash)
			return VERDICT_NOT_AN_ENDPOINT;
		r = endpoint_parse(ret, id, url_len, &rules);
	} else {
		r = parts_split(&parts, id, url_len, &rules);
		/* Credentials in a foreign member are not ours to use: they stand in the open. */
		if (r == 0 &&
		    (parts.has_credentials || parts.label.at || parts.end != id + url_len))
			r = VERDICT_NOT_AN_ENDPOINT;
		if (r == 0)
			r = parts_build(ret, &parts, &rules);
	}
	if (r == 0)
		*ret_has_secret = hash != NULL;
	return r;
}
