/* stream.h - one connected socket on the loop, plain or TLS, with one callback.
 *
 * The owner embeds the structure and never touches its descriptor. A stream asks for nothing until stream_want(); the
 * callback is told what may be tried now and tries it until -EAGAIN. The kind of the stream (a table of functions)
 * hides that TLS may need to write in order to read, and that it may hold bytes while the socket is silent. */
#ifndef FAIRLEAD_BASE_STREAM_H
#define FAIRLEAD_BASE_STREAM_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "base/result.h"

enum { STREAM_READ = 1, STREAM_WRITE = 2 };

struct stream;
struct stream_tls;
struct tls;
typedef void stream_cb(struct stream *stream, int ready, void *arg);

struct stream_kind {
	ssize_t (*read)(struct stream *stream, void *bytes, size_t len);
	ssize_t (*write)(struct stream *stream, const void *bytes, size_t len);
	int (*shutdown)(struct stream *stream); /* no more will be written */
	void (*close)(struct stream *stream, bool is_reset);
	void (*want)(
	    struct stream *stream); /* brings what is watched in line with what is wanted */
	int (*ready)(struct stream *stream,
		     int event); /* what an event of the socket means to the owner; 0: nothing */
};

struct stream {
	const struct stream_kind *kind;
	struct event readable, writable;
	stream_cb *cb;
	void *arg;
	struct stream_tls *tls; /* NULL: plain */
	int fd;                 /* -1: not open */
	uint8_t wanted;         /* by the owner */
	uint8_t watched;        /* events of the socket */
};

/* Takes over `fd`, connected or connecting, non-blocking. */
void stream_open(struct stream *stream, struct loop *loop, int fd, stream_cb *cb, void *arg);

/* Another owner's callback from now on; what is wanted stays. */
void stream_hand_over(struct stream *stream, stream_cb *cb, void *arg);

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->kind != NULL;
}

/* Which of STREAM_READ | STREAM_WRITE the callback is to be called for. */
void stream_want(struct stream *stream, int wanted);

/* Bytes read (> 0), 0 at the end of the stream, -EAGAIN or -errno. */
ssize_t stream_read(struct stream *stream, void *bytes, size_t len);

/* Bytes written (> 0), -EAGAIN or -errno. */
ssize_t stream_write(struct stream *stream, const void *bytes, size_t len);

/* Half-close: the peer sees the end of the stream behind what was written. 0 or -errno. */
int stream_shutdown(struct stream *stream);

/* The descriptor, when its bytes are the stream's as they stand and may be spliced; -1: TLS. */
int stream_plain_fd(const struct stream *stream);

/* The error of a connect(2) under way that became writable: 0 or -errno. */
int stream_connect_result(struct stream *stream);

/* --- TLS, as a client --------------------------------------------------------------------------------------------- */

/* From now on the plain, connected stream speaks TLS with the server `host`:`port`, whose certificate must stand for
 * `host`, a name or an IP address without brackets. stream_handshake() comes first. 0 or -ENOMEM. */
MUST_USE int stream_start_tls(struct stream *stream, struct tls *tls, const char *host,
			      uint16_t port);

/* Goes on with the handshake. A plain stream has none and is done.
 *   0                         done; from now on bytes can be read and written
 *   -EAGAIN                   again when the callback is told STREAM_READ, which must be wanted
 *   REASON_PROXY_CERTIFICATE  the certificate does not verify, or none of the pins is met
 *   REASON_PROXY_ALERT        the server refused by an alert
 *   REASON_PROXY_TLS          what came is no TLS that is spoken here
 *   -errno                    of the socket; -ECONNRESET: hung up; -ENOMEM
 * A stream whose handshake failed can only be closed. Afterwards -EPROTO from stream_read() means that the server broke the
 * protocol, -ECONNABORTED that it sent an alert. */
MUST_USE int stream_handshake(struct stream *stream);

/* Why TLS failed, for people. Static storage; "" for a plain stream. */
const char *stream_trouble(const struct stream *stream);

/* The stream's end, which stream_read() told by 0, was the socket's and not the peer's word (RFC 8446 6.1): what was to last
 * until the end may lack some. A plain stream cannot tell: false. */
bool stream_is_truncated(const struct stream *stream);

/* Closes; accepts a stream that is not open. `stream_reset` makes the peer see RST instead of FIN. */
void stream_close(struct stream *stream);
void stream_reset(struct stream *stream);

/* For the kinds alone: which events of the socket are watched. */
void stream_watch(struct stream *stream, int events);

#endif
