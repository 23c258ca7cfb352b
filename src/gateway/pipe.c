/* pipe.c - bytes on their way from one socket to another, inside the kernel.
 *
 * One pipe serves all tunnels whose receivers keep up, for it is empty again after each turn; more are needed only for
 * those that do not. The pages of a pipe count against a limit of the user (64 MiB: pipe(7)), hence the bound. */
#include "gateway/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PIPES_MAX 16
#define PIPE_BYTES (1 << 19)

struct pipe {
	int in, out;
	size_t len;
};

static struct pipe *idle; /* the last one that came back empty */
static int pipe_count;

static void pipe_free(struct pipe *pipe)
{
	close(pipe->in);
	close(pipe->out);
	free(pipe);
	pipe_count--;
}

static struct pipe *pipe_new(void)
{
	struct pipe *pipe = calloc(1, sizeof *pipe);
	int fds[2];

	if (!pipe || pipe2(fds, O_NONBLOCK | O_CLOEXEC)) {
		free(pipe);
		return NULL;
	}
	pipe->out = fds[0];
	pipe->in = fds[1];
	pipe_count++;
	/* A small one costs more than copying. */
	if (fcntl(pipe->in, F_SETPIPE_SZ, PIPE_BYTES) < 0) {
		pipe_free(pipe);
		return NULL;
	}
	return pipe;
}

struct pipe *pipe_borrow(void)
{
	struct pipe *pipe = idle;

	idle = NULL;
	if (pipe || pipe_count == PIPES_MAX)
		return pipe;
	return pipe_new();
}

void pipe_return(struct pipe *pipe)
{
	if (!pipe)
		return;
	if (pipe->len || idle)
		pipe_free(pipe);
	else
		idle = pipe;
}

void pipe_trim(void)
{
	if (idle)
		pipe_free(idle);
	idle = NULL;
}

static ssize_t move(int from, int to, size_t len)
{
	ssize_t n;

	do
		n = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t pipe_fill(struct pipe *pipe, int fd)
{
	ssize_t n = move(fd, pipe->in, PIPE_BYTES);

	if (n > 0)
		pipe->len += (size_t)n;
	return n;
}

ssize_t pipe_drain(struct pipe *pipe, int fd)
{
	ssize_t n = pipe->len ? move(pipe->out, fd, pipe->len) : 0;

	if (n > 0)
		pipe->len -= (size_t)n;
	return n;
}
