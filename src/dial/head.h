/* head.h - request and response heads written anew: hop-by-hop fields out, framing made by us. Pure. */
#ifndef FAIRLEAD_DIAL_HEAD_H
#define FAIRLEAD_DIAL_HEAD_H

#include "base/buffer.h"
#include "base/endpoint.h"
#include "base/http.h"

/* `request` as it goes upstream: absolute form with the proxy's credentials when `proxy` forwards plain requests, else
 * (NULL) origin form for the target itself. Host is made from the target, the connection is for this request only.
 * 0 or -errno. */
MUST_USE int head_write_request(struct buffer *out, const struct http_request *request,
				const struct endpoint *proxy);

/* `response` as the client gets it, its body framed as `framing`. `extra`: further lines, each with its CRLF. 0 or
 * -errno. */
MUST_USE int head_write_response(struct buffer *out, const struct http_response *response,
				 enum http_framing framing, bool keep_alive, const char *extra);

/* What TRACE shows to its sender (RFC 9110 9.3.8): `request` without secrets, as message/http. 0 or -errno. */
MUST_USE int head_write_trace(struct buffer *out, const struct http_request *request);

/* A Date field with its CRLF: the time `wall_ms` (RFC 9110 5.6.7). 0 or -errno. */
MUST_USE int head_write_date(struct buffer *out, int64_t wall_ms);

#endif
