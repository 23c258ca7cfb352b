/* internal.h - what the kinds of upstream share; nobody else includes it. */
#ifndef FAIRLEAD_DIAL_INTERNAL_H
#define FAIRLEAD_DIAL_INTERNAL_H

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/http.h"
#include "base/resolve.h"
#include "dial/dial.h"

enum dial_state { DIAL_LOOKUP, DIAL_CONNECT, DIAL_TLS, DIAL_HANDSHAKE, DIAL_ENDED };

struct dial {
	struct grave grave;
	struct loop *loop;
	struct dial_request request;
	dial_cb *cb;
	void *arg;
	enum dial_state state;
	struct alarm alarm;
	int64_t deadline_ms;
	struct resolve *resolve;
	struct address addresses[RESOLVE_MAX];
	size_t address_count, address_next;
	int result; /* of what failed last */
	struct buffer out, in;
	struct http_scan scan;
	int step; /* of a kind whose handshake has several */
	int received_status;
	bool is_taken; /* the stream is the caller's business now */
};

/* A kind of upstream.
 *   check  can it carry this target at all? 0 or a reason; before anything is connected
 *   begin  fills dial->out with the first question; 0 or -errno
 *   take   looks at dial->in: 0 the tunnel stands and what is left in dial->in is early data, -EAGAIN more bytes are needed
 *          (the next question may be in dial->out), a reason, or another -errno. However the bytes of an answer are split,
 *          the result is the same
 * Each may be NULL; without `begin` there is no handshake. */
struct dial_kind {
	bool is_direct;    /* the target itself is connected to */
	bool is_forward;   /* forwards plain HTTP requests */
	bool is_tls;       /* the proxy is spoken to through TLS */
	bool has_greeting; /* the handshake begins before the target is named */
	int (*check)(const struct dial *dial);
	int (*begin)(struct dial *dial);
	int (*take)(struct dial *dial);
};

extern const struct dial_kind dial_http, dial_https, dial_socks4, dial_socks5, dial_direct;

#endif
