/* judge.c - the page that a team's own probes ask, served. */
#include "check/judge.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/net.h"
#include "base/stream.h"

/* Six bytes a byte at most when it is escaped: whatever came, the answer is short enough for judge_read(). */
#define REQUEST_CAP ((size_t)8192)
#define ANSWER_CAP (JUDGE_ANSWER_MAX + 1024) /* and its head */
#define VISIT_MS 10000
#define PAUSE_MS 1000
#define READ_SIZE ((size_t)1024)

#define HEAD_END "Cache-Control: no-store\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n"

struct judge {
	struct loop *loop;
	struct event event;
	struct alarm pause;
	TAILQ_HEAD(, visit) visits;
	size_t visit_count, max_clients;
};

/* One connection, one request, one answer. */
struct visit {
	struct grave grave;
	TAILQ_ENTRY(visit) link;
	struct judge *judge;
	struct stream stream;
	struct alarm alarm;
	struct buffer in, out;
	struct http_scan scan;
	bool has_answered;
	char address[46];
	uint16_t port;
};

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* A JSON string in ASCII. A byte that is none becomes the character of ISO-8859-1: whatever the bytes are, the string is
 * valid, and they can be had back. */
static int add_string(struct buffer *b, struct text t)
{
	int r = buffer_add_text(b, "\"");

	for (size_t i = 0; i < t.len && !r; i++) {
		unsigned char byte = (unsigned char)t.at[i];

		if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
			r = buffer_printf(b, "\\u%04x", byte);
		else
			r = buffer_add(b, &t.at[i], 1);
	}
	return r ? r : buffer_add_text(b, "\"");
}

static int add_member(struct buffer *b, const char *name, struct text value)
{
	int r = buffer_printf(b, ",\"%s\":", name);

	return r ? r : add_string(b, value);
}

static int add_fields(struct buffer *b, const struct http_request *request)
{
	int r = buffer_add_text(b, ",\"headers\":[");

	for (size_t i = 0; i < request->field_count && !r; i++) {
		r = buffer_add_text(b, i ? ",[" : "[");
		if (!r)
			r = add_string(b, request->fields[i].name);
		if (!r)
			r = buffer_add_text(b, ",");
		if (!r)
			r = add_string(b, request->fields[i].value);
		if (!r)
			r = buffer_add_text(b, "]");
	}
	return r ? r : buffer_add_text(b, "]}\n");
}

static int add_body(struct buffer *b, const struct visit *visit, const struct http_request *request)
{
	int r = buffer_printf(b, "{\"judge\":%d,\"address\":\"%s\",\"port\":%u", JUDGE_VERSION,
			      visit->address, visit->port);

	if (!r)
		r = add_member(b, "method", request->method);
	if (!r)
		r = add_member(b, "target", request->target);
	return r ? r : add_fields(b, request);
}

/* An answer without a page. */
static int add_refusal(struct buffer *b, int status, const char *phrase, const char *fields)
{
	return buffer_printf(b, "HTTP/1.1 %d %s\r\n%s" HEAD_END, status, phrase, fields, (size_t)0);
}

static int add_page(struct visit *visit, const struct http_request *request)
{
	struct buffer body;
	int r;

	buffer_init(&body, JUDGE_ANSWER_MAX);
	r = add_body(&body, visit, request);
	if (!r)
		r = buffer_printf(&visit->out,
				  "HTTP/1.1 200 OK\r\nFairlead-Judge: %d\r\n"
				  "Content-Type: application/json\r\n" HEAD_END,
				  JUDGE_VERSION, buffer_len(&body));
	if (!r && !text_is(request->method, "HEAD"))
		r = buffer_add(&visit->out, buffer_at(&body), buffer_len(&body));
	buffer_fini(&body);
	return r;
}

/* Methods are case-sensitive (RFC 9110 9.1). CONNECT asks for a proxy, which this is not. */
static bool is_answered(struct text method)
{
	static const char *const methods[] = {"GET", "HEAD", "POST"};

	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (method.len == strlen(methods[i]) && !memcmp(method.at, methods[i], method.len))
			return true;
	return false;
}

static int add_fault(struct buffer *b, int reason)
{
	return add_refusal(b, reason_row(reason)->status, result_word(reason), "");
}

/* `head`: its length, or the negative of what is wrong with it. */
static int add_answer(struct visit *visit, long head)
{
	struct http_request request NOT_ZEROED;
	int reason;

	if (head < 0)
		return add_fault(&visit->out, (int)-head);
	reason = http_parse_request(&request, buffer_at(&visit->in), (size_t)head);
	if (reason)
		return add_fault(&visit->out, reason);
	if (!is_answered(request.method))
		return add_refusal(&visit->out, 405, "method not allowed",
				   "Allow: GET, HEAD, POST\r\n");
	return add_page(visit, &request);
}

/* --- a visit ------------------------------------------------------------------------------------------------------ */

static void watch(struct judge *judge)
{
	if (judge->visit_count < judge->max_clients)
		event_add(&judge->event, NULL);
}

static void free_visit(struct grave *grave)
{
	struct visit *visit = (struct visit *)grave;

	buffer_fini(&visit->in);
	buffer_fini(&visit->out);
	free(visit);
}

static void visit_end(struct visit *visit)
{
	struct judge *judge = visit->judge;

	alarm_fini(&visit->alarm);
	stream_close(&visit->stream);
	TAILQ_REMOVE(&judge->visits, visit, link);
	judge->visit_count--;
	watch(judge);
	visit->grave.free_object = free_visit;
	loop_bury(judge->loop, &visit->grave);
}

/* Behind the answer the end is the client's: who closes on unread bytes sends RST, which can overtake the answer. */
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

static void answer(struct visit *visit, long head)
{
	visit->has_answered = true;
	if (add_answer(visit, head)) {
		visit_end(visit);
		return;
	}
	buffer_fini(&visit->in);
	flush(visit);
}

/* Bytes were read into `in`. */
static void look(struct visit *visit, size_t len)
{
	long head;

	if (visit->has_answered)
		return; /* the request's body, or more than was asked for */
	buffer_commit(&visit->in, len);
	head = http_scan_head(&visit->scan, buffer_at(&visit->in), buffer_len(&visit->in));
	if (!head && !buffer_room(&visit->in))
		head = -REASON_REQUEST_HEAD_SIZE;
	if (head)
		answer(visit, head);
}

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct visit *visit = arg;
	size_t room = buffer_room(&visit->in);
	size_t size = room < READ_SIZE ? room : READ_SIZE;
	char *at;
	ssize_t n;

	if (ready & STREAM_WRITE) {
		flush(visit);
		return;
	}
	at = buffer_reserve(&visit->in, size);
	n = at ? stream_read(stream, at, size) : -ENOMEM;
	if (n > 0)
		look(visit, (size_t)n);
	else if (n != -EAGAIN)
		visit_end(visit);
}

static void on_late(void *arg)
{
	visit_end(arg);
}

/* --- the listener ------------------------------------------------------------------------------------------------- */

/* An IPv4 client of an IPv6 socket, which whoever handed it over may have made for both, has its own address. */
static void note_client(struct visit *visit, const struct sockaddr *peer)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* RFC 4291 2.5.5.2 */
	struct address address, carried;

	strcpy(visit->address, "unknown");
	if (address_from_sockaddr(&address, peer))
		return;
	/* The port has the same offset in both families. */
	visit->port = ntohs(((const struct sockaddr_in *)(const void *)peer)->sin_port);
	if (!memcmp(address.bytes, mapped, sizeof mapped) && address_unwrap(&address, &carried))
		address = carried;
	address_print(&address, visit->address, sizeof visit->address);
}

static int visit_new(struct judge *judge, int fd, const struct sockaddr *peer)
{
	struct visit *visit = calloc(1, sizeof *visit);

	if (!visit)
		return -ENOMEM;
	visit->judge = judge;
	buffer_init(&visit->in, REQUEST_CAP);
	buffer_init(&visit->out, ANSWER_CAP);
	note_client(visit, peer);
	alarm_init(&visit->alarm, judge->loop, on_late, visit);
	alarm_set(&visit->alarm, clock_ms() + VISIT_MS);
	stream_open(&visit->stream, judge->loop, fd, on_ready, visit);
	stream_want(&visit->stream, STREAM_READ);
	TAILQ_INSERT_TAIL(&judge->visits, visit, link);
	judge->visit_count++;
	return 0;
}

static void on_pause_over(void *arg)
{
	watch(arg);
}

/* Whoever is too much waits in the kernel's queue. So does everybody while there are no descriptors: trying without end
 * would take the processor. */
static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct judge *judge = arg;
	struct sockaddr_storage peer;
	int client = net_accept(fd, &peer);

	(void)what;
	if (client == -EAGAIN)
		return;
	if (client >= 0 && visit_new(judge, client, (struct sockaddr *)&peer)) {
		close(client);
		client = -ENOMEM;
	}
	if (client < 0)
		alarm_set(&judge->pause, clock_ms() + PAUSE_MS);
	if (client < 0 || judge->visit_count >= judge->max_clients)
		event_del(&judge->event);
}

int judge_new(struct judge **ret, struct loop *loop, int fd, size_t max_clients)
{
	struct judge *judge = calloc(1, sizeof *judge);

	if (!judge)
		return -ENOMEM;
	judge->loop = loop;
	judge->max_clients = max_clients;
	TAILQ_INIT(&judge->visits);
	alarm_init(&judge->pause, loop, on_pause_over, judge);
	event_assign(&judge->event, loop_base(loop), fd, EV_READ | EV_PERSIST, on_acceptable,
		     judge);
	event_add(&judge->event, NULL);
	*ret = judge;
	return 0;
}

void judge_free(struct judge *judge)
{
	struct visit *visit;

	if (!judge)
		return;
	while ((visit = TAILQ_FIRST(&judge->visits)))
		visit_end(visit);
	event_del(&judge->event);
	alarm_fini(&judge->pause);
	free(judge);
}
