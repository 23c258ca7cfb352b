/* dial.h - reach a target through one proxy: look up, connect, handshake, under one deadline.
 *
 * There is one implementation of each handshake, used by gateway, checker and worker alike. The target's name goes to the
 * proxy as it is and is never looked up here; only `direct` looks it up, and checks the very address it connects to. */
#ifndef FAIRLEAD_DIAL_DIAL_H
#define FAIRLEAD_DIAL_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/endpoint.h"
#include "base/stream.h"

struct dial;
struct tls;

struct dial_request {
	struct stream *stream; /* to be opened, not open now; the caller's after dial_take() */
	const struct endpoint *proxy; /* outlives the dial */
	/* The target, canonical, IPv6 without brackets; outlives the dial. NULL, not for `direct`: the connection and the proxy's
	 * greeting are all that is wanted. */
	const char *host;
	uint16_t port;
	bool
	    is_plain; /* a plain HTTP request follows: a proxy that forwards those is only connected to */
	int64_t connect_ms, total_ms;
	struct tls *tls; /* for https proxies; NULL: REASON_PROXY_CANNOT */
	/* May this address be connected to, as a proxy or (direct) as a target? NULL: all but special-purpose ones. */
	bool (*is_admitted)(const struct address *address, uint16_t port, bool is_target,
			    void *arg);
	void *arg;
};

/* `result`:
 *   0                  dial_take() now gives the stream
 *   REASON_PROXY_*     the proxy's fault, or its inability (REASON_PROXY_CANNOT)
 *   REASON_TARGET_*    the proxy answers for the target, or `direct` could not reach it
 *   REASON_NO_DESCRIPTORS, REASON_NO_SOURCE_PORT, REASON_INTERNAL  ours
 * The dial ends with the callback. */
typedef void dial_cb(int result, struct dial *dial, void *arg);

/* Begins; `cb` runs once, never before this returns. 0, or -ENOMEM. */
MUST_USE int dial_start(struct dial **ret, struct loop *loop, const struct dial_request *request,
			dial_cb *cb, void *arg);

/* `cb` will not run; closes what is open. Accepts NULL. */
void dial_cancel(struct dial *dial);

/* Inside the callback: the open stream is the caller's from now on, with another callback; tells which bytes the proxy sent
 * behind its reply (valid until the callback returns). Without it the stream is closed. */
void dial_take(struct dial *dial, stream_cb *cb, void *arg, const char **ret_early,
	       size_t *ret_len);

/* True when what was dialled forwards plain HTTP requests itself (absolute form, Proxy-Authorization). */
bool dial_forwards(const struct endpoint *proxy);

/* The status that the proxy gave to CONNECT; 0: none. */
int dial_received_status(const struct dial *dial);

#endif
