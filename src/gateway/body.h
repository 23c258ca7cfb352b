/* body.h - a message's body on its way: out of one framing, into another. */
#ifndef FAIRLEAD_GATEWAY_BODY_H
#define FAIRLEAD_GATEWAY_BODY_H

#include "base/http.h"
#include "gateway/end.h"

struct body {
	enum http_framing from, to;
	uint64_t left; /* HTTP_LENGTH */
	struct http_chunks chunks;
	bool is_done;
};

/* A body at its beginning; one without bytes is done at once. */
struct body body_of(enum http_framing from, enum http_framing to, uint64_t length);

/* Passes on what of `bytes` belongs to the body. `*used`: how many did. 0 (see is_done), -EPROTO (its framing is broken), or
 * the errno of a write. */
MUST_USE int body_pass(struct body *body, struct end *to, const char *bytes, size_t len,
		       size_t *used);

/* The source says that nothing more comes. 0 or the errno of a write. */
MUST_USE int body_finish(struct body *body, struct end *to);

#endif
