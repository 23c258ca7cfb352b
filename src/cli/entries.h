/* entries.h - tasks and dead letters as they stand, for people and programs. */
#ifndef FAIRLEAD_CLI_ENTRIES_H
#define FAIRLEAD_CLI_ENTRIES_H

#include "cli/session.h"
#include "queue/view.h"

/* Shows up to --show of one place, by --raw, --json, or as a table. Returns an exit status: EXIT_NOTHING when there
 * is none. */
int entries_show(struct session *session, enum queue_place place, const char *level);

#endif
