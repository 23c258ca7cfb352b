/* plain.c - the commonest entry of all, read quickly. */
#include "list/plain.h"

#include <string.h>

#include "base/address.h"

#define LEN_MAX ((size_t)40) /* of any such entry */

/* A number without leading zeros up to `max`; the position behind it, or NULL. */
static const char *number_read(const char *at, const char *end, unsigned max, unsigned *ret)
{
	const char *start = at;
	unsigned value = 0;

	while (at < end && *at >= '0' && *at <= '9' && value <= max)
		value = value * 10 + (unsigned)(*at++ - '0');
	if (at == start || value > max || (*start == '0' && at - start > 1))
		return NULL;
	*ret = value;
	return at;
}

static const char *quad_read(const char *at, const char *end, struct address *ret)
{
	unsigned octet;

	ret->family = AF_INET;
	for (int i = 0; i < 4; i++) {
		at = number_read(at, end, 255, &octet);
		if (!at || at == end || *at != (i < 3 ? '.' : ':'))
			return NULL;
		ret->bytes[i] = (uint8_t)octet;
		at++;
	}
	return at;
}

/* Behind "scheme://", if a supported one stands there; the default scheme otherwise. */
static const char *scheme_read(const char *at, const char *end, const struct endpoint_rules *rules,
			       enum scheme *ret)
{
	const char *colon;
	int scheme;

	*ret = rules->default_scheme;
	if (*at >= '0' && *at <= '9')
		return at;
	colon = memchr(at, ':', (size_t)(end - at));
	if (!colon || end - colon < 3 || colon[1] != '/' || colon[2] != '/')
		return NULL;
	scheme = scheme_from_text(at, (size_t)(colon - at));
	if (scheme < 0 || scheme == SCHEME_DIRECT)
		return NULL;
	*ret = (enum scheme)scheme;
	return colon + 3;
}

bool list_plain_read(struct endpoint *ret, const char *text, size_t len,
		     const struct endpoint_rules *rules)
{
	const char *end = text + len, *host, *at;
	struct address a;
	unsigned port;

	if (len == 0 || len > LEN_MAX)
		return false;
	host = scheme_read(text, end, rules, &ret->scheme);
	at = host ? quad_read(host, end, &a) : NULL;
	if (!at || number_read(at, end, UINT16_MAX, &port) != end || port == 0)
		return false;
	if (!rules->allow_private && address_is_bogon(&a))
		return false;
	if (ret->scheme == SCHEME_HTTPS && rules->https_means_connect)
		ret->scheme = SCHEME_HTTP;
	len = (size_t)(at - host - 1);
	memcpy(ret->host, host, len);
	ret->host[len] = '\0';
	ret->port = (uint16_t)port;
	ret->secret = NULL;
	return true;
}
