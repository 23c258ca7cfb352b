/* socks4.c - a tunnel through a SOCKS4 proxy; a name goes to it in the form of SOCKS4A. Both are memos of 1992 and
 * 1993 without a number ("SOCKS: A protocol for TCP proxy across firewalls"). */
#include <errno.h>
#include <string.h>

#include "dial/credentials.h"
#include "dial/internal.h"

#define VERSION 4
#define COMMAND_CONNECT 1
#define REPLY_SIZE 8 /* VN, CD, port, address; the last two say nothing about a CONNECT */

enum { REPLY_GRANTED = 90, REPLY_FAILED, REPLY_NO_IDENTD, REPLY_OTHER_USER };

/* There is no IPv6; and 0.0.0.1 to 0.0.0.255 are how SOCKS4A says that a name follows. */
static int check(const struct dial *dial)
{
	const char *host = dial->request.host;
	struct address a;

	if (!host || address_parse(&a, host, strlen(host)))
		return 0;
	if (a.family != AF_INET || (!a.bytes[0] && !a.bytes[1] && !a.bytes[2] && a.bytes[3]))
		return REASON_PROXY_CANNOT;
	return 0;
}

static int begin(struct dial *dial)
{
	const uint16_t port = dial->request.port;
	const char *host = dial->request.host;
	struct address a = {.bytes = {0, 0, 0, 1}};
	bool is_name = address_parse(&a, host, strlen(host));
	const uint8_t head[] = {VERSION,    COMMAND_CONNECT, (uint8_t)(port >> 8), (uint8_t)port,
				a.bytes[0], a.bytes[1],      a.bytes[2],           a.bytes[3]};
	int r = buffer_add(&dial->out, head, sizeof head);

	if (!r)
		r = credentials_add_user(&dial->out, dial->request.proxy);
	if (!r)
		r = buffer_add(&dial->out, "", 1);
	return r || !is_name ? r : buffer_add(&dial->out, host, strlen(host) + 1);
}

static int blame(uint8_t code)
{
	switch (code) {
	case REPLY_GRANTED:
		return 0;
	case REPLY_FAILED:
		return REASON_TARGET_FAILED;
	case REPLY_NO_IDENTD:
	case REPLY_OTHER_USER:
		return REASON_PROXY_AUTH;
	default:
		return REASON_PROXY_GARBAGE;
	}
}

static int take(struct dial *dial)
{
	const uint8_t *reply = (const uint8_t *)buffer_at(&dial->in);
	size_t len = buffer_len(&dial->in);
	int r = -EAGAIN;

	if (len && reply[0] != 0)
		return REASON_PROXY_GARBAGE;
	/* A refusal needs no more than its code; some send no more. */
	if (len >= 2)
		r = blame(reply[1]);
	if (r)
		return r;
	if (len < REPLY_SIZE)
		return -EAGAIN;
	buffer_consume(&dial->in, REPLY_SIZE);
	return 0;
}

const struct dial_kind dial_socks4 = {.check = check, .begin = begin, .take = take};
