/* child.h - runs a command as a process group of its own, which ends with it.
 *
 * Nothing of the group outlives the command, nor the process that started it. How this holds: that process is the reaper of
 * its orphaned descendants (PR_SET_CHILD_SUBREAPER), so that whoever is left when the command has ended is killed and waited
 * for. When that process itself dies, however suddenly, the kernel kills the command (PR_SET_PDEATHSIG), and a guardian, a
 * small process that waits for just this on a pipe, kills the groups. Two get away: who has left the group by setsid(2) or
 * setpgid(2), being a daemon by its own will; and in the foreground whatever the command has started, since the group there
 * is not its own, but that of the terminal's job.
 *
 * SIGPIPE must be ignored by the process. Whatever else becomes its child is reaped here, too. */
#ifndef FAIRLEAD_BASE_CHILD_H
#define FAIRLEAD_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct child;

struct child_request {
	char *const *argv; /* NULL-terminated; looked up in PATH */
	const char *const
	    *environment; /* NAME=VALUE added to ours, NULL-terminated; a NAME alone is
					   taken out */
	const void
	    *input; /* for standard input, the caller's until the end; NULL: ours is inherited */
	size_t input_len;
	bool
	    is_foreground; /* takes part in the terminal: stays in our process group, so that Ctrl-C
			       reaches it */
	int64_t grace_ms;  /* between SIGTERM and SIGKILL of child_stop() */
};

/* The command has ended and nothing of its process group is left: its status as of waitpid(). child_free() is still due, and
 * may be called here. */
typedef void child_cb(int status, void *arg);

/* Returns when the command runs. No descriptor of ours is inherited but the standard three; no signal is blocked, and
 * SIGPIPE is not ignored. 0, or -errno (nothing was started): -ENOENT no such command. */
MUST_USE int child_start(struct child **ret, struct loop *loop, const struct child_request *request,
			 child_cb *cb, void *arg);

/* Sends a signal to the group, or to the command in the foreground. Nothing happens when it has ended. */
void child_signal(struct child *child, int number);

/* SIGTERM to the group, SIGKILL after grace_ms; `cb` still runs. */
void child_stop(struct child *child);

/* SIGKILL to the group at once, and waits for its death; `cb` does not run. Accepts NULL. */
void child_free(struct child *child);

#endif
