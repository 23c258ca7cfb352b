/* endpoint.c - canonical form, identifier and credentials of an endpoint. */
#include "base/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define ID_DIGEST_BYTES ((size_t)8)

static const char *const scheme_words[SCHEME_COUNT] = {
    [SCHEME_HTTP] = "http",       [SCHEME_HTTPS] = "https",   [SCHEME_SOCKS4] = "socks4",
    [SCHEME_SOCKS4A] = "socks4a", [SCHEME_SOCKS5] = "socks5", [SCHEME_SOCKS5H] = "socks5h",
    [SCHEME_DIRECT] = "direct",
};

const char *scheme_word(enum scheme scheme)
{
	return scheme < SCHEME_COUNT ? scheme_words[scheme] : "unknown";
}

int scheme_from_text(const char *text, size_t len)
{
	for (int i = 0; i < SCHEME_COUNT; i++)
		if (strlen(scheme_words[i]) == len && strncasecmp(scheme_words[i], text, len) == 0)
			return i;
	return -1;
}

void endpoint_fini(struct endpoint *e)
{
	if (e->secret)
		explicit_bzero(e->secret, strlen(e->secret));
	free(e->secret);
	e->secret = NULL;
}

int endpoint_copy(struct endpoint *ret, const struct endpoint *e)
{
	char *secret = NULL;

	if (e->secret) {
		secret = strdup(e->secret);
		if (!secret)
			return -ENOMEM;
	}
	*ret = *e;
	ret->secret = secret;
	return 0;
}

/* Text that grows up to its buffer's end; always terminated. Lists have many entries: no printf
 * here. */
struct writer {
	char *buffer;
	size_t len, size;
};

static void writer_add(struct writer *w, const char *text)
{
	size_t len = strlen(text), room = w->size - w->len - 1;

	if (len > room)
		len = room;
	memcpy(w->buffer + w->len, text, len);
	w->len += len;
	w->buffer[w->len] = '\0';
}

static void writer_add_port(struct writer *w, uint16_t port)
{
	char digits[8];
	size_t at = sizeof(digits) - 1;
	unsigned value = port;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	writer_add(w, digits + at);
}

static void writer_add_host(struct writer *w, const char *host)
{
	bool is_ipv6 = strchr(host, ':') != NULL;

	writer_add(w, is_ipv6 ? "[" : "");
	writer_add(w, host);
	writer_add(w, is_ipv6 ? "]" : "");
}

static size_t endpoint_write(const struct endpoint *e, const char *userinfo, char *buffer,
			     size_t size)
{
	struct writer w = {buffer, 0, size};

	if (size == 0)
		return 0;
	buffer[0] = '\0';
	writer_add(&w, scheme_word(e->scheme));
	writer_add(&w, "://");
	if (userinfo) {
		writer_add(&w, userinfo);
		writer_add(&w, "@");
	}
	writer_add_host(&w, e->host);
	if (e->scheme != SCHEME_DIRECT) {
		writer_add(&w, ":");
		writer_add_port(&w, e->port);
	}
	return w.len;
}

size_t endpoint_print(const struct endpoint *e, enum secret secret, char *buffer, size_t size)
{
	if (!e->secret)
		return endpoint_write(e, NULL, buffer, size);
	return endpoint_write(e, secret == SHOW_SECRET ? e->secret : "***", buffer, size);
}

int endpoint_id(const struct endpoint *e, const uint8_t salt[ENDPOINT_SALT_BYTES], char *buffer,
		size_t size)
{
	uint8_t digest[DIGEST_BYTES];
	char hex[2 * ID_DIGEST_BYTES + 1];
	size_t len;
	int r;

	if (!e->secret) {
		endpoint_write(e, NULL, buffer, size);
		return 0;
	}
	r = digest_hmac(digest, salt, ENDPOINT_SALT_BYTES, e->secret, strlen(e->secret));
	if (r)
		return r;
	hex_print(digest, ID_DIGEST_BYTES, hex);
	len = endpoint_write(e, NULL, buffer, size);
	snprintf(buffer + len, size - len, "#%s", hex);
	return 0;
}

/* The secret is canonical, so every '%' has its two digits. */
static int field_decode(const char *text, size_t len, char *buffer, size_t *size)
{
	size_t out = 0;

	for (size_t at = 0; at < len; at++) {
		char c = text[at];

		if (c == '%' && len - at >= 3) {
			c = (char)(hex_digit(text[at + 1]) << 4 | hex_digit(text[at + 2]));
			at += 2;
		}
		if (out + 1 >= *size)
			return -EMSGSIZE;
		buffer[out++] = c;
	}
	if (*size == 0)
		return -EMSGSIZE;
	buffer[out] = '\0';
	*size = out;
	return 0;
}

int endpoint_credentials(const struct endpoint *e, char *user, size_t *user_len, char *password,
			 size_t *password_len)
{
	const char *colon;
	int r;

	if (!e->secret)
		return -ENOENT;
	colon = strchr(e->secret, ':');
	if (!colon)
		colon = e->secret + strlen(e->secret);
	r = field_decode(e->secret, (size_t)(colon - e->secret), user, user_len);
	if (r)
		return r;
	if (*colon == ':')
		colon++;
	return field_decode(colon, strlen(colon), password, password_len);
}
