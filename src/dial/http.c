/* http.c - a tunnel through an HTTP proxy: CONNECT (RFC 9110 9.3.6), to an https proxy through TLS. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dial/credentials.h"
#include "dial/internal.h"

static int begin(struct dial *dial)
{
	bool is_v6 = strchr(dial->request.host, ':');
	char authority[300];
	int r;

	snprintf(authority, sizeof authority, is_v6 ? "[%s]:%u" : "%s:%u", dial->request.host,
		 dial->request.port);
	r = buffer_printf(&dial->out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", authority, authority);
	if (!r)
		r = credentials_add_basic(&dial->out, dial->request.proxy);
	return r ? r : buffer_add_text(&dial->out, "\r\n");
}

/* What an answer other than 2xx says. The target's, unless a probe shows otherwise; what asks for something that we do
 * not have is the proxy's; what the proxy does not do at all is nobody's fault. */
static int blame(int status)
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
		return status >= 200 && status < 300 ? 0 : REASON_PROXY_CANNOT;
	}
}

static int take(struct dial *dial)
{
	const struct text connect = {"CONNECT", 7};
	struct http_response response;
	long head;

	do {
		head = http_scan_head(&dial->scan, buffer_at(&dial->in), buffer_len(&dial->in));
		if (head == 0)
			return buffer_room(&dial->in) ? -EAGAIN : REASON_PROXY_GARBAGE;
		if (head < 0 ||
		    http_parse_response(&response, buffer_at(&dial->in), (size_t)head, connect))
			return REASON_PROXY_GARBAGE;
		/* RFC 9110 15.2.2: only in answer to an Upgrade. */
		if (response.status == 101)
			return REASON_PROXY_GARBAGE;
		buffer_consume(&dial->in, (size_t)head);
		dial->scan = (struct http_scan){0};
		/* Any number of 1xx may come first (RFC 9110 15.2), within the deadline. */
	} while (response.status < 200 && buffer_len(&dial->in));
	if (response.status < 200)
		return -EAGAIN;
	dial->received_status = response.status;
	return blame(response.status);
}

const struct dial_kind dial_http = {.is_forward = true, .begin = begin, .take = take};
const struct dial_kind dial_https = {
    .is_forward = true, .is_tls = true, .begin = begin, .take = take};
