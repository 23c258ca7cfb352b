/* session.h - a command's way to the store: connect, ask, wait for the answer, leave. */
#ifndef FAIRLEAD_CLI_SESSION_H
#define FAIRLEAD_CLI_SESSION_H

#include "cli/cli.h"
#include "pool/pool.h"
#include "queue/queue.h"
#include "store/private.h"

struct session {
	struct cli *cli;
	struct private_server *private;
	struct loop *loop;
	struct store *store;
	struct pool *pool;   /* NULL: the command is about a queue */
	struct queue *queue; /* NULL: about a pool; cli/queue_session.h */
	bool is_waiting;     /* for one answer */
	int result;          /* of the last question */
	char error[256];     /* of the store, with it */
};

/* Connects, and no more. An operation may take `extra_ms` longer than usual. EXIT_FINE, or an exit status after a
 * message; session_close() is due in both cases. */
MUST_USE int session_connect(struct session *session, struct cli *cli, int64_t extra_ms);

/* Where the store is and how patient this command is with it; for another connection. store_url_wipe() is due.
 * EXIT_FINE, or an exit status after a message. */
MUST_USE int session_store_config(const struct session *session, struct store_config *ret);

/* Connects, and makes the pool of --pool; looks that its keys are a pool's, so that a wrong name changes nothing.
 * EXIT_FINE, or an exit status after a message. session_close() is due in both cases. */
MUST_USE int session_open(struct session *session, struct cli *cli);
void session_close(struct session *session);

/* Runs the loop until session_answered() was called. Returns session->result. */
int session_wait(struct session *session);
void session_answered(struct session *session, int result, const char *error);

/* Reads the pool's rules; or creates salt and wire version, sets rules, and reads them. EXIT_FINE, or an exit status after a
 * message. */
MUST_USE int session_read_rules(struct session *session);
MUST_USE int session_write_rules(struct session *session, const struct word *words, size_t count);

/* Is the pool's policy least-concurrent, as far as this fairlead can read its rules? */
bool session_is_concurrent(struct session *session);

/* Salt and wire version, without which there are no identifiers; --allow-private becomes the pool's rule, since every
 * node must dial these members. Results as above. */
MUST_USE int session_found_pool(struct session *session);

/* Says what went wrong with the store and what to do; returns EXIT_FAILED. */
int session_failed(struct session *session);

/* The same without looking at the keys: for the doctor, who tells all about them. */
MUST_USE int session_open_any(struct session *session, struct cli *cli);

#endif
