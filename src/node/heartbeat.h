/* heartbeat.h - every process in the hash `nodes`: who it is and its key counters. */
#ifndef FAIRLEAD_NODE_HEARTBEAT_H
#define FAIRLEAD_NODE_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

/* The name of this process in the hash: "<host>:<pid>:<role>", the pid of the supervisor and "<role>.<number>" for a
 * child, whose successor takes over the entry with the counters. */
void heartbeat_name(char *buffer, size_t size, int pid, const char *name);

/* Writes the state of now (docs/wire.md, "nodes"). Nothing waits for it. */
void heartbeat_send(struct store *store, const char *id, const char *role);

/* Takes the entry away. True if that is on its way. */
bool heartbeat_end(struct store *store, const char *id);

/* Takes away entries whose process has not written for ten minutes, a page at a time. */
void heartbeat_prune(struct store *store);

#endif
