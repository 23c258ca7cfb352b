/* gateway_world.h - the world of fuzz_gateway: the gateway on its loop, clients and upstreams at the far ends of real sockets, a
 * clock that only the input moves.
 *
 * The process's connect(2), clock_gettime(2), epoll_wait(2) and lookups of names are played here: whatever the gateway dials
 * reaches the scripted upstream on 127.0.0.1, never the outside. */
#ifndef FAIRLEAD_FUZZ_GATEWAY_WORLD_H
#define FAIRLEAD_FUZZ_GATEWAY_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "gateway/gateway.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

/* In Proxy-Status, by which our own answers are known. */
#define WORLD_NAME "fuzzed"
#define WORLD_CLIENTS_MAX 3
#define WORLD_UPSTREAMS_MAX 24
#define WORLD_BYTES_MAX ((size_t)4 << 20)

#define WORLD_HEAD_MS 30000
#define WORLD_CONNECT_MS 5000
#define WORLD_DIAL_MS 10000
#define WORLD_RESPONSE_MS 60000
#define WORLD_IDLE_MS 300000

/* The far end of a connection of the gateway's. */
struct peer {
	int fd;                    /* -1: not open */
	struct buffer said, heard; /* all that was sent and received */
	bool has_shut, has_reset;  /* by the input */
	bool has_ended;            /* the gateway ended its side */
	bool is_broken;            /* the gateway reset it */
	uint32_t
	    number; /* in its address, 127.x.y.z: of a client its own, of an upstream the gateway's */
	int owner; /* upstream: index of the client whose exchange dialled it; -1: not known */
};

struct world {
	struct loop *loop;
	struct gateway *gateway;
	int listener, upstream_listener;
	struct peer clients[WORLD_CLIENTS_MAX], upstreams[WORLD_UPSTREAMS_MAX];
	size_t client_count, upstream_count;
	size_t lost; /* upstream connections beyond the maximum */
	int64_t slept_ms;
	bool is_small; /* little room in the sockets; nobody reads unless the input says so */
	bool is_drained, is_limited;
};

/* Once a process. */
struct world *world_new(void);

/* One input: `config` as far as it is not the same for all. */
void world_begin(struct world *world, const struct gateway_config *config,
		 enum listen_protocol protocol, bool is_small);

/* One turn of the loop that does not block; accepts what was dialled. */
void world_turn(struct world *world);
void world_sleep(struct world *world, int64_t ms);

/* Turns until nothing happens any more. The far ends read what comes. */
void world_settle(struct world *world);

/* The gateway waits for the address of a name. */
bool world_is_looking_up(void);

/* Ends the gateway with all that is under way. */
void world_free_gateway(struct world *world);

/* Closes all far ends, and checks that the gateway then holds nothing. */
void world_end(struct world *world, bool by_reset, bool upstreams_first);

/* NULL: there are as many as there may be. */
struct peer *world_connect(struct world *world);

/* Sends what the socket takes, and notes it. */
void peer_say(struct peer *peer, const void *bytes, size_t len);
void peer_listen(struct peer *peer);
void peer_shut(struct peer *peer);
void peer_reset(struct peer *peer);

#endif
