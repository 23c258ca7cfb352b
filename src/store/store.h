/* store.h - the one place that speaks Redis: a connection, pipelined, with a deadline for each operation.
 *
 * An operation ends exactly once, by its callback, never before the call that asked for it returns:
 *   0                      done; the reply is no error
 *   REASON_STORE_NOT_DONE  surely not executed (store away, loading, too many waiting)
 *   REASON_STORE_REFUSED   surely not executed and repeating it is useless; the reply holds the error
 *   REASON_STORE_PARTIAL   a script stopped, maybe after a write; the reply holds the error
 *   REASON_STORE_UNKNOWN   the connection died, or the deadline passed, with it in flight
 *   -ECANCELED             the store ends (store_free): the callback may only release
 * What is surely not executed, and what is idempotent, is sent again within its deadline. */
#ifndef FAIRLEAD_STORE_STORE_H
#define FAIRLEAD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/result.h"
#include "store/reply.h"
#include "store/script.h"
#include "store/url.h"

struct store;
struct private_server;

struct store_config {
	struct store_url url;
	int64_t timeout_ms;             /* of an operation, from asking to its answer */
	int64_t wait_ms;                /* how long an operation waits for an absent store */
	struct private_server *private; /* restarted when found dead; NULL: not ours */
	bool is_daemon;                 /* nobody waits for an answer: what happens is logged */
};

/* One word of a command. */
struct word {
	const void *at;
	size_t len;
};

#define WORD(text) ((struct word){.at = (text), .len = strlen(text)})

enum { STORE_IDEMPOTENT = 1 };

typedef void store_cb(int result, const struct reply *reply, void *arg);

/* Begins to connect; `config` is copied. 0 or -errno. */
MUST_USE int store_new(struct store **ret, struct loop *loop, const struct store_config *config);

/* Ends the connection; callbacks that have not run get -ECANCELED. Before whatever they use is freed. Accepts NULL. */
void store_free(struct store *store);

/* Queues a command or a script (its keys first). 0, or -EMSGSIZE, -ENOMEM, -ENOBUFS (too many wait). */
MUST_USE int store_command(struct store *store, int flags, const struct word *words, size_t count,
			   store_cb *cb, void *arg);
MUST_USE int store_script(struct store *store, enum script_id id, int flags,
			  const struct word *words, size_t count, store_cb *cb, void *arg);

/* The same for a script whose number of keys the caller decides ("KEYS: 7+" in its contract). */
MUST_USE int store_script_keys(struct store *store, enum script_id id, int flags, size_t key_count,
			       const struct word *words, size_t count, store_cb *cb, void *arg);

bool store_is_ready(const struct store *store);

/* An operation waits or is in flight. */
bool store_is_busy(const struct store *store);

/* Why the store is away, for people; "" while it is ready. `is_final`: waiting will not help (wrong password ...). */
const char *store_trouble(const struct store *store, bool *is_final);

/* Runs the loop until the store is ready, its trouble is final, or `wait_ms` have passed. 0, REASON_STORE_REFUSED (final)
 * or REASON_STORE_NOT_DONE. For commands; a daemon just begins. */
MUST_USE int store_wait_ready(struct store *store, int64_t wait_ms);

#endif
