/* credentials.h - Basic credentials of a proxy. */
#ifndef FAIRLEAD_DIAL_CREDENTIALS_H
#define FAIRLEAD_DIAL_CREDENTIALS_H

#include "base/buffer.h"
#include "base/endpoint.h"

/* Appends "Proxy-Authorization: Basic ...\r\n" (RFC 7617), or nothing if the proxy has no credentials. 0 or -errno. */
MUST_USE int credentials_add_basic(struct buffer *out, const struct endpoint *proxy);

#endif
