/* credentials.c - Basic credentials of a proxy. */
#include "dial/credentials.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"

#define PART_MAX 4097

int credentials_add_basic(struct buffer *out, const struct endpoint *proxy)
{
	char user[PART_MAX], password[PART_MAX];
	char pair[2 * PART_MAX], encoded[BASE64_SIZE(2 * PART_MAX)];
	size_t user_len = sizeof user, password_len = sizeof password;
	int r;

	if (!proxy->secret)
		return 0;
	r = endpoint_credentials(proxy, user, &user_len, password, &password_len);
	if (r)
		return r;
	memcpy(pair, user, user_len);
	pair[user_len] = ':';
	memcpy(pair + user_len + 1, password, password_len);
	base64_encode(encoded, pair, user_len + 1 + password_len);
	r = buffer_printf(out, "Proxy-Authorization: Basic %s\r\n", encoded);
	explicit_bzero(password, sizeof password);
	explicit_bzero(pair, sizeof pair);
	explicit_bzero(encoded, sizeof encoded);
	return r;
}
