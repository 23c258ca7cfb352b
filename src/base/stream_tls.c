/* stream_tls.c - the kind of stream that speaks TLS over its socket.
 *
 * OpenSSL reaches the socket through a BIO of our own: send(2) with MSG_NOSIGNAL, for a peer that has gone must not end
 * the process, and the errors and the end of the socket as they are. Bytes that OpenSSL has read ahead make no event: a
 * timer that is due at once stands in for the socket then, so that other streams have their turn in between. */
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "base/address.h"
#include "base/stream.h"
#include "base/tls_parts.h"

struct stream_tls {
	SSL *ssl;
	struct tls *tls;
	const struct pin *pin; /* NULL: the server needs none */
	struct event more;     /* is due while OpenSSL holds what a reader wants */
	const char *trouble;
	int socket_error;    /* of the last call; 0: none */
	int end;             /* what stream_read() returns once has_ended */
	bool has_socket_end; /* recv(2) returned 0 */
	bool has_ended;
	bool is_truncated;
	bool has_more;          /* stream_read() would return something at once */
	bool needs_write;       /* in order to read, or to go on with the handshake */
	bool has_failed;        /* the protocol was broken: nothing more may be said */
	bool is_saying_goodbye; /* close_notify waits for the socket; then comes FIN */
};

/* --- the socket, as OpenSSL sees it ------------------------------------------------------------------------------- */

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct stream *stream = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	do
		n = send(stream->fd, bytes, (size_t)len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_write(bio);
	else if (n < 0)
		stream->tls->socket_error = errno;
	return (int)n;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct stream *stream = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	do
		n = recv(stream->fd, bytes, (size_t)len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	else if (n < 0)
		stream->tls->socket_error = errno;
	else if (n == 0)
		stream->tls->has_socket_end = true;
	return (int)n;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

BIO_METHOD *stream_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");

	if (!method)
		return NULL;
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_ctrl(method, bio_control);
	return method;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void tls_want(struct stream *stream)
{
	static const struct timeval at_once;
	struct stream_tls *tls = stream->tls;
	bool wants_read = stream->wanted & STREAM_READ;
	int events = stream->wanted & STREAM_WRITE;

	if (wants_read)
		events |= tls->needs_write ? STREAM_WRITE : STREAM_READ;
	if (tls->is_saying_goodbye)
		events |= STREAM_WRITE;
	stream_watch(stream, events);
	if (wants_read && tls->has_more)
		event_add(&tls->more, &at_once);
	else
		event_del(&tls->more);
}

static void on_more(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	stream->cb(stream, STREAM_READ, stream->arg);
}

static void go_on_saying_goodbye(struct stream *stream);

static int tls_ready(struct stream *stream, int event)
{
	struct stream_tls *tls = stream->tls;

	if (event == STREAM_WRITE && tls->is_saying_goodbye)
		go_on_saying_goodbye(stream);
	if (event == STREAM_WRITE && tls->needs_write && stream->wanted & STREAM_READ)
		return STREAM_READ;
	return stream->wanted & event;
}

/* --- what OpenSSL says -------------------------------------------------------------------------------------------- */

/* OpenSSL looks at the errors of its thread, whoever made them. */
static void prepare(struct stream_tls *tls)
{
	ERR_clear_error();
	tls->socket_error = 0;
}

/* An alert of the peer is an error whose number begins at SSL_AD_REASON_OFFSET. */
static int protocol_error(struct stream_tls *tls)
{
	unsigned long error = ERR_peek_error();
	const char *text = ERR_reason_error_string(error);

	tls->has_failed = true;
	tls->trouble = text ? text : "unknown error";
	if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
		return -ENOMEM;
	return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET
		   ? -ECONNABORTED
		   : -EPROTO;
}

/* Why a call that returned `r` did nothing: -EAGAIN, 0 at the peer's close_notify, else -errno. `has_socket_end` tells where
 * -ECONNRESET comes from. */
static int error_of(struct stream_tls *tls, int r)
{
	int kind = SSL_get_error(tls->ssl, r);

	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
		tls->needs_write = kind == SSL_ERROR_WANT_WRITE;
		return -EAGAIN;
	}
	if (kind == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (tls->socket_error)
		return -tls->socket_error;
	if (tls->has_socket_end)
		return -ECONNRESET;
	return protocol_error(tls);
}

/* --- reading and writing ------------------------------------------------------------------------------------------ */

static ssize_t tls_read(struct stream *stream, void *bytes, size_t len)
{
	struct stream_tls *tls = stream->tls;
	size_t done = 0, n;
	int r = 0;

	while (done < len && !tls->has_ended && r != -EAGAIN) {
		prepare(tls);
		if (SSL_read_ex(tls->ssl, (char *)bytes + done, len - done, &n)) {
			done += n;
			continue;
		}
		r = error_of(tls, 0);
		if (r == -EAGAIN)
			break;
		tls->has_ended = true;
		tls->is_truncated = tls->has_socket_end && r;
		tls->end = tls->is_truncated ? 0 : r;
	}
	if (r != -EAGAIN)
		tls->needs_write = false;
	/* What ended behind these bytes is told by the next call; the socket may not call for it. */
	tls->has_more = done && (tls->has_ended || (r != -EAGAIN && SSL_has_pending(tls->ssl)));
	tls_want(stream);
	if (done)
		return (ssize_t)done;
	return tls->has_ended ? tls->end : -EAGAIN;
}

/* Never has to read in order to write: there is no renegotiation. */
static ssize_t tls_write(struct stream *stream, const void *bytes, size_t len)
{
	struct stream_tls *tls = stream->tls;
	bool needs_write = tls->needs_write;
	size_t n;
	int r;

	prepare(tls);
	if (SSL_write_ex(tls->ssl, bytes, len, &n))
		return (ssize_t)n;
	r = error_of(tls, 0);
	tls->needs_write = needs_write;
	return r ? r : -EPIPE;
}

/* --- ending ------------------------------------------------------------------------------------------------------- */

/* Sends close_notify. False when it waits for the socket. */
static bool say_goodbye(struct stream_tls *tls)
{
	bool needs_write = tls->needs_write, is_said;

	if (tls->has_failed || !SSL_is_init_finished(tls->ssl))
		return true;
	prepare(tls);
	is_said = SSL_shutdown(tls->ssl) >= 0 || error_of(tls, -1) != -EAGAIN;
	tls->needs_write = needs_write;
	return is_said;
}

static void go_on_saying_goodbye(struct stream *stream)
{
	if (!say_goodbye(stream->tls))
		return;
	stream->tls->is_saying_goodbye = false;
	shutdown(stream->fd, SHUT_WR);
	tls_want(stream);
}

static int tls_shutdown(struct stream *stream)
{
	if (say_goodbye(stream->tls))
		return shutdown(stream->fd, SHUT_WR) ? -errno : 0;
	stream->tls->is_saying_goodbye = true;
	tls_want(stream);
	return 0;
}

static void free_tls(struct stream_tls *tls)
{
	SSL_free(tls->ssl);
	tls_free(tls->tls);
	free(tls);
}

static void tls_close(struct stream *stream, bool is_reset)
{
	struct stream_tls *tls = stream->tls;

	event_del(&tls->more);
	if (!is_reset && !(SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN))
		(void)say_goodbye(tls);
	close(stream->fd);
	free_tls(tls);
	stream->tls = NULL;
}

static const struct stream_kind secured = {
    .read = tls_read,
    .write = tls_write,
    .shutdown = tls_shutdown,
    .close = tls_close,
    .want = tls_want,
    .ready = tls_ready,
};

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* An IP address is no name that could be asked for (RFC 6066 3). */
static bool expect_server(SSL *ssl, const char *host)
{
	struct address address;

	if (!address_parse(&address, host, strlen(host)))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

int stream_start_tls(struct stream *stream, struct tls *tls, const char *host, uint16_t port)
{
	struct stream_tls *s = calloc(1, sizeof *s);
	BIO *bio = s ? BIO_new(tls->method) : NULL;

	if (!bio || tls_prepare(tls)) {
		BIO_free(bio);
		free(s);
		return -ENOMEM;
	}
	BIO_set_data(bio, stream);
	BIO_set_init(bio, 1);
	s->ssl = SSL_new(tls->context);
	if (!s->ssl || !expect_server(s->ssl, host)) {
		BIO_free(bio);
		SSL_free(s->ssl);
		free(s);
		return -ENOMEM;
	}
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_connect_state(s->ssl);
	s->tls = tls_ref(tls);
	s->pin = pin_find(tls, host, port);
	s->trouble = "";
	evtimer_assign(&s->more, event_get_base(&stream->readable), on_more, stream);
	stream->tls = s;
	stream->kind = &secured;
	return 0;
}

static int handshake_reason(struct stream_tls *tls, int error)
{
	long verdict = SSL_get_verify_result(tls->ssl);

	if (verdict != X509_V_OK) {
		tls->trouble = X509_verify_cert_error_string(verdict);
		return REASON_PROXY_CERTIFICATE;
	}
	if (error == -ECONNABORTED && tls->has_failed)
		return REASON_PROXY_ALERT;
	return error == -EPROTO || error == 0 ? REASON_PROXY_TLS : error;
}

int stream_handshake(struct stream *stream)
{
	struct stream_tls *tls = stream->tls;
	int r;

	if (!tls)
		return 0;
	prepare(tls);
	r = SSL_do_handshake(tls->ssl);
	if (r != 1) {
		r = error_of(tls, r);
		tls_want(stream);
		return r == -EAGAIN ? r : handshake_reason(tls, r);
	}
	tls->needs_write = false;
	if (tls->pin && !pin_is_met(tls->pin, tls->ssl)) {
		tls->has_failed = true;
		tls->trouble = "the public key is not the one that is pinned";
		return REASON_PROXY_CERTIFICATE;
	}
	/* Bytes may have come together with the end of the handshake. */
	tls->has_more = SSL_has_pending(tls->ssl);
	tls_want(stream);
	return 0;
}

const char *stream_trouble(const struct stream *stream)
{
	return stream->tls ? stream->tls->trouble : "";
}

bool stream_is_truncated(const struct stream *stream)
{
	return stream->tls && stream->tls->is_truncated;
}
