/* blame.c - the one table that maps (CURLcode, CURLINFO_PROXY_ERROR, CONNECT status) to reasons. */
#include "fetch/blame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- what OpenSSL says -------------------------------------------------------------------------------------------- */

#define OPENSSL_REASON_MASK 0x7fffffUL /* ERR_GET_REASON() of OpenSSL 3 */
#define OPENSSL_EOF 294                /* SSL_R_UNEXPECTED_EOF_WHILE_READING */
#define OPENSSL_ALERT 1000 /* SSL_AD_REASON_OFFSET: an alert of the other side, up to 255 more */

/* libcurl quotes ERR_error_string_n(): "error:0A000410:SSL routines::...". Without one the connection broke. */
static enum reason tls_reason(const struct blame *blame)
{
	const char *quoted = strstr(blame->words, "error:");
	unsigned long code = quoted ? strtoul(quoted + 6, NULL, 16) & OPENSSL_REASON_MASK : 0;

	if (!code || code == OPENSSL_EOF)
		return REASON_PROXY_RESET;
	return code >= OPENSSL_ALERT && code < OPENSSL_ALERT + 256 ? REASON_PROXY_ALERT
								   : REASON_PROXY_TLS;
}

/* In TLS 1.3 an alert about the handshake can come behind it. */
static enum reason break_reason(const struct blame *blame)
{
	return strstr(blame->words, "error:") ? tls_reason(blame) : REASON_PROXY_RESET;
}

/* --- what the system says ----------------------------------------------------------------------------------------- */

static enum reason connect_reason(const struct blame *blame)
{
	switch (blame->os_error) {
	case ECONNREFUSED:
		return REASON_PROXY_REFUSED;
	case ETIMEDOUT:
		return REASON_PROXY_TIMEOUT;
	case ECONNRESET:
		return REASON_PROXY_RESET;
	case EMFILE:
	case ENFILE:
		return REASON_NO_DESCRIPTORS;
	case EADDRNOTAVAIL:
		return REASON_NO_SOURCE_PORT;
	case EAFNOSUPPORT:
		return REASON_PROXY_CANNOT;
	default:
		return REASON_PROXY_UNREACHABLE;
	}
}

/* --- what a SOCKS proxy says -------------------------------------------------------------------------------------- */

static enum reason socks_reason(const struct blame *blame)
{
	static const enum reason reasons[CURLPX_LAST] = {
	    [CURLPX_BAD_ADDRESS_TYPE] = REASON_PROXY_GARBAGE,
	    [CURLPX_BAD_VERSION] = REASON_PROXY_GARBAGE,
	    [CURLPX_CLOSED] = REASON_PROXY_RESET,
	    [CURLPX_GSSAPI] = REASON_PROXY_GARBAGE, /* a method that was not offered */
	    [CURLPX_GSSAPI_PERMSG] = REASON_PROXY_GARBAGE,
	    [CURLPX_GSSAPI_PROTECTION] = REASON_PROXY_GARBAGE,
	    [CURLPX_IDENTD] = REASON_PROXY_AUTH,
	    [CURLPX_IDENTD_DIFFER] = REASON_PROXY_AUTH,
	    [CURLPX_LONG_HOSTNAME] = REASON_PROXY_CANNOT,
	    [CURLPX_LONG_PASSWD] = REASON_PROXY_AUTH,
	    [CURLPX_LONG_USER] = REASON_PROXY_AUTH,
	    [CURLPX_NO_AUTH] = REASON_PROXY_AUTH,
	    [CURLPX_RECV_ADDRESS] = REASON_PROXY_RESET,
	    [CURLPX_RECV_AUTH] = REASON_PROXY_RESET,
	    [CURLPX_RECV_CONNECT] = REASON_PROXY_RESET,
	    [CURLPX_RECV_REQACK] = REASON_PROXY_RESET,
	    [CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED] = REASON_PROXY_CANNOT,
	    [CURLPX_REPLY_COMMAND_NOT_SUPPORTED] = REASON_PROXY_CANNOT,
	    [CURLPX_REPLY_CONNECTION_REFUSED] = REASON_TARGET_REFUSED,
	    [CURLPX_REPLY_GENERAL_SERVER_FAILURE] = REASON_TARGET_FAILED,
	    [CURLPX_REPLY_HOST_UNREACHABLE] = REASON_TARGET_FAILED,
	    [CURLPX_REPLY_NETWORK_UNREACHABLE] = REASON_TARGET_UNREACHABLE,
	    [CURLPX_REPLY_NOT_ALLOWED] = REASON_TARGET_DENIED,
	    [CURLPX_REPLY_TTL_EXPIRED] = REASON_TARGET_TIMEOUT,
	    [CURLPX_REPLY_UNASSIGNED] = REASON_PROXY_GARBAGE,
	    [CURLPX_REQUEST_FAILED] = REASON_TARGET_FAILED,
	    [CURLPX_RESOLVE_HOST] = REASON_PROXY_CANNOT, /* SOCKS4 and a name or IPv6: never here */
	    [CURLPX_SEND_AUTH] = REASON_PROXY_RESET,
	    [CURLPX_SEND_CONNECT] = REASON_PROXY_RESET,
	    [CURLPX_SEND_REQUEST] = REASON_PROXY_RESET,
	    [CURLPX_UNKNOWN_FAIL] = REASON_PROXY_GARBAGE,
	    [CURLPX_UNKNOWN_MODE] = REASON_PROXY_GARBAGE,
	    [CURLPX_USER_REJECTED] = REASON_PROXY_AUTH,
	};
	enum reason reason =
	    blame->proxy_code < CURLPX_LAST ? reasons[blame->proxy_code] : REASON_OK;

	return reason ? reason : REASON_PROXY_GARBAGE;
}

/* --- what an HTTP proxy says -------------------------------------------------------------------------------------- */

enum reason blame_connect_status(int status)
{
	switch (status) {
	case 401: /* what tinyproxy says to a wrong password; a target cannot have said it */
	case 407:
		return REASON_PROXY_AUTH;
	case 403:
		return REASON_TARGET_DENIED;
	case 404:
		return REASON_TARGET_UNKNOWN;
	case 500: /* what tinyproxy says when it could not reach the target */
	case 502:
	case 503:
		return REASON_TARGET_FAILED;
	case 504:
		return REASON_TARGET_TIMEOUT;
	default:
		return status >= 200 && status < 300 ? REASON_OK : REASON_PROXY_CANNOT;
	}
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static enum reason timeout_reason(const struct blame *blame)
{
	static const enum reason reasons[PHASE_COUNT] = {
	    [PHASE_NAME] = REASON_PROXY_NAME,          [PHASE_CONNECT] = REASON_PROXY_TIMEOUT,
	    [PHASE_HANDSHAKE] = REASON_PROXY_SILENT,   [PHASE_TARGET_TLS] = REASON_RESPONSE_TIMEOUT,
	    [PHASE_REQUEST] = REASON_RESPONSE_TIMEOUT, [PHASE_BODY] = REASON_RESPONSE_TIMEOUT,
	};

	return reasons[blame->phase];
}

/* Newer libcurl has caps of its own. */
#define CURLE_TOO_LARGE_8_6 ((CURLcode)100)

static const struct blame_row {
	CURLcode code;
	enum reason (*ask)(const struct blame *blame); /* in place of `head` */
	enum reason head, body; /* until the head of the response was there, and behind it */
} rows[] = {
    {CURLE_OPERATION_TIMEDOUT, timeout_reason, 0, REASON_RESPONSE_TIMEOUT},
    {CURLE_COULDNT_RESOLVE_PROXY, NULL, REASON_PROXY_NAME, REASON_PROXY_NAME},
    {CURLE_COULDNT_RESOLVE_HOST, NULL, REASON_TARGET_NAME, REASON_TARGET_NAME},
    {CURLE_COULDNT_CONNECT, connect_reason, 0, 0},
    {CURLE_PROXY, socks_reason, 0, 0},
    {CURLE_PEER_FAILED_VERIFICATION, NULL, REASON_PROXY_CERTIFICATE, 0},
    {CURLE_SSL_CONNECT_ERROR, tls_reason, 0, REASON_RESPONSE_INCOMPLETE},
    {CURLE_SEND_ERROR, break_reason, 0, REASON_RESPONSE_INCOMPLETE},
    {CURLE_RECV_ERROR, break_reason, 0, REASON_RESPONSE_INCOMPLETE},
    {CURLE_GOT_NOTHING, NULL, REASON_PROXY_RESET, REASON_RESPONSE_INCOMPLETE},
    {CURLE_PARTIAL_FILE, NULL, REASON_RESPONSE_INCOMPLETE, REASON_RESPONSE_INCOMPLETE},
    {CURLE_HTTP2, NULL, REASON_RESPONSE_INCOMPLETE, REASON_RESPONSE_INCOMPLETE},
    {CURLE_HTTP2_STREAM, NULL, REASON_RESPONSE_INCOMPLETE, REASON_RESPONSE_INCOMPLETE},
    /* What is no HTTP/1 at all is an unsupported protocol to libcurl, as a redirect to file: is. */
    {CURLE_UNSUPPORTED_PROTOCOL, NULL, REASON_RESPONSE_SYNTAX, REASON_RESPONSE_REDIRECT},
    {CURLE_URL_MALFORMAT, NULL, 0, REASON_RESPONSE_REDIRECT},
    {CURLE_TOO_MANY_REDIRECTS, NULL, 0, REASON_RESPONSE_REDIRECT},
    {CURLE_WEIRD_SERVER_REPLY, NULL, REASON_RESPONSE_SYNTAX, REASON_RESPONSE_SYNTAX},
    {CURLE_BAD_FUNCTION_ARGUMENT, NULL, REASON_RESPONSE_SYNTAX, 0}, /* a field without a colon */
    {CURLE_TOO_LARGE_8_6, NULL, REASON_RESPONSE_HEAD_SIZE, 0},
    {CURLE_BAD_CONTENT_ENCODING, NULL, REASON_RESPONSE_SYNTAX, REASON_RESPONSE_SYNTAX},
    {CURLE_WRITE_ERROR, NULL, 0, REASON_RESPONSE_SYNTAX}, /* not ours: the decoder's */
};

static enum reason table_reason(const struct blame *blame)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].code != blame->code)
			continue;
		if (blame->phase == PHASE_BODY)
			return rows[i].body;
		return rows[i].ask ? rows[i].ask(blame) : rows[i].head;
	}
	return REASON_INTERNAL;
}

/* --- whose word it was -------------------------------------------------------------------------------------------- */

/* Up to the handshake all answers are the member's. */
static enum reason of_member(enum reason reason)
{
	return reason == REASON_RESPONSE_SYNTAX || reason == REASON_RESPONSE_HEAD_SIZE
		   ? REASON_PROXY_GARBAGE
		   : reason;
}

/* What came through TLS is the target's; but it may be the member that cut it off. */
static enum reason of_target(enum reason reason, enum phase phase)
{
	switch ((int)reason) {
	case REASON_PROXY_TLS:
	case REASON_PROXY_ALERT:
		return REASON_TARGET_TLS;
	case REASON_PROXY_CERTIFICATE:
		return REASON_TARGET_CERTIFICATE;
	case REASON_RESPONSE_SYNTAX:
	case REASON_RESPONSE_HEAD_SIZE:
		return REASON_TARGET_FAILED;
	case REASON_PROXY_RESET:
		return phase == PHASE_TARGET_TLS ? REASON_PROXY_RESET : REASON_RESPONSE_INCOMPLETE;
	default:
		return reason;
	}
}

/* A direct member is no proxy that could have done it. */
static enum reason without_proxy(enum reason reason)
{
	switch ((int)reason) {
	case REASON_PROXY_REFUSED:
		return REASON_TARGET_REFUSED;
	case REASON_PROXY_NAME:
		return REASON_TARGET_NAME;
	case REASON_PROXY_TIMEOUT:
		return REASON_TARGET_TIMEOUT;
	case REASON_PROXY_UNREACHABLE:
		return REASON_TARGET_UNREACHABLE;
	case REASON_PROXY_RESET:
	case REASON_RESPONSE_SYNTAX:
	case REASON_RESPONSE_HEAD_SIZE:
		return REASON_TARGET_FAILED;
	default:
		return reason;
	}
}

enum reason blame_reason(const struct blame *blame)
{
	enum reason reason = blame->known ? blame->known : table_reason(blame);

	if (blame->phase < PHASE_TARGET_TLS)
		reason = of_member(reason);
	else if (blame->is_tls)
		reason = of_target(reason, blame->phase);
	if (blame->scheme == SCHEME_DIRECT)
		reason = without_proxy(reason);
	return reason ? reason : REASON_INTERNAL;
}
