/* spawn.h - runs redis-server or valkey-server as the private server. */
#ifndef FAIRLEAD_STORE_SPAWN_H
#define FAIRLEAD_STORE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/result.h"

/* Starts the server with its files in `dir`, listening on `socket` only. 0, or -errno with one line in `error`
 * (-ENOENT: neither server is on PATH). */
MUST_USE int spawn_server(pid_t *ret, const char *dir, const char *socket, char *error,
			  size_t error_size);

/* Is the server that was last started for `dir` alive? It is known by its process number and start time, which it
 * notes itself while it still holds the starter's lock: so also before it listens, and when its starter was killed. */
bool spawn_is_alive(const char *dir);

/* Why it ended: the last line of its log. */
void spawn_explain(const char *dir, char *error, size_t error_size);

#endif
