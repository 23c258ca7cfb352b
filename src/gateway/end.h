/* end.h - one of the two ends of an exchange: a stream and what waits to be written to it.
 *
 * An idle end owns no buffer and no pipe. Whoever feeds an end stops reading its own while it is full. */
#ifndef FAIRLEAD_GATEWAY_END_H
#define FAIRLEAD_GATEWAY_END_H

#include "base/buffer.h"
#include "base/stream.h"
#include "gateway/pipe.h"

/* More than one read of the other end, so that one read always fits. */
#define END_OUT_CAP ((size_t)256 << 10)
#define END_READ_SIZE ((size_t)65536)

struct end {
	struct stream stream;
	struct buffer out;
	struct pipe *pipe; /* with what is to be written before `out`, or NULL */
	uint64_t bytes_in, bytes_out;
	bool has_ended;      /* the peer will send no more */
	bool is_broken;      /* reset, or closed for writing: nothing can be sent */
	bool wants_shutdown; /* half-close once nothing waits */
	bool is_shut;
	bool is_bulk; /* the last read brought much: the next may, too */
};

/* Prepares an end whose stream is opened by the caller. */
void end_init(struct end *end);

/* Closes; what waits is dropped. */
void end_close(struct end *end);

/* Reads into a buffer that all ends of the process share: valid until the next read. Bytes, 0 at the end of the stream,
 * -EAGAIN; errors set is_broken and has_ended and give 0. */
ssize_t end_read(struct end *end, char **ret_bytes);

/* Reads no more than `in` has room for, which is not full, and appends it: `in` grows by what has come, not by what might.
 * Returns what end_read() does. */
ssize_t end_read_into(struct end *end, struct buffer *in);

/* Reads once from `from` and writes that to `to`, which is not full; much at once goes through a pipe, if both streams
 * are plain. What became of it shows in has_ended and is_broken of both. */
void end_pass(struct end *from, struct end *to);

/* Writes now what can be written and keeps the rest. 0, or -errno: broken, or over the cap. */
MUST_USE int end_write(struct end *end, const void *bytes, size_t len);

/* Queues; the next end_write() or end_flush() brings it out together with what follows. 0 or -errno: over the cap. */
MUST_USE int end_queue(struct end *end, const void *bytes, size_t len);

/* Writes what waits, then half-closes if that was asked for. 0 or -errno. */
MUST_USE int end_flush(struct end *end);

/* Half-closes, now or when all that waits has been written. */
void end_shutdown(struct end *end);

static inline bool end_is_full(const struct end *end)
{
	return end->pipe || buffer_len(&end->out) > 0;
}

#endif
