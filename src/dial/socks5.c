/* socks5.c - a tunnel through a SOCKS5 proxy (RFC 1928), with user and password where it wants them (RFC 1929). */
#include <errno.h>
#include <string.h>

#include "dial/credentials.h"
#include "dial/internal.h"

#define VERSION 5
#define COMMAND_CONNECT 1
#define PASSWORD_VERSION 1
#define HEAD_SIZE 4 /* VER, REP, RSV, ATYP */
#define PORT_SIZE 2

enum { METHOD_NONE = 0, METHOD_PASSWORD = 2, METHOD_UNACCEPTABLE = 0xff };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };
enum { STEP_METHOD, STEP_PASSWORD, STEP_REPLY };

/* Credentials that the protocol cannot carry are as good as wrong ones. */
static int check(const struct dial *dial)
{
	return credentials_fit_socks5(dial->request.proxy) ? 0 : REASON_PROXY_AUTH;
}

static int begin(struct dial *dial)
{
	static const uint8_t anonymous[] = {VERSION, 1, METHOD_NONE};
	static const uint8_t either[] = {VERSION, 2, METHOD_NONE, METHOD_PASSWORD};

	dial->step = STEP_METHOD;
	return dial->request.proxy->secret ? buffer_add(&dial->out, either, sizeof either)
					   : buffer_add(&dial->out, anonymous, sizeof anonymous);
}

static int name_target(struct dial *dial)
{
	const uint8_t port[] = {(uint8_t)(dial->request.port >> 8), (uint8_t)dial->request.port};
	const char *host = dial->request.host;
	size_t len = strlen(host);
	const uint8_t name[] = {VERSION, COMMAND_CONNECT, 0, TYPE_NAME, (uint8_t)len};
	uint8_t head[] = {VERSION, COMMAND_CONNECT, 0, TYPE_IPV4};
	struct address a;
	bool is_name = address_parse(&a, host, len);
	int r;

	if (is_name) {
		if (len > UINT8_MAX)
			return -EMSGSIZE;
		r = buffer_add(&dial->out, name, sizeof name);
	} else {
		head[3] = a.family == AF_INET6 ? TYPE_IPV6 : TYPE_IPV4;
		r = buffer_add(&dial->out, head, sizeof head);
	}
	if (!r)
		r = is_name ? buffer_add(&dial->out, host, len)
			    : buffer_add(&dial->out, a.bytes, a.family == AF_INET6 ? 16 : 4);
	if (!r)
		r = buffer_add(&dial->out, port, sizeof port);
	dial->step = STEP_REPLY;
	return r ? r : -EAGAIN;
}

/* The greeting is over. */
static int ask_for_target(struct dial *dial)
{
	return dial->request.host ? name_target(dial) : 0;
}

/* VER, METHOD */
static int take_method(struct dial *dial, const uint8_t *bytes, size_t len)
{
	uint8_t method;
	int r;

	if (len && bytes[0] != VERSION)
		return REASON_PROXY_GARBAGE;
	if (len < 2)
		return -EAGAIN;
	method = bytes[1];
	buffer_consume(&dial->in, 2);
	if (method == METHOD_UNACCEPTABLE)
		return REASON_PROXY_AUTH;
	if (method == METHOD_NONE)
		return ask_for_target(dial);
	if (method != METHOD_PASSWORD || !dial->request.proxy->secret)
		return REASON_PROXY_GARBAGE;
	dial->step = STEP_PASSWORD;
	r = credentials_add_socks5(&dial->out, dial->request.proxy);
	return r ? r : -EAGAIN;
}

/* RFC 1929 2: VER, STATUS */
static int take_password(struct dial *dial, const uint8_t *bytes, size_t len)
{
	if (len && bytes[0] != PASSWORD_VERSION)
		return REASON_PROXY_GARBAGE;
	if (len < 2)
		return -EAGAIN;
	if (bytes[1])
		return REASON_PROXY_AUTH;
	buffer_consume(&dial->in, 2);
	return ask_for_target(dial);
}

/* RFC 1928 6. What the proxy does not do at all is nobody's fault. */
static int blame(uint8_t code)
{
	static const int reasons[] = {
	    0,
	    REASON_TARGET_FAILED,
	    REASON_TARGET_DENIED,
	    REASON_TARGET_UNREACHABLE, /* network */
	    REASON_TARGET_FAILED, /* host unreachable: a reply of its own, as towards our clients */
	    REASON_TARGET_REFUSED,
	    REASON_TARGET_TIMEOUT, /* TTL expired */
	    REASON_PROXY_CANNOT,   /* command */
	    REASON_PROXY_CANNOT,   /* address type */
	};

	return code < sizeof reasons / sizeof *reasons ? reasons[code] : REASON_PROXY_GARBAGE;
}

/* The length of a reply of which at least the head is there; a name's own length may be still to come. 0: there is no such
 * type. */
static size_t reply_size(const uint8_t *bytes, size_t len)
{
	switch (bytes[3]) {
	case TYPE_IPV4:
		return HEAD_SIZE + 4 + PORT_SIZE;
	case TYPE_IPV6:
		return HEAD_SIZE + 16 + PORT_SIZE;
	case TYPE_NAME:
		return HEAD_SIZE + 1 + (len > HEAD_SIZE ? bytes[4] : 0U) + PORT_SIZE;
	default:
		return 0;
	}
}

/* VER, REP, RSV, ATYP, BND.ADDR, BND.PORT */
static int take_reply(struct dial *dial, const uint8_t *bytes, size_t len)
{
	size_t size;
	int r;

	if (len && bytes[0] != VERSION)
		return REASON_PROXY_GARBAGE;
	/* A refusal needs no more than its code; some send no more. */
	r = len < 2 ? -EAGAIN : blame(bytes[1]);
	if (r)
		return r;
	if (len > 2 && bytes[2] != 0)
		return REASON_PROXY_GARBAGE;
	if (len < HEAD_SIZE)
		return -EAGAIN;
	size = reply_size(bytes, len);
	if (!size)
		return REASON_PROXY_GARBAGE;
	if (len < size)
		return -EAGAIN;
	buffer_consume(&dial->in, size);
	return 0;
}

/* Answers to questions that have not been put yet are taken as they come, so that it never matters how bytes arrive. */
static int take(struct dial *dial)
{
	static int (*const steps[])(struct dial *, const uint8_t *, size_t) = {
	    [STEP_METHOD] = take_method,
	    [STEP_PASSWORD] = take_password,
	    [STEP_REPLY] = take_reply,
	};
	int step, r;

	do {
		step = dial->step;
		r = steps[step](dial, (const uint8_t *)buffer_at(&dial->in), buffer_len(&dial->in));
	} while (r == -EAGAIN && dial->step != step && buffer_len(&dial->in));
	return r;
}

const struct dial_kind dial_socks5 = {
    .has_greeting = true, .check = check, .begin = begin, .take = take};
