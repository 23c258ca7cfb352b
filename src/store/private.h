/* private.h - the server that fairlead brings along: one for all processes of a user that share a state directory.
 *
 * Each process holds a shared lock on the file `users` while it uses the server; starting and stopping happen under an
 * exclusive lock on the file `start`. Both locks vanish with their holder, so a killed process leaves nothing
 * behind. Whoever is the last to leave stops the server, whoever finds it dead starts it. */
#ifndef FAIRLEAD_STORE_PRIVATE_H
#define FAIRLEAD_STORE_PRIVATE_H

#include <stddef.h>

#include "base/result.h"

struct private_server;

/* Joins the server of `state_dir`, starts it if it does not run, and waits until it answers. Blocks, so only before a
 * loop runs. Returns 0, or -errno with one line in `error` that names the trouble and the way out. */
MUST_USE int private_attach(struct private_server **ret, const char *state_dir, char *error,
			    size_t error_size);

/* In a forked child: counts the child as a user of its own. 0 or -errno. */
MUST_USE int private_adopt(struct private_server *server);

/* Leaves; the last user stops the server and waits until it has written everything. Accepts NULL. */
void private_detach(struct private_server *server);

/* "unix:///.../redis.sock" */
const char *private_url(const struct private_server *server);

/* For the store's reconnect, without blocking: starts the server if nobody listens on its socket and nobody else is
 * starting it. private_settled() says that it answers. */
void private_revive(struct private_server *server);
void private_settled(struct private_server *server);

#endif
