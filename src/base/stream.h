/* stream.h - one connected socket on the loop, plain or TLS, with one callback.
 *
 * The owner embeds the structure and never touches its descriptor. A stream asks for nothing until stream_want(); the
 * callback is told what may be tried now and tries it until -EAGAIN. The kind of the stream (a table of functions)
 * hides that TLS may need to write in order to read. */
#ifndef FAIRLEAD_BASE_STREAM_H
#define FAIRLEAD_BASE_STREAM_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/loop.h"
#include "base/result.h"

enum { STREAM_READ = 1, STREAM_WRITE = 2 };

struct stream;
typedef void stream_cb(struct stream *stream, int ready, void *arg);

struct stream_kind {
	ssize_t (*read)(struct stream *stream, void *bytes, size_t len);
	ssize_t (*write)(struct stream *stream, const void *bytes, size_t len);
	int (*shutdown)(struct stream *stream); /* no more will be written */
	void (*close)(struct stream *stream);
};

struct stream {
	const struct stream_kind *kind;
	struct event readable, writable;
	stream_cb *cb;
	void *arg;
	int fd; /* -1: not open */
	int wanted;
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

/* The error of a connect(2) under way that became writable: 0 or -errno. */
int stream_connect_result(struct stream *stream);

/* Closes; accepts a stream that is not open. `stream_reset` makes the peer see RST instead of FIN. */
void stream_close(struct stream *stream);
void stream_reset(struct stream *stream);

#endif
