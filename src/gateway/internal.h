/* internal.h - the objects of the gateway: client, exchange, listener; nobody else includes it. */
#ifndef FAIRLEAD_GATEWAY_INTERNAL_H
#define FAIRLEAD_GATEWAY_INTERNAL_H

#include <event2/event_struct.h>

#include "base/alarm.h"
#include "base/http.h"
#include "base/listen.h"
#include "dial/dial.h"
#include "gateway/end.h"
#include "gateway/gateway.h"
#include "gateway/identity.h"
#include "gateway/socks.h"
#include "pool/allocate.h"
#include "pool/sticky.h"

#define PEER_TEXT_MAX 64
#define METHOD_MAX 24

struct listener {
	TAILQ_ENTRY(listener) link;
	struct gateway *gateway;
	struct event event;
	struct net_place place;
	bool is_local;
	bool needs_account;
	enum listen_auth auth;
	enum listen_protocol protocol;
	char user[LISTEN_USER_MAX + 1]; /* whom clients without a name are taken for; "" = nobody */
	char pool[LISTEN_POOL_MAX + 1]; /* alias for clients that choose none; "" = --pool */
};

struct gateway {
	struct loop *loop;
	struct gateway_config config;
	TAILQ_HEAD(, listener) listeners;
	TAILQ_HEAD(client_list, client) clients;
	size_t client_count;
	struct alarm resume; /* accepting was paused for want of descriptors */
	bool is_paused;
	bool is_draining;
	struct alarm drain;
	int64_t drain_deadline_ms;
	int64_t all_cooling_ms; /* of clock_ms(): route.c logged it last */
	void (*drained)(void *arg);
	void *drained_arg;
};

/* --- a client's connection ---------------------------------------------------------------------------------------- */

enum client_state {
	CLIENT_HEAD, /* a request's head, or the next message of a SOCKS handshake, is awaited */
	CLIENT_BUSY, /* an exchange is under way */
	CLIENT_LINGER, /* the last answer is out; what still comes is dropped, so that it is not lost to a reset */
	CLIENT_ENDED,
};

/* What the client speaks, and how far a SOCKS handshake has come. */
enum client_protocol {
	CLIENT_UNKNOWN, /* its first byte will tell */
	CLIENT_HTTP,
	CLIENT_SOCKS5_GREETING,
	CLIENT_SOCKS5_LOGIN,
	CLIENT_SOCKS5,
	CLIENT_SOCKS4,
};

struct client {
	struct grave grave;
	TAILQ_ENTRY(client) link;
	struct gateway *gateway;
	const struct listener *listener;
	enum client_state state;
	enum client_protocol protocol;
	struct end end;
	struct buffer in; /* read and not yet consumed */
	struct http_scan scan;
	struct alarm alarm;
	struct exchange *exchange;
	struct identity *identity; /* of a SOCKS handshake, until its exchange takes it over */
	bool is_allowed;
	bool has_unseen; /* pipelined bytes that nobody has looked at yet */
	size_t lingered;
	char peer[PEER_TEXT_MAX];
};

/* Takes over the connected descriptor. 0 or -ENOMEM (the descriptor is closed). */
MUST_USE int client_new(const struct listener *listener, int fd, const struct sockaddr *peer);
void client_end(struct client *client);

/* Reads into client->in up to its cap. False when nothing came. */
bool client_read(struct client *client);

/* The exchange has ended; its answer is out or queued. */
void client_exchange_ended(struct client *client, bool keep_alive);

/* What the client's stream is to be watched for while an exchange waits for allocation or dial. */
void client_watch_waiting(struct client *client);

/* --- handshake.c -------------------------------------------------------------------------------------------------- */

/* Takes what client->in holds of a SOCKS handshake: answers, and begins the exchange (CLIENT_BUSY) or waits for more. */
void handshake_take(struct client *client);

/* --- one request and its answer ----------------------------------------------------------------------------------- */

enum exchange_state {
	EXCHANGE_READ,     /* the request stands at the front of client->in */
	EXCHANGE_ADMIT,    /* the limits of its client and its target are asked */
	EXCHANGE_ALLOCATE, /* a member is asked for, or waited for */
	EXCHANGE_DIAL,     /* the member is dialled */
	EXCHANGE_RELAY,    /* both ends stand: a tunnel, or a request and its response */
	EXCHANGE_END,
};

struct exchange {
	struct grave grave;
	struct gateway *gateway;
	struct client *client;
	enum exchange_state state;
	int64_t state_since_us, started_us;
	bool is_connect;
	bool keep_alive;       /* another request may follow on the client's connection */
	bool has_answer;       /* a byte of an answer has been given to the client */
	bool is_session_moved; /* the sticky session has another member than before */
	char method[METHOD_MAX];
	char *host; /* of the target, canonical */
	uint16_t port;
	int tries, fallbacks, status, received_status;
	int last_reason;                /* of the member tried before; 0: none */
	uint64_t client_in, client_out; /* the client's byte counts when it began */
	struct identity *identity;      /* NULL: nobody in particular */
	char *detail;                   /* beside the reason, for the client; NULL: none */
	int64_t retry_after_ms;         /* 0: as configured */
	struct ticket ticket;
	struct pool *pool;
	union {
		struct allocation allocation;
		struct sticky sticky;
	} ask;
	struct lease *lease;   /* of the member in use, or asked for; NULL: none */
	struct member *member; /* in use */
	struct member **avoid; /* had before, then passed over; each a reference */
	size_t avoid_count, passed_count;
	int64_t try_began_ms; /* of clock_ms(): the member in use was dialled */
	struct dial *dial;
	struct end upstream;
	struct forward *forward; /* a plain HTTP request; NULL: a tunnel */
};

/* Begins with the request head of `head_len` bytes at the front of client->in. */
void exchange_begin(struct client *client, size_t head_len);

/* Begins with what a SOCKS handshake asked for; it has been consumed. */
void exchange_begin_socks(struct client *client, const struct socks_request *request);

/* A request that cannot even be read, or whose sender is not known: answers and ends. `detail`: "" or what to tell. */
void exchange_refuse(struct client *client, int reason, const char *detail);

/* The only end: answers if nothing was answered yet, logs, counts, releases. */
void exchange_end(struct exchange *exchange, int reason);

/* The member in use failed with `reason` before or (only for what may be repeated) after something left: another one if
 * there is a try left, else the end. */
void exchange_retry(struct exchange *exchange, int reason);

/* Events of the client's stream while the exchange is under way, and its deadline. */
void exchange_client_ready(struct exchange *exchange, int ready);
void exchange_alarm(struct exchange *exchange);

/* --- route.c ------------------------------------------------------------------------------------------------------ */

/* Asks for a member, which comes to exchange_routed(). */
void route_begin(struct exchange *exchange);

/* The only place where the asking, or the lease, of an exchange ends; of one that has neither, nothing. */
void route_end(struct exchange *exchange);

/* `result`: 0 and x->member stands, or the reason why there is none. */
void exchange_routed(struct exchange *exchange, int result);

/* Puts the member in use aside. False when no more can be noted. */
bool route_avoid(struct exchange *exchange);

/* --- tunnel.c ----------------------------------------------------------------------------------------------------- */

/* Both ends stand; `early` came from the upstream behind its handshake. */
void tunnel_begin(struct exchange *exchange, const char *early, size_t len);
void tunnel_ready(struct exchange *exchange, struct end *end, int ready);

/* The same on an exchange that was a plain request until a 101. */
void tunnel_continue(struct exchange *exchange);

/* --- forward.c ---------------------------------------------------------------------------------------------------- */

/* The upstream stands: sends the request, brings back the response. */
void forward_begin(struct exchange *exchange);
void forward_ready(struct exchange *exchange, struct end *end, int ready);
void forward_free(struct forward *forward);

/* Reads the request's head; what the client may reach is judged by the caller. 0 or a reason. */
MUST_USE int forward_new(struct forward **ret, const struct http_request *request, size_t head_len);

/* The client has a part of the response, and will not get the rest if the exchange ends now. */
bool forward_is_cut(const struct exchange *exchange);

/* --- answer.c ----------------------------------------------------------------------------------------------------- */

/* Sends the gateway's own answer for `reason` (RFC 9209, RFC 1928) to the client. */
void answer_reason(struct exchange *exchange, int reason);

/* Tells the client that its tunnel stands. 0 or the errno of a write. */
MUST_USE int answer_established(struct exchange *exchange);

/* Sends "200" to what goes no further than here: OPTIONS *, OPTIONS and TRACE with Max-Forwards: 0. */
void answer_final(struct exchange *exchange, const struct http_request *request);

/* Adds the fields by which a response tells about member and session: nothing, or whole lines. 0 or -errno. */
MUST_USE int answer_fields(const struct exchange *exchange, struct buffer *out);

/* --- record.c ----------------------------------------------------------------------------------------------------- */

/* One log line and the counters of an exchange that ends. */
void record_exchange(const struct exchange *exchange, int reason);

/* One try through the member in use has ended (REASON_OK: the tunnel stands, or the response begins): it is counted
 * and reported to the pool, and a member that cannot reach the target cools down for it. Once a try. */
void record_try(struct exchange *exchange, int reason);

/* The target has answered a plain request through the member in use with `status`. */
void record_status(struct exchange *exchange, int status);

#endif
