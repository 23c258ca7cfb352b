/* url.c - where the store is: redis:// and unix:// URLs. */
#include "store/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define REDIS_PORT 6379
#define DATABASES 16384

static int fail(char *error, size_t size, const char *text)
{
	snprintf(error, size, "%s", text);
	return -EINVAL;
}

/* Percent-decodes; a lone % is literal. 0 or -EINVAL (too long, or a NUL). */
static int decode(char *ret, size_t size, const char *text, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%' && i + 2 < len && hex_digit(text[i + 1]) >= 0 &&
		    hex_digit(text[i + 2]) >= 0) {
			c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
			i += 2;
		}
		if (!c || out + 1 >= size)
			return -EINVAL;
		ret[out++] = c;
	}
	ret[out] = '\0';
	return 0;
}

static int parse_number(const char *text, size_t len, long max, long *ret)
{
	long value = 0;

	if (len == 0 || len > 6)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -EINVAL;
		value = value * 10 + text[i] - '0';
	}
	if (value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Takes "user:password@" off the front of *text. */
static int parse_userinfo(struct store_url *url, const char **text, size_t authority_len)
{
	const char *at = NULL, *colon;
	size_t len;

	for (size_t i = 0; i < authority_len; i++)
		if ((*text)[i] == '@')
			at = *text + i;
	if (!at)
		return 0;
	len = (size_t)(at - *text);
	colon = memchr(*text, ':', len);
	if (decode(url->user, sizeof url->user, *text, colon ? (size_t)(colon - *text) : len))
		return -EINVAL;
	if (colon &&
	    decode(url->password, sizeof url->password, colon + 1, (size_t)(at - colon - 1)))
		return -EINVAL;
	*text = at + 1;
	return 0;
}

static int parse_host_port(struct store_url *url, const char *text, size_t len)
{
	const char *end = text + len;
	const char *host_end, *port;
	long number = REDIS_PORT;

	if (len && *text == '[') {
		text++;
		host_end = memchr(text, ']', len - 1);
		if (!host_end)
			return -EINVAL;
		port = host_end + 1;
	} else {
		host_end = memchr(text, ':', len);
		if (!host_end)
			host_end = end;
		port = host_end;
	}
	if (host_end == text || (size_t)(host_end - text) >= sizeof url->host)
		return -EINVAL;
	if (port != end &&
	    (*port != ':' || parse_number(port + 1, (size_t)(end - port - 1), 65535, &number)))
		return -EINVAL;
	memcpy(url->host, text, (size_t)(host_end - text));
	url->host[host_end - text] = '\0';
	url->port = (uint16_t)number;
	return number == 0 ? -EINVAL : 0;
}

static int parse_db(struct store_url *url, const char *text)
{
	long number = 0;

	if (*text && parse_number(text, strlen(text), DATABASES, &number))
		return -EINVAL;
	url->db = (int)number;
	return 0;
}

static int parse_tcp(struct store_url *url, const char *text, char *error, size_t size)
{
	size_t authority = strcspn(text, "/?#");
	const char *end = text + authority;

	if (parse_userinfo(url, &text, authority))
		return fail(error, size, "user or password is too long or contains NUL");
	if (parse_host_port(url, text, (size_t)(end - text)))
		return fail(error, size,
			    "expected redis://[[user]:password@]host[:port][/database]");
	if (*end && *end != '/')
		return fail(error, size, "a redis:// URL takes no query or fragment");
	if (parse_db(url, *end ? end + 1 : end))
		return fail(error, size, "the database behind the '/' must be 0 to 16384");
	return 0;
}

static int parse_unix(struct store_url *url, const char *text, char *error, size_t size)
{
	size_t len = strcspn(text, "?");
	const char *query = text + len;
	const char *at = strstr(text, "@/");

	/* A password may hold '/' and '@', a path '@': the first "@/" parts them. */
	if (*text != '/' && at && at < query && parse_userinfo(url, &text, (size_t)(at - text) + 1))
		return fail(error, size, "user or password is too long or contains NUL");
	len = (size_t)(query - text);
	if (*text != '/')
		return fail(error, size, "expected unix:///path/of/the/socket[?db=number]");
	if (len >= sizeof url->path)
		return fail(error, size, "the path of a unix socket has at most 107 bytes");
	memcpy(url->path, text, len);
	url->path[len] = '\0';
	if (*query && strncmp(query, "?db=", 4))
		return fail(error, size, "a unix:// URL takes only ?db=number");
	if (parse_db(url, *query ? query + 4 : query))
		return fail(error, size, "the database behind '?db=' must be 0 to 16384");
	return 0;
}

static const char *unspoken(const char *text)
{
	static const struct {
		const char *prefix, *message;
	} table[] = {
	    {"rediss://",
	     "TLS to Redis (rediss://) is not spoken by this version; use redis:// or unix://"},
	    {"redis+sentinel://",
	     "Sentinel is not spoken by this version; name the master with redis://"},
	    {"rediss+sentinel://",
	     "Sentinel is not spoken by this version; name the master with redis://"},
	    {"redis+cluster://",
	     "Cluster is not spoken by this version; use a standalone redis://"},
	    {"rediss+cluster://",
	     "Cluster is not spoken by this version; use a standalone redis://"},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strncasecmp(text, table[i].prefix, strlen(table[i].prefix)))
			return table[i].message;
	return "expected a redis:// or unix:// URL";
}

int store_url_parse(struct store_url *ret, const char *text, char *error, size_t error_size)
{
	struct store_url url = {.kind = STORE_TCP};
	int r;

	if (!strncasecmp(text, "redis://", 8)) {
		r = parse_tcp(&url, text + 8, error, error_size);
	} else if (!strncasecmp(text, "unix://", 7)) {
		url.kind = STORE_UNIX;
		r = parse_unix(&url, text + 7, error, error_size);
	} else {
		return fail(error, error_size, unspoken(text));
	}
	if (!r)
		*ret = url;
	store_url_wipe(&url);
	return r;
}

void store_url_print(const struct store_url *url, char *buffer, size_t size)
{
	if (url->kind == STORE_UNIX)
		snprintf(buffer, size, "unix://%s", url->path);
	else
		snprintf(buffer, size,
			 strchr(url->host, ':') ? "redis://[%s]:%u/%d" : "redis://%s:%u/%d",
			 url->host, url->port, url->db);
}

void store_url_wipe(struct store_url *url)
{
	explicit_bzero(url->user, sizeof url->user);
	explicit_bzero(url->password, sizeof url->password);
}
