/* internal.h - what the files of the store share; nobody else includes it. */
#ifndef FAIRLEAD_STORE_INTERNAL_H
#define FAIRLEAD_STORE_INTERNAL_H

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/resolve.h"
#include "base/stream.h"
#include "store/store.h"

struct redisReader;

/* One operation: waits, or is in flight (in the order of the pipeline). It owns its bytes until it ends, so that it can be
 * sent once more. */
struct operation {
	TAILQ_ENTRY(operation) link;
	store_cb *cb;
	void *arg;
	int flags;
	int script;          /* enum script_id, or -1 */
	bool is_greeting;    /* of the connection itself */
	bool is_eval;        /* the bytes are EVAL, not EVALSHA */
	bool may_be_done;    /* a connection was lost with it in flight */
	int64_t deadline_ms; /* of the whole */
	uint64_t start;      /* position of its first byte in the connection's output */
	char *bytes;
	size_t len, tail; /* bytes + tail: the number of keys and all behind it (scripts) */
};

TAILQ_HEAD(operations, operation);

enum store_state {
	STORE_AWAY,       /* nothing until retry_at_ms */
	STORE_CONNECTING, /* resolving or connecting */
	STORE_GREETING,   /* AUTH, SELECT, ROLE on their way */
	STORE_READY,
	STORE_DRAINING, /* the server asked to go away: what is in flight ends, then reconnect */
};

/* Who keeps a connection for itself and must know of its life (watch.c). None may end the store. */
struct store_observer {
	void (*ready)(void *arg);
	void (*lost)(void *arg);
	/* NULL, or of a connection that is subscribed. True: it was a message, which answers nothing. */
	bool (*message)(const struct reply *reply, void *arg);
	void *arg;
};

struct store {
	struct loop *loop;
	struct store_config config;
	const struct store_observer *observer; /* NULL: nobody */
	enum store_state state;
	struct stream stream;
	struct resolve *resolve;
	struct redisReader *reader;
	struct buffer out;
	uint64_t out_position,
	    out_written; /* bytes ever queued, ever written, on this connection */
	struct operations waiting, sent, failed;
	size_t waiting_count;
	int greetings;       /* answers that are still to come */
	char rejection[128]; /* the error that the greeting met; "" = none */
	struct turn_hook hook;
	struct alarm alarm;
	int64_t away_since_ms, phase_deadline_ms, retry_at_ms;
	unsigned attempts;
	char trouble[256];
	bool is_unproven; /* ready, but nothing was done on this connection yet */
	bool is_ending;
	bool trouble_is_final;
	bool trouble_is_told;
};

/* operation.c */
void operation_free(struct operation *op);
void operation_finish(struct operation *op, int result, const struct reply *reply);

/* Moves what waits into the pipeline; ends what has waited too long. */
void operations_send(struct store *store);
void operations_expire(struct store *store);

/* The connection died: sorts what was in flight into waiting, failed and unknown. */
void operations_lost(struct store *store);

/* The reply to the oldest operation in flight. */
void operation_answered(struct store *store, const struct reply *reply);

/* Queues a command of the greeting, ahead of everything else. */
MUST_USE int operation_greet(struct store *store, const struct word *words, size_t count,
			     store_cb *cb);

/* greeting.c: AUTH, SELECT, PING, ROLE; ends in connection_ready() or a rejection. 0 or -errno. */
MUST_USE int greeting_send(struct store *store);

/* connection.c */

/* The greeting was answered well. */
void connection_ready(struct store *store);

/* An operation was done: what was wrong before is over. */
void connection_prove(struct store *store);

void connection_lost(struct store *store, const char *why);
void connection_drain(struct store *store, const char *why);

#endif
