/* moved.h - commands that move or delete many tasks: whether they may, and how many it were. */
#ifndef FAIRLEAD_CLI_MOVED_H
#define FAIRLEAD_CLI_MOVED_H

#include "cli/session.h"
#include "queue/view.h"

/* May `what` ("all tasks of queue 'jobs'") be deleted? By --yes, or asks on a terminal. EXIT_FINE, or an exit status
 * after a message. */
MUST_USE int moved_may_delete(const struct session *session, const char *what);

/* Where the functions of queue/view.h that move something answer. */
struct moved {
	struct session *session;
	int64_t count;
};
void moved_answer(int result, const char *error, int64_t count, void *moved);

/* Waits for it and says "5 `done`", as JSON on standard output with --json. `r`: of asking. Returns an exit status. */
int moved_finish(struct moved *moved, int r, const char *done);

#endif
