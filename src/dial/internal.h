/* internal.h - what the kinds of upstream share; nobody else includes it. */
#ifndef FAIRLEAD_DIAL_INTERNAL_H
#define FAIRLEAD_DIAL_INTERNAL_H

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/http.h"
#include "base/resolve.h"
#include "dial/dial.h"

enum dial_state { DIAL_LOOKUP, DIAL_CONNECT, DIAL_HANDSHAKE, DIAL_ENDED };

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
	int received_status;
	bool is_taken; /* the stream is the caller's business now */
};

/* A kind of upstream. `begin` fills dial->out. `take` looks at dial->in: 0 the tunnel stands and what is left in dial->in
 * is early data, -EAGAIN more bytes are needed, a reason otherwise. Both NULL: no handshake. */
struct dial_kind {
	bool is_direct;  /* the target itself is connected to */
	bool is_forward; /* forwards plain HTTP requests */
	int (*begin)(struct dial *dial);
	int (*take)(struct dial *dial);
};

extern const struct dial_kind dial_http, dial_direct;

#endif
