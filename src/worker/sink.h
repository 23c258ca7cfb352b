/* sink.h - a file that whole records are appended to, also by several processes at a time.
 *
 * In a regular file a write stands whole or not at all: what a full disk has cut is taken back under a lock (flock(2)). To a
 * pipe or a terminal it goes piece by piece, as fast as the reader reads, and no call waits. */
#ifndef FAIRLEAD_WORKER_SINK_H
#define FAIRLEAD_WORKER_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"

struct sink {
	int fd; /* -1: nowhere */
	bool is_regular;
	size_t written; /* of the bytes that are being written, when it is not */
};

/* `path` "-": standard output; NULL: nowhere. 0 or -errno. */
MUST_USE int sink_open(struct sink *sink, const char *path);
void sink_close(struct sink *sink);

/* 0: all is written. -EAGAIN: call it again with the same bytes in a little while. Another -errno: it is not written;
 * a pipe may have got a part. */
MUST_USE int sink_write(struct sink *sink, const void *bytes, size_t len);

#endif
