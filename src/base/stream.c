/* stream.c - one connected socket on the loop: the plain kind. */
#include "base/stream.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t plain_read(struct stream *stream, void *bytes, size_t len)
{
	ssize_t n;

	do
		n = recv(stream->fd, bytes, len, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t plain_write(struct stream *stream, const void *bytes, size_t len)
{
	ssize_t n;

	do
		n = send(stream->fd, bytes, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int plain_shutdown(struct stream *stream)
{
	return shutdown(stream->fd, SHUT_WR) ? -errno : 0;
}

static void plain_close(struct stream *stream, bool is_reset)
{
	(void)is_reset;
	close(stream->fd);
}

static void plain_want(struct stream *stream)
{
	stream_watch(stream, stream->wanted);
}

static int plain_ready(struct stream *stream, int event)
{
	(void)stream;
	return event;
}

static const struct stream_kind plain = {
    .read = plain_read,
    .write = plain_write,
    .shutdown = plain_shutdown,
    .close = plain_close,
    .want = plain_want,
    .ready = plain_ready,
};

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;
	int ready = stream->kind->ready(stream, what & EV_READ ? STREAM_READ : STREAM_WRITE);

	(void)fd;
	if (ready)
		stream->cb(stream, ready, stream->arg);
}

static void assign(struct stream *stream, struct loop *loop)
{
	event_assign(&stream->readable, loop_base(loop), stream->fd, EV_READ | EV_PERSIST, on_event,
		     stream);
	event_assign(&stream->writable, loop_base(loop), stream->fd, EV_WRITE | EV_PERSIST,
		     on_event, stream);
}

void stream_open(struct stream *stream, struct loop *loop, int fd, stream_cb *cb, void *arg)
{
	*stream = (struct stream){.kind = &plain, .cb = cb, .arg = arg, .fd = fd};
	assign(stream, loop);
}

void stream_hand_over(struct stream *stream, stream_cb *cb, void *arg)
{
	stream->cb = cb;
	stream->arg = arg;
}

static void switch_event(struct event *event, bool on)
{
	if (on)
		event_add(event, NULL);
	else
		event_del(event);
}

void stream_watch(struct stream *stream, int events)
{
	int changed = events ^ stream->watched;

	if (changed & STREAM_READ)
		switch_event(&stream->readable, events & STREAM_READ);
	if (changed & STREAM_WRITE)
		switch_event(&stream->writable, events & STREAM_WRITE);
	stream->watched = (uint8_t)events;
}

void stream_want(struct stream *stream, int wanted)
{
	if (wanted == stream->wanted)
		return;
	stream->wanted = (uint8_t)wanted;
	stream->kind->want(stream);
}

ssize_t stream_read(struct stream *stream, void *bytes, size_t len)
{
	return stream->kind->read(stream, bytes, len);
}

ssize_t stream_write(struct stream *stream, const void *bytes, size_t len)
{
	return stream->kind->write(stream, bytes, len);
}

int stream_shutdown(struct stream *stream)
{
	return stream->kind->shutdown(stream);
}

int stream_plain_fd(const struct stream *stream)
{
	return stream->kind == &plain ? stream->fd : -1;
}

int stream_connect_result(struct stream *stream)
{
	int error = 0;
	socklen_t len = sizeof error;

	if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

static void end(struct stream *stream, bool is_reset)
{
	struct linger linger = {.l_onoff = 1};

	if (!stream_is_open(stream))
		return;
	stream_watch(stream, 0);
	if (is_reset)
		setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	stream->kind->close(stream, is_reset);
	stream->kind = NULL;
	stream->wanted = 0;
	stream->fd = -1;
}

void stream_close(struct stream *stream)
{
	end(stream, false);
}

void stream_reset(struct stream *stream)
{
	end(stream, true);
}
