/* credentials.c - the credentials of a proxy, as each protocol carries them. */
#include "dial/credentials.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/base64.h"

#define PART_MAX 4097
#define SOCKS5_PART_MAX 255 /* RFC 1929 2: one byte for its length */
#define SOCKS5_VERSION 1

struct credentials {
	char user[PART_MAX], password[PART_MAX];
	size_t user_len, password_len;
};

/* 0, -ENOENT (none) or -EMSGSIZE. Whatever comes of it is wiped by the caller. */
static int decode(struct credentials *ret, const struct endpoint *proxy)
{
	ret->user_len = sizeof ret->user;
	ret->password_len = sizeof ret->password;
	return endpoint_credentials(proxy, ret->user, &ret->user_len, ret->password,
				    &ret->password_len);
}

int credentials_add_basic(struct buffer *out, const struct endpoint *proxy)
{
	struct credentials c NOT_ZEROED;
	char pair[2 * PART_MAX] NOT_ZEROED, encoded[BASE64_SIZE(2 * PART_MAX)] NOT_ZEROED;
	int r;

	if (!proxy->secret)
		return 0;
	r = decode(&c, proxy);
	if (!r) {
		memcpy(pair, c.user, c.user_len);
		pair[c.user_len] = ':';
		memcpy(pair + c.user_len + 1, c.password, c.password_len);
		base64_encode(encoded, pair, c.user_len + 1 + c.password_len);
		r = buffer_printf(out, "Proxy-Authorization: Basic %s\r\n", encoded);
		explicit_bzero(pair, sizeof pair);
		explicit_bzero(encoded, sizeof encoded);
	}
	explicit_bzero(&c, sizeof c);
	return r;
}

int credentials_add_user(struct buffer *out, const struct endpoint *proxy)
{
	struct credentials c;
	int r;

	if (!proxy->secret)
		return 0;
	r = decode(&c, proxy);
	if (!r)
		r = buffer_add(out, c.user, c.user_len);
	explicit_bzero(&c, sizeof c);
	return r;
}

static bool fit(const struct credentials *c)
{
	return c->user_len <= SOCKS5_PART_MAX && c->password_len <= SOCKS5_PART_MAX;
}

int credentials_add_socks5(struct buffer *out, const struct endpoint *proxy)
{
	struct credentials c;
	uint8_t request[3 + 2 * SOCKS5_PART_MAX] = {SOCKS5_VERSION};
	int r = decode(&c, proxy);

	if (!r && !fit(&c))
		r = -EMSGSIZE;
	if (!r) {
		request[1] = (uint8_t)c.user_len;
		memcpy(request + 2, c.user, c.user_len);
		request[2 + c.user_len] = (uint8_t)c.password_len;
		memcpy(request + 3 + c.user_len, c.password, c.password_len);
		r = buffer_add(out, request, 3 + c.user_len + c.password_len);
	}
	explicit_bzero(&c, sizeof c);
	explicit_bzero(request, sizeof request);
	return r;
}

bool credentials_fit_socks5(const struct endpoint *proxy)
{
	struct credentials c;
	bool is_fit = !proxy->secret || (!decode(&c, proxy) && fit(&c));

	explicit_bzero(&c, sizeof c);
	return is_fit;
}
