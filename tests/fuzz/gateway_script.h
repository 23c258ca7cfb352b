/* gateway_script.h - what the far ends said, read without the gateway: requests, openings of tunnels, responses. */
#ifndef FAIRLEAD_FUZZ_GATEWAY_SCRIPT_H
#define FAIRLEAD_FUZZ_GATEWAY_SCRIPT_H

#include "base/http.h"
#include "gateway_world.h"

#define WISHES_MAX 64

static inline struct text text_behind(struct text t, size_t n)
{
	return (struct text){t.at + n, t.len - n};
}

/* A body out of its framing; owned bytes. */
struct content {
	struct buffer bytes;
	bool is_whole, is_broken;
	size_t used;
};

struct content content_read(struct text t, enum http_framing framing, uint64_t length);
void content_fini(struct content *content);

/* One request of a client: CONNECT and SOCKS (is_tunnel), or plain HTTP. */
struct wish {
	struct http_request request; /* of SOCKS: nothing */
	char host[ENDPOINT_HOST_MAX + 1];
	uint16_t port;
	bool is_tunnel;
	struct content content;
	struct text rest; /* what the client sent behind it; empty while it is not whole */
	struct peer *upstream;
};

/* All that a client asked for, up to where another request may not follow. */
struct wishes {
	bool is_socks, is_broken, is_cut; /* cut: there are more wishes than can be kept */
	struct text said;
	size_t login_len, answers; /* SOCKS5: answers before the one to the request */
	struct wish wish[WISHES_MAX];
	size_t count;
};

void wishes_read(struct wishes *ret, const struct peer *client, enum listen_protocol protocol);
void wishes_fini(struct wishes *wishes);

/* How the gateway opens a connection with `proxy`. */
struct opening {
	bool is_whole;
	bool is_connect; /* HTTP: a tunnel */
	bool stands;     /* the upstream has said yes */
	size_t len;      /* of what it heard */
	size_t said_len; /* of its answers */
	char host[ENDPOINT_HOST_MAX + 1];
	uint16_t port;
};

struct opening opening_read(const struct peer *upstream, const struct endpoint *proxy);

/* The first final response, or 101, behind any interim ones. */
struct answer {
	enum { ANSWER_PARTIAL, ANSWER_BROKEN, ANSWER_HEAD } state;
	struct http_response response;
	struct content content;
	struct text rest; /* behind the head and what was read of the body */
};

struct answer answer_read(struct text said, struct text method);

#endif
