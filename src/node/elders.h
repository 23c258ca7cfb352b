/* elders.h - children that earlier programs have started and that still run, under the supervisor of now.
 *
 * They are never started again. When those of this program serve they are told to hand over; they end when their last
 * client has. */
#ifndef FAIRLEAD_NODE_ELDERS_H
#define FAIRLEAD_NODE_ELDERS_H

#include "node/handover.h"

struct elders {
	struct handover_child list[HANDOVER_CHILDREN_MAX];
	size_t count;
};

/* `left` may be NULL. */
void elders_init(struct elders *elders, const struct handover *left);

/* `role` NULL: any. */
bool elders_run(const struct elders *elders, const char *role);
void elders_signal(const struct elders *elders, const char *role, int number);

/* A process has ended: was it one of them? */
bool elders_reap(struct elders *elders, pid_t pid, int status);

#endif
