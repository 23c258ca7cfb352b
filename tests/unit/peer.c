/* peer.c - the far side of a connection, played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/net.h"

static void listen_at(struct peer *peer, struct stage *stage, const char *text)
{
	struct net_place place;

	*peer = (struct peer){.stage = stage, .fd = -1};
	assert_int_equal(net_place_parse(&place, text), 0);
	peer->listener = net_listen(&place);
	assert_true(peer->listener >= 0);
	assert_int_equal(net_local_place(peer->listener, &place), 0);
	peer->port = ntohs(((const struct sockaddr_in *)&place.sa)->sin_port);
}

void peer_listen(struct peer *peer, struct stage *stage, const char *host)
{
	char text[80];

	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:0" : "%s:0", host);
	listen_at(peer, stage, text);
}

void peer_listen_unix(struct peer *peer, struct stage *stage, const char *path)
{
	char text[128];

	snprintf(text, sizeof(text), "unix:%s", path);
	listen_at(peer, stage, text);
	snprintf(peer->path, sizeof(peer->path), "%s", path);
}

void peer_fini(struct peer *peer)
{
	peer_close(peer);
	close(peer->listener);
	if (peer->path[0])
		unlink(peer->path);
}

static int try_accept(struct peer *peer)
{
	struct sockaddr_storage from;

	peer->fd = net_accept(peer->listener, &from);
	return peer->fd;
}

void peer_accept(struct peer *peer)
{
	peer_close(peer);
	STAGE_UNTIL(peer->stage, try_accept(peer) >= 0);
	peer_forget(peer);
}

bool peer_is_called(const struct peer *peer)
{
	struct pollfd call = {.fd = peer->listener, .events = POLLIN};

	return poll(&call, 1, 0) == 1;
}

void peer_listen_up(struct peer *peer)
{
	size_t room = sizeof(peer->heard) - 1 - peer->heard_len;
	ssize_t n = recv(peer->fd, peer->heard + peer->heard_len, room, 0);

	peer->heard_len += n > 0 ? (size_t)n : 0;
	peer->heard[peer->heard_len] = '\0';
}

static bool has_heard(struct peer *peer, const char *text)
{
	peer_listen_up(peer);
	return strstr(peer->heard, text) != NULL;
}

void peer_expect(struct peer *peer, const char *text)
{
	STAGE_UNTIL(peer->stage, has_heard(peer, text));
}

void peer_forget(struct peer *peer)
{
	peer->heard_len = 0;
	peer->heard[0] = '\0';
}

void peer_say_bytes(struct peer *peer, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(peer->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return; /* hung up: the test looks at the other side */
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
		if (len)
			stage_turn(peer->stage);
	}
}

void peer_say(struct peer *peer, const char *text)
{
	peer_say_bytes(peer, text, strlen(text));
}

void peer_close(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

void peer_reset(struct peer *peer)
{
	struct linger linger = {.l_onoff = 1};

	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	peer_close(peer);
}

int peer_count(const struct peer *peer, const char *text)
{
	int count = 0;

	for (const char *at = peer->heard; (at = strstr(at, text)); at += strlen(text))
		count++;
	return count;
}
