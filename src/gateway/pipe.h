/* pipe.h - bytes on their way from one socket to another, inside the kernel.
 *
 * A pipe is borrowed while bytes are in it; the process has a bounded number of them. */
#ifndef FAIRLEAD_GATEWAY_PIPE_H
#define FAIRLEAD_GATEWAY_PIPE_H

#include <sys/types.h>

#include "base/result.h"

struct pipe;

/* An empty pipe, or NULL: all are in use, or none can be made. */
struct pipe *pipe_borrow(void);

/* Gives it back; what is still in it is dropped. Accepts NULL. */
void pipe_return(struct pipe *pipe);

/* Closes what is kept for the next to borrow. */
void pipe_trim(void);

/* Moves what the socket has received into an empty pipe. Bytes, 0 at the end of the stream, -EAGAIN or -errno. */
ssize_t pipe_fill(struct pipe *pipe, int fd);

/* Moves what the pipe holds into the socket. Bytes (> 0), 0: the pipe is empty, -EAGAIN or -errno. */
ssize_t pipe_drain(struct pipe *pipe, int fd);

#endif
