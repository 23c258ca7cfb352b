/* queue_session.h - a session about a queue: its levels by --levels or --lists. */
#ifndef FAIRLEAD_CLI_QUEUE_SESSION_H
#define FAIRLEAD_CLI_QUEUE_SESSION_H

#include "cli/session.h"

/* Connects, makes the queue of --queue, and looks that its keys are a queue's. An operation may take `extra_ms`
 * longer than usual. EXIT_FINE, or an exit status after a message; session_close() is due in both cases. */
MUST_USE int queue_session_open(struct session *session, struct cli *cli, int64_t extra_ms);

/* Are queue and levels what they can be? Asks nobody. EXIT_FINE, or EXIT_USAGE after a message. */
MUST_USE int queue_session_judge(const struct cli *cli);

/* Makes the queue in a session that is connected, and looks at no key: for the doctor. Results as above. */
MUST_USE int queue_session_add(struct session *session);

/* The level of that name into `ret`. EXIT_FINE, or EXIT_USAGE after a message. */
MUST_USE int queue_session_level(const struct session *session, const char *name, size_t *ret);

/* --level as the functions of queue/view.h take it: NULL when it was not given. Results as above. */
MUST_USE int queue_session_chosen(const struct session *session, const char **ret);

/* "high, normal, low (strict)": in which order claims try the levels. */
#define QUEUE_ORDER_SIZE (QUEUE_LEVELS_MAX * (KEY_NAME_MAX + 2) + 48)
void queue_order(const struct queue *queue, char ret[static QUEUE_ORDER_SIZE]);

/* Says so with --verbose. */
void queue_session_note_order(const struct session *session);

/* Runs the loop until `r`, the result of asking, has its answer, if it was 0. EXIT_FINE, or EXIT_FAILED after a message. */
MUST_USE int queue_session_finish(struct session *session, int r);

#endif
