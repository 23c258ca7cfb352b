/* dial.c - reach a target through one proxy: the steps that all kinds share. */
#include "dial/dial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/net.h"
#include "base/tls.h"
#include "dial/internal.h"

#define IN_CAP (HTTP_HEAD_MAX + 16384)
#define OUT_CAP ((size_t)32768)
#define READ_SIZE ((size_t)1024) /* most answers are shorter, and longer ones are read in steps */

/* What distinguishes socks5h and socks4a elsewhere, that the proxy looks up the target's name, holds for all here. */
static const struct dial_kind *const kinds[SCHEME_COUNT] = {
    [SCHEME_HTTP] = &dial_http,     [SCHEME_HTTPS] = &dial_https,
    [SCHEME_SOCKS4] = &dial_socks4, [SCHEME_SOCKS4A] = &dial_socks4,
    [SCHEME_SOCKS5] = &dial_socks5, [SCHEME_SOCKS5H] = &dial_socks5,
    [SCHEME_DIRECT] = &dial_direct,
};

static const struct dial_kind *kind_of(const struct dial *dial)
{
	return kinds[dial->request.proxy->scheme];
}

bool dial_forwards(const struct endpoint *proxy)
{
	return kinds[proxy->scheme]->is_forward;
}

int dial_received_status(const struct dial *dial)
{
	return dial->received_status;
}

/* --- end ---------------------------------------------------------------------------------------------------------- */

static void free_dial(struct grave *grave)
{
	struct dial *dial = (struct dial *)grave;

	tls_free(dial->request.tls);
	buffer_fini(&dial->in);
	buffer_fini(&dial->out);
	free(dial);
}

static void release(struct dial *dial)
{
	dial->state = DIAL_ENDED;
	alarm_fini(&dial->alarm);
	resolve_cancel(dial->resolve);
	dial->resolve = NULL;
	if (!dial->is_taken)
		stream_close(dial->request.stream);
	dial->grave.free_object = free_dial;
	loop_bury(dial->loop, &dial->grave);
}

static void finish(struct dial *dial, int result)
{
	dial->state = DIAL_ENDED;
	dial->cb(result, dial, dial->arg);
	release(dial);
}

void dial_cancel(struct dial *dial)
{
	if (dial && dial->state != DIAL_ENDED)
		release(dial);
}

void dial_take(struct dial *dial, stream_cb *cb, void *arg, const char **ret_early, size_t *ret_len)
{
	stream_hand_over(dial->request.stream, cb, arg);
	dial->is_taken = true;
	*ret_early = buffer_at(&dial->in);
	*ret_len = buffer_len(&dial->in);
}

/* --- handshake ---------------------------------------------------------------------------------------------------- */

static void flush(struct dial *dial)
{
	ssize_t n;

	while (buffer_len(&dial->out)) {
		n = stream_write(dial->request.stream, buffer_at(&dial->out),
				 buffer_len(&dial->out));
		if (n == -EAGAIN)
			break;
		if (n < 0) /* its last words may still be there to be read */
			buffer_fini(&dial->out);
		else
			buffer_consume(&dial->out, (size_t)n);
	}
	stream_want(dial->request.stream,
		    STREAM_READ | (buffer_len(&dial->out) ? STREAM_WRITE : 0));
}

/* How the connection to the proxy ended: `error` as stream_read() and stream_handshake() give it. */
static int broken_reason(const struct dial *dial, int error)
{
	const char *trouble = stream_trouble(dial->request.stream);

	if (*trouble)
		log_debug("TLS with a proxy failed", LOG_TEXT("host", dial->request.proxy->host),
			  LOG_TEXT("why", trouble));
	switch (error) {
	case -ENOMEM:
		return REASON_INTERNAL;
	case -EPROTO:
		return REASON_PROXY_TLS;
	case -ECONNABORTED:
		return REASON_PROXY_ALERT;
	default:
		return error > 0 ? error : REASON_PROXY_RESET;
	}
}

static void on_readable(struct dial *dial)
{
	size_t room = buffer_room(&dial->in) < READ_SIZE ? buffer_room(&dial->in) : READ_SIZE;
	char *at = buffer_reserve(&dial->in, room);
	ssize_t n = at ? stream_read(dial->request.stream, at, room) : -ENOMEM;
	int r;

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		finish(dial, broken_reason(dial, (int)n));
		return;
	}
	buffer_commit(&dial->in, (size_t)n);
	r = kind_of(dial)->take(dial);
	if (r == -EAGAIN)
		flush(dial);
	else
		finish(dial, r < 0 ? REASON_INTERNAL : r);
}

static void begin_handshake(struct dial *dial)
{
	const struct dial_kind *kind = kind_of(dial);

	dial->state = DIAL_HANDSHAKE;
	if (!kind->begin || (dial->request.is_plain && kind->is_forward) ||
	    (!dial->request.host && !kind->has_greeting)) {
		finish(dial, 0);
		return;
	}
	if (kind->begin(dial)) {
		finish(dial, REASON_INTERNAL);
		return;
	}
	flush(dial);
}

/* --- TLS ---------------------------------------------------------------------------------------------------------- */

static void go_on_with_tls(struct dial *dial)
{
	int r = stream_handshake(dial->request.stream);

	if (!r)
		begin_handshake(dial);
	else if (r != -EAGAIN)
		finish(dial, broken_reason(dial, r));
}

static void connected(struct dial *dial)
{
	const struct endpoint *proxy = dial->request.proxy;

	if (!kind_of(dial)->is_tls) {
		begin_handshake(dial);
		return;
	}
	dial->state = DIAL_TLS;
	if (stream_start_tls(dial->request.stream, dial->request.tls, proxy->host, proxy->port)) {
		finish(dial, REASON_INTERNAL);
		return;
	}
	stream_want(dial->request.stream, STREAM_READ);
	go_on_with_tls(dial);
}

/* --- connect ------------------------------------------------------------------------------------------------------ */

/* What a failed connect(2) says. */
static int connect_reason(const struct dial *dial, int error)
{
	bool direct = kind_of(dial)->is_direct;

	switch (-error) {
	case ECONNREFUSED:
		return direct ? REASON_TARGET_REFUSED : REASON_PROXY_REFUSED;
	case ETIMEDOUT:
		return direct ? REASON_TARGET_TIMEOUT : REASON_PROXY_TIMEOUT;
	case ECONNRESET:
		return direct ? REASON_TARGET_REFUSED : REASON_PROXY_RESET;
	case EMFILE:
	case ENFILE:
		return REASON_NO_DESCRIPTORS;
	case EADDRNOTAVAIL:
		return REASON_NO_SOURCE_PORT;
	case EAFNOSUPPORT: /* an IPv6 target from an IPv4 address, or one that this host does not have */
		return REASON_PROXY_CANNOT;
	default:
		return direct ? REASON_TARGET_UNREACHABLE : REASON_PROXY_UNREACHABLE;
	}
}

static void on_ready(struct stream *stream, int ready, void *arg);

static uint16_t port_of(const struct dial *dial)
{
	return kind_of(dial)->is_direct ? dial->request.port : dial->request.proxy->port;
}

/* The very address that is connected to is the one that is judged. */
static bool is_admitted(const struct dial *dial, const struct address *address)
{
	const struct dial_request *request = &dial->request;

	if (!request->is_admitted)
		return !address_is_special(address);
	return request->is_admitted(address, port_of(dial), kind_of(dial)->is_direct, request->arg);
}

/* The local address of a direct member; false: any. */
static bool source_of(const struct dial *dial, struct address *ret)
{
	const char *host = dial->request.proxy->host;

	return kind_of(dial)->is_direct && *host && !address_parse(ret, host, strlen(host));
}

static int connect_next(struct dial *dial)
{
	const struct address *address = &dial->addresses[dial->address_next++];
	struct address source;
	struct sockaddr_storage sa;
	socklen_t len;
	int fd;

	if (!is_admitted(dial, address))
		return kind_of(dial)->is_direct ? REASON_TARGET_PROHIBITED
						: REASON_PROXY_PROHIBITED;
	len = address_to_sockaddr(address, port_of(dial), &sa);
	fd = net_connect((struct sockaddr *)&sa, len, source_of(dial, &source) ? &source : NULL);
	if (fd < 0)
		return connect_reason(dial, fd);
	stream_open(dial->request.stream, dial->loop, fd, on_ready, dial);
	stream_want(dial->request.stream, STREAM_WRITE);
	return 0;
}

/* Tries the addresses that are left, one after the other. */
static void connect_any(struct dial *dial)
{
	dial->state = DIAL_CONNECT;
	while (dial->address_next < dial->address_count) {
		dial->result = connect_next(dial);
		if (!dial->result)
			return;
	}
	finish(dial, dial->result);
}

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct dial *dial = arg;
	int r;

	if (dial->state == DIAL_CONNECT) {
		r = stream_connect_result(stream);
		if (!r) {
			connected(dial);
			return;
		}
		dial->result = connect_reason(dial, r);
		stream_close(stream);
		connect_any(dial);
	} else if (dial->state == DIAL_TLS) {
		go_on_with_tls(dial);
	} else if (ready & STREAM_READ) {
		on_readable(dial);
	} else {
		flush(dial);
	}
}

/* --- look up ------------------------------------------------------------------------------------------------------ */

static void on_resolved(int result, const struct address *addresses, size_t count, void *arg)
{
	struct dial *dial = arg;

	dial->resolve = NULL;
	if (result) {
		finish(dial, kind_of(dial)->is_direct ? REASON_TARGET_NAME : REASON_PROXY_NAME);
		return;
	}
	memcpy(dial->addresses, addresses, count * sizeof *addresses);
	dial->address_count = count;
	connect_any(dial);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static int timeout_reason(const struct dial *dial)
{
	if (kind_of(dial)->is_direct)
		return dial->state == DIAL_LOOKUP ? REASON_TARGET_NAME : REASON_TARGET_TIMEOUT;
	switch (dial->state) {
	case DIAL_LOOKUP:
		return REASON_PROXY_NAME;
	case DIAL_CONNECT:
		return REASON_PROXY_TIMEOUT;
	case DIAL_TLS:
	case DIAL_HANDSHAKE:
	case DIAL_ENDED:
		break;
	}
	return REASON_PROXY_SILENT;
}

/* One alarm for both limits: at the first a connection must stand, the second covers all. It also brings what is known
 * before the first step to the callback. */
static void on_alarm(void *arg)
{
	struct dial *dial = arg;

	if (dial->result && dial->state == DIAL_LOOKUP)
		finish(dial, dial->result);
	else if (dial->state > DIAL_CONNECT && clock_ms() < dial->deadline_ms)
		alarm_set(&dial->alarm, dial->deadline_ms);
	else
		finish(dial, timeout_reason(dial));
}

/* --- begin -------------------------------------------------------------------------------------------------------- */

/* The first step; what fails at once is told from the loop. */
static int first_step(struct dial *dial)
{
	const struct dial_kind *kind = kind_of(dial);
	const char *host;

	if (kind->is_tls && !dial->request.tls)
		return REASON_PROXY_CANNOT;
	dial->result = kind->check ? kind->check(dial) : 0;
	if (dial->result)
		return dial->result;
	host = kind->is_direct ? dial->request.host : dial->request.proxy->host;
	if (address_parse(&dial->addresses[0], host, strlen(host)))
		return resolve_start(&dial->resolve, dial->loop, host, on_resolved, dial)
			   ? REASON_INTERNAL
			   : 0;
	dial->address_count = 1;
	dial->result = connect_next(dial);
	if (!dial->result)
		dial->state = DIAL_CONNECT;
	return dial->result;
}

int dial_start(struct dial **ret, struct loop *loop, const struct dial_request *request,
	       dial_cb *cb, void *arg)
{
	struct dial *dial = calloc(1, sizeof *dial);
	int64_t now = clock_ms();

	if (!dial)
		return -ENOMEM;
	dial->loop = loop;
	dial->request = *request;
	tls_ref(dial->request.tls);
	dial->cb = cb;
	dial->arg = arg;
	dial->deadline_ms = now + request->total_ms;
	buffer_init(&dial->in, IN_CAP);
	buffer_init(&dial->out, OUT_CAP);
	alarm_init(&dial->alarm, loop, on_alarm, dial);
	dial->result = first_step(dial);
	alarm_set(&dial->alarm, dial->result ? now
					     : now + (request->connect_ms < request->total_ms
							  ? request->connect_ms
							  : request->total_ms));
	*ret = dial;
	return 0;
}
