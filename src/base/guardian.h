/* guardian.h - kills process groups when this process dies, however suddenly.
 *
 * It is a small process, forked at the first use, that reads the numbers of groups from a pipe whose other end is
 * ours alone. When we are gone the pipe ends, and so do the groups. */
#ifndef FAIRLEAD_BASE_GUARDIAN_H
#define FAIRLEAD_BASE_GUARDIAN_H

#include <sys/types.h>

#include "base/result.h"

/* Makes sure that this process has one. 0 or -errno. */
MUST_USE int guardian_start(void);

/* From now on the group dies with us. Async-signal-safe: the group's leader calls it before it becomes another program. */
void guardian_add(pid_t group);

/* Before the leader is reaped: then the group's number may become another's. */
void guardian_remove(pid_t group);

#endif
