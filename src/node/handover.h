/* handover.h - a new program takes the place of the running one, under the same process number.
 *
 * The old program executes the new one over itself. Along go the listening sockets (inherit.h), the process numbers of its
 * children, and its arguments: they are passed in memory, because credentials among those in argv have been overwritten,
 * and must not be seen by others again. */
#ifndef FAIRLEAD_NODE_HANDOVER_H
#define FAIRLEAD_NODE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/result.h"

#define HANDOVER_CHILDREN_MAX 512

struct handover_child {
	char role[16];
	int number;
	pid_t pid;
};

struct handover {
	bool is_activated; /* the sockets are systemd's choice */
	struct handover_child children[HANDOVER_CHILDREN_MAX];
	size_t child_count;
};

/* First of all, with main()'s arguments: keeps a copy of them, or receives those of the program before, and finds out what
 * file was executed. `argv` must stay. 0 or -errno. */
MUST_USE int handover_begin(int argc, char **argv);

/* The arguments as they were typed. */
char **handover_arguments(void);

/* What the program before has left to this one; NULL: there was none. */
const struct handover *handover_received(void);

/* Runs the program anew with these arguments and --print-config, to see whether it can. Its process number, or -errno. */
MUST_USE pid_t handover_try(void);

/* Becomes the new program, with the listening descriptors 3 to 2 + `listener_count`. Returns -errno, or does not. */
int handover_execute(const struct handover *left, size_t listener_count);

#endif
