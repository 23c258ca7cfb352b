/* origin.c - the demonstration's origin. */
#include "node/origin.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/http.h"
#include "base/net.h"
#include "base/stream.h"

#define REQUEST_CAP ((size_t)16384)
#define VISIT_MS 10000

struct origin {
	struct loop *loop;
	struct event event;
	TAILQ_HEAD(, visit) visits;
};

/* One connection, one request, one answer. */
struct visit {
	struct grave grave;
	TAILQ_ENTRY(visit) link;
	struct origin *origin;
	struct stream stream;
	struct alarm alarm;
	struct buffer in, out;
	struct http_scan scan;
	bool has_answered;
	char caller[64];
};

static void free_visit(struct grave *grave)
{
	struct visit *visit = (struct visit *)grave;

	buffer_fini(&visit->in);
	buffer_fini(&visit->out);
	free(visit);
}

static void visit_end(struct visit *visit)
{
	alarm_fini(&visit->alarm);
	stream_close(&visit->stream);
	TAILQ_REMOVE(&visit->origin->visits, visit, link);
	visit->grave.free_object = free_visit;
	loop_bury(visit->origin->loop, &visit->grave);
}

static void flush(struct visit *visit)
{
	while (buffer_len(&visit->out)) {
		ssize_t n =
		    stream_write(&visit->stream, buffer_at(&visit->out), buffer_len(&visit->out));

		if (n == -EAGAIN) {
			stream_want(&visit->stream, STREAM_WRITE);
			return;
		}
		if (n < 0) {
			visit_end(visit);
			return;
		}
		buffer_consume(&visit->out, (size_t)n);
	}
	stream_shutdown(&visit->stream);
	stream_want(&visit->stream, STREAM_READ);
}

static void answer(struct visit *visit, const char *status)
{
	visit->has_answered = true;
	if (buffer_printf(&visit->out,
			  "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: "
			  "%zu\r\nConnection: close\r\n\r\n%s\n",
			  status, strlen(visit->caller) + 1, visit->caller))
		visit_end(visit);
	else
		flush(visit);
}

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct visit *visit = arg;
	char *at = buffer_reserve(&visit->in, 1024);
	ssize_t n;
	long head;

	if (ready & STREAM_WRITE) {
		flush(visit);
		return;
	}
	n = at ? stream_read(stream, at, 1024) : 0;
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		visit_end(visit);
		return;
	}
	if (visit->has_answered)
		return; /* a body that nobody asked for */
	buffer_commit(&visit->in, (size_t)n);
	head = http_scan_head(&visit->scan, buffer_at(&visit->in), buffer_len(&visit->in));
	if (head)
		answer(visit, head > 0 ? "200 OK" : "400 Bad Request");
}

static void on_late(void *arg)
{
	visit_end(arg);
}

static void visit_new(struct origin *origin, int fd, const struct sockaddr *peer)
{
	struct visit *visit = calloc(1, sizeof *visit);
	struct address address;

	if (!visit) {
		close(fd);
		return;
	}
	visit->origin = origin;
	buffer_init(&visit->in, REQUEST_CAP);
	buffer_init(&visit->out, 1024);
	if (!address_from_sockaddr(&address, peer))
		address_print(&address, visit->caller, sizeof visit->caller);
	alarm_init(&visit->alarm, origin->loop, on_late, visit);
	alarm_set(&visit->alarm, clock_ms() + VISIT_MS);
	stream_open(&visit->stream, origin->loop, fd, on_ready, visit);
	stream_want(&visit->stream, STREAM_READ);
	TAILQ_INSERT_TAIL(&origin->visits, visit, link);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct sockaddr_storage peer;
	int visitor = net_accept(fd, &peer);

	(void)what;
	if (visitor >= 0)
		visit_new(arg, visitor, (struct sockaddr *)&peer);
}

int origin_new(struct origin **ret, struct loop *loop, int fd)
{
	struct origin *origin = calloc(1, sizeof *origin);

	if (!origin)
		return -ENOMEM;
	origin->loop = loop;
	TAILQ_INIT(&origin->visits);
	event_assign(&origin->event, loop_base(loop), fd, EV_READ | EV_PERSIST, on_acceptable,
		     origin);
	event_add(&origin->event, NULL);
	*ret = origin;
	return 0;
}

void origin_pause(struct origin *origin)
{
	event_del(&origin->event);
}

bool origin_is_idle(const struct origin *origin)
{
	return TAILQ_EMPTY(&origin->visits);
}

void origin_free(struct origin *origin)
{
	struct visit *visit;

	if (!origin)
		return;
	event_del(&origin->event);
	while ((visit = TAILQ_FIRST(&origin->visits)))
		visit_end(visit);
	free(origin);
}
