/* forward_parts.h - what the two files of a forwarded request share; nobody else includes it. */
#ifndef FAIRLEAD_GATEWAY_FORWARD_PARTS_H
#define FAIRLEAD_GATEWAY_FORWARD_PARTS_H

#include "gateway/body.h"
#include "gateway/internal.h"

/* A head that lacks its last byte, and one read. */
#define RESPONSE_IN_CAP (HTTP_HEAD_MAX + END_READ_SIZE)

struct forward {
	size_t head_len; /* of the request, at the front of client->in */
	bool is_idempotent;
	bool is_v10; /* the client speaks HTTP/1.0 */
	bool wants_upgrade;
	struct body request, first_request, response;
	size_t cursor;       /* bytes of client->in that have been given to the upstream */
	bool is_replayable;  /* client->in still holds the request from its first byte */
	bool has_left;       /* a byte was written upstream behind the handshake */
	bool has_head;       /* the response's head was dealt with */
	int64_t head_due_ms; /* of the response; 0: the request is not out yet */
	struct buffer in;    /* of the upstream, until the response's head is whole */
	struct http_scan scan;
};

/* What the request goes through. */
static inline const struct endpoint *forward_proxy(const struct exchange *exchange)
{
	return exchange->member ? &exchange->member->endpoint : exchange->gateway->config.upstream;
}

/* The member failed with `reason`: another one, if the request may be sent again, else the end. */
void forward_fail(struct exchange *exchange, int reason);

/* The request is behind us: what stands in client->in is the next one. */
void forward_forget_request(struct exchange *exchange);

/* Ends the exchange when its response is out; else says what is waited for. */
void forward_settle(struct exchange *exchange);

/* forward_response.c: bytes of the member, or its end, may be read. */
void forward_read_response(struct exchange *exchange);

#endif
