/* credentials.h - the credentials of a proxy, as each protocol carries them. */
#ifndef FAIRLEAD_DIAL_CREDENTIALS_H
#define FAIRLEAD_DIAL_CREDENTIALS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/endpoint.h"

/* Appends "Proxy-Authorization: Basic ...\r\n" (RFC 7617), or nothing if the proxy has no credentials. 0 or -errno. */
MUST_USE int credentials_add_basic(struct buffer *out, const struct endpoint *proxy);

/* Appends the user alone, or nothing: the USERID of SOCKS4. 0 or -errno. */
MUST_USE int credentials_add_user(struct buffer *out, const struct endpoint *proxy);

/* Appends user and password as the request of RFC 1929; they must be there, and fit. 0 or -errno. */
MUST_USE int credentials_add_socks5(struct buffer *out, const struct endpoint *proxy);

/* User and password have at most 255 bytes each, or there are none. */
bool credentials_fit_socks5(const struct endpoint *proxy);

#endif
