/* endpoint.h - a proxy's address: grammar, canonical form, identifier, printing without secrets.
 *
 * The grammar is that of proxy lists (docs/lists.md); a list line may carry more around it. Credentials are kept in
 * canonical form, percent-encoded "user:password", and only ever printed when the caller says SHOW_SECRET. */
#ifndef FAIRLEAD_BASE_ENDPOINT_H
#define FAIRLEAD_BASE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"
#include "base/verdict.h"

enum scheme {
	SCHEME_HTTP,
	SCHEME_HTTPS,
	SCHEME_SOCKS4,
	SCHEME_SOCKS4A,
	SCHEME_SOCKS5,
	SCHEME_SOCKS5H,
	SCHEME_DIRECT,
	SCHEME_COUNT
};

#define ENDPOINT_HOST_MAX 253
#define ENDPOINT_SALT_BYTES 32
/* The longest text of endpoint_print(), terminating NUL included: an entry of 4,096 bytes, all of it encoded. */
#define ENDPOINT_TEXT_MAX 13000
/* The longest identifier, terminating NUL included. */
#define ENDPOINT_ID_MAX 300

struct endpoint {
	enum scheme scheme;
	char host[ENDPOINT_HOST_MAX + 1]; /* IPv6 without brackets; direct: source address or "" */
	uint16_t port;                    /* direct: 0 */
	char *secret;                     /* "user:password" percent-encoded, owned; NULL = none */
};

enum secret { HIDE_SECRET, SHOW_SECRET };

enum colon_order { COLON_AUTO, COLON_HOST_FIRST, COLON_USER_FIRST };

/* How readings that are a matter of choice are made. {0} with default_scheme = SCHEME_HTTP is the default. */
struct endpoint_rules {
	enum scheme default_scheme;
	enum colon_order colon_order;
	bool allow_private;       /* special-purpose addresses and localhost */
	bool allow_single_label;  /* host names without a dot */
	bool https_means_connect; /* https:// is read as http:// */
	bool allow_direct;        /* direct://[source-ip], never from a list */
};

/* Reads one entry: url-form, at-form or colon-form, without spaces around it and without labels behind it.
 * Returns 0 and fills `ret` (free it with endpoint_fini), an `enum verdict`, or -ENOMEM. */
MUST_USE int endpoint_parse(struct endpoint *ret, const char *text, size_t len,
			    const struct endpoint_rules *rules);

/* Reads a member's identifier "scheme://host:port[#digest]" as it stands in the sorted set; a bare "host:port" is http.
 * `ret` has no secret; `ret_has_secret` tells whether an identifier's digest announces one.
 * Returns 0 or an `enum verdict`. Private addresses pass: whoever dials decides. */
MUST_USE int endpoint_parse_id(struct endpoint *ret, bool *ret_has_secret, const char *id,
			       size_t len);

void endpoint_fini(struct endpoint *e);
MUST_USE int endpoint_copy(struct endpoint *ret, const struct endpoint *e);

/* Canonical form "scheme://[user:pass@]host:port" into `buffer`, always terminated; returns its length.
 * HIDE_SECRET writes "***@" in place of "user:pass@". */
size_t endpoint_print(const struct endpoint *e, enum secret secret, char *buffer, size_t size);

/* The member's identifier: canonical form without credentials, and "#" with 16 hex digits of HMAC-SHA-256(salt,
 * secret) when it has any. `buffer`: >= ENDPOINT_ID_MAX bytes. Returns 0 or -EIO (the digest failed). */
MUST_USE int endpoint_id(const struct endpoint *e, const uint8_t salt[ENDPOINT_SALT_BYTES],
			 char *buffer, size_t size);

/* Decoded user and password of `e`, NUL-terminated, into the buffers; both lengths are returned because a decoded
 * byte may be anything but a control. `*user_len` and `*password_len` hold the buffers' sizes on entry.
 * Returns 0, -ENOENT (no credentials) or -EMSGSIZE. */
MUST_USE int endpoint_credentials(const struct endpoint *e, char *user, size_t *user_len,
				  char *password, size_t *password_len);

/* "http" ... "direct"; static storage. scheme_from_text() takes any case and returns -1 for others. */
const char *scheme_word(enum scheme scheme);
int scheme_from_text(const char *text, size_t len);

#endif
