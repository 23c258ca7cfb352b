/* sink.c - a file that whole records are appended to. */
#include "worker/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe that is writable takes so many bytes without blocking (POSIX: PIPE_BUF, on Linux a page). */
#define PIECE ((size_t)4096)

int sink_open(struct sink *sink, const char *path)
{
	struct stat status;
	int fd = -1;

	if (path && strcmp(path, "-") == 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else if (path)
		fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (path && fd < 0)
		return -errno;
	*sink = (struct sink){.fd = fd};
	if (fd < 0)
		return 0;
	sink->is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	return 0;
}

void sink_close(struct sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	*sink = (struct sink){.fd = -1};
}

static int write_all(int fd, const char *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			return n == 0 ? -ENOSPC : -errno;
	}
	return 0;
}

/* A process that is killed while it writes leaves a piece of a record behind; nothing may be glued to it. */
static bool is_torn(int fd, off_t end)
{
	char last = '\n';

	return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

/* Under the lock, so that no other process's record stands behind what is cut off. Standard output may have been
 * opened without O_APPEND (`> file`): then the end is ours to seek. */
static int append(int fd, const char *bytes, size_t len)
{
	off_t end = lseek(fd, 0, SEEK_END);
	int r = end < 0 ? -errno : 0;

	if (r)
		return r;
	if (is_torn(fd, end))
		r = write_all(fd, "\n", 1);
	if (!r)
		r = write_all(fd, bytes, len);
	if (r && ftruncate(fd, end))
		r = -EIO;
	return r;
}

static int write_file(struct sink *sink, const char *bytes, size_t len)
{
	int r;

	if (flock(sink->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	r = append(sink->fd, bytes, len);
	flock(sink->fd, LOCK_UN);
	return r == -EAGAIN ? -EIO : r;
}

static int write_pipe(struct sink *sink, const char *bytes, size_t len)
{
	struct pollfd poller = {.fd = sink->fd, .events = POLLOUT};
	int r = 0;

	while (!r && sink->written < len) {
		size_t left = len - sink->written;
		ssize_t n = -1;

		if (poll(&poller, 1, 0) <= 0)
			return -EAGAIN;
		n = write(sink->fd, bytes + sink->written, left < PIECE ? left : PIECE);
		if (n > 0)
			sink->written += (size_t)n;
		else if (errno != EINTR)
			r = -errno;
	}
	if (r != -EAGAIN)
		sink->written = 0;
	return r;
}

int sink_write(struct sink *sink, const void *bytes, size_t len)
{
	if (sink->fd < 0 || !len)
		return 0;
	return (sink->is_regular ? write_file : write_pipe)(sink, bytes, len);
}
