/* peer.h - the far side of a connection, played by the test line by line on the same loop as the code under test. */
#ifndef FAIRLEAD_TESTS_PEER_H
#define FAIRLEAD_TESTS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage.h"

struct peer {
	struct stage *stage;
	int listener, fd;
	uint16_t port;
	char path[108]; /* "" for TCP */
	char heard[1 << 16];
	size_t heard_len;
};

/* Listens on `host`, an IPv4 or IPv6 address, at a free port; or on the unix socket `path`. */
void peer_listen(struct peer *peer, struct stage *stage, const char *host);
void peer_listen_unix(struct peer *peer, struct stage *stage, const char *path);
void peer_fini(struct peer *peer);

/* Waits for the next connection; what was heard before is forgotten. The test fails if none comes in time. */
void peer_accept(struct peer *peer);

/* A connection waits to be accepted. */
bool peer_is_called(const struct peer *peer);

/* Waits until what was heard on this connection contains `text`. */
void peer_expect(struct peer *peer, const char *text);

/* Forgets what was heard, so that peer_expect() waits for something new. */
void peer_forget(struct peer *peer);

/* Reads what is there, without waiting. */
void peer_listen_up(struct peer *peer);

void peer_say(struct peer *peer, const char *text);
void peer_say_bytes(struct peer *peer, const char *bytes, size_t len);

/* Ends the connection: by FIN, or by RST. */
void peer_close(struct peer *peer);
void peer_reset(struct peer *peer);

/* How often `text` stands in what was heard. */
int peer_count(const struct peer *peer, const char *text);

#endif
