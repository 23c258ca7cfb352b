/* child.c - runs a command as a process group of its own, which ends with it. */
#include "base/child.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guardian.h"

#define ERROR_FD 3     /* of the command, until it runs */
#define CANNOT_RUN 127 /* seen by nobody: the parent has the errno */

/* Whoever was killed needs a moment to be gone; who hangs in the kernel is not waited for. */
#define REMAINS_EVERY_MS 2
#define REMAINS_TRIES 1000

struct child {
	LIST_ENTRY(child) link;
	struct loop *loop;
	child_cb *cb;
	void *arg;
	pid_t pid; /* and process group, unless in the foreground */
	bool is_group;
	bool has_ended; /* reaped: `pid` may be another process by now */
	int status;
	int pidfd;
	int remains_tries;
	int64_t grace_ms;
	int input_fd; /* -1: nothing to write any more */
	const char *input;
	size_t input_len;
	struct event exited, remains, grace, writable;
};

/* All that this process has started and not freed: a kernel's fact of the process, and so is this. */
static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* --- between fork and exec ---------------------------------------------------------------------------------------- */

/* A handler of ours must not run in the child once no signal is blocked there: it would write to a descriptor that is
 * shared. */
static void restore_signals(void)
{
	struct sigaction action;
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		if (!sigaction(number, NULL, &action) &&
		    (action.sa_handler != SIG_IGN || number == SIGPIPE))
			signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The descriptors at the command's side, and what it runs with. */
struct launch {
	const struct child_request *request;
	char **environment;
	pid_t parent;
	int error[2]; /* closed by exec; else it brings the errno */
	int input[2];
};

static void __attribute__((noreturn)) run(const struct launch *launch)
{
	int error = 0;

	if (!launch->request->is_foreground)
		setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A parent that died before this was said sends no signal. */
	if (getppid() != launch->parent)
		_exit(CANNOT_RUN);
	/* Here and not in the parent, which may die before it could: nothing has been started yet that could get away. */
	if (!launch->request->is_foreground)
		guardian_add(getpid());
	if (launch->input[0] >= 0)
		dup2(launch->input[0], STDIN_FILENO);
	if (launch->error[1] != ERROR_FD)
		dup3(launch->error[1], ERROR_FD, O_CLOEXEC);
	closefrom(ERROR_FD + 1);
	restore_signals();
	execvpe(launch->request->argv[0], launch->request->argv, launch->environment);
	error = errno;
	/* The parent waits for it. */
	if (write(ERROR_FD, &error, sizeof error) < 0)
		_exit(CANNOT_RUN);
	_exit(CANNOT_RUN);
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

static size_t name_len(const char *variable)
{
	return strcspn(variable, "=");
}

static bool is_changed(const char *variable, const char *const *changes)
{
	size_t len = name_len(variable);

	for (; changes && *changes; changes++)
		if (name_len(*changes) == len && !strncmp(*changes, variable, len))
			return true;
	return false;
}

/* Ours with the changes; the texts are those of both. NULL: no memory. */
static char **merge_environment(const char *const *changes)
{
	size_t count = 1;
	char **merged, **at;

	for (char **variable = environ; *variable; variable++)
		count++;
	for (const char *const *change = changes; change && *change; change++)
		count++;
	merged = at = calloc(count, sizeof *merged);
	if (!merged)
		return NULL;
	for (char **variable = environ; *variable; variable++)
		if (!is_changed(*variable, changes))
			*at++ = *variable;
	for (; changes && *changes; changes++)
		if (strchr(*changes, '='))
			*at++ = (char *)*changes;
	return merged;
}

static int open_pipes(struct launch *launch)
{
	if (pipe2(launch->error, O_CLOEXEC))
		return -errno;
	if (!launch->request->input)
		return 0;
	if (pipe2(launch->input, O_CLOEXEC))
		return -errno;
	/* Of our end alone: the command wants one that blocks. */
	return fcntl(launch->input[1], F_SETFL, O_NONBLOCK) ? -errno : 0;
}

/* With all signals blocked, none of the parent's handlers runs in the child. A number, or -errno. */
static pid_t fork_command(const struct launch *launch)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		run(launch);
	if (pid < 0)
		pid = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* 0 when the command runs, or the -errno that kept it from running. */
static int wait_for_exec(struct launch *launch)
{
	ssize_t len;
	int error;

	close(launch->error[1]);
	launch->error[1] = -1;
	do
		len = read(launch->error[0], &error, sizeof error);
	while (len < 0 && errno == EINTR);
	return len == (ssize_t)sizeof error ? -error : 0;
}

static void forget(struct child *child)
{
	if (child->is_group)
		guardian_remove(child->pid);
}

static void reap(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

static int launch_command(struct child *child, struct launch *launch)
{
	int r = open_pipes(launch);

	if (r)
		return r;
	child->pid = fork_command(launch);
	if (child->pid < 0)
		return child->pid;
	r = wait_for_exec(launch);
	if (!r) {
		child->pidfd = pidfd_open(child->pid, 0);
		r = child->pidfd < 0 ? -errno : 0;
	}
	if (!r)
		return 0;
	child_signal(child, SIGKILL);
	forget(child);
	reap(child->pid, NULL);
	return r;
}

static void on_exited(evutil_socket_t fd, short what, void *arg);
static void on_remains(evutil_socket_t fd, short what, void *arg);
static void on_grace(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);

static void watch(struct child *child)
{
	struct event_base *base = loop_base(child->loop);

	event_assign(&child->exited, base, child->pidfd, EV_READ, on_exited, child);
	event_assign(&child->remains, base, -1, 0, on_remains, child);
	event_assign(&child->grace, base, -1, 0, on_grace, child);
	event_add(&child->exited, NULL);
	if (child->input_fd < 0)
		return;
	event_assign(&child->writable, base, child->input_fd, EV_WRITE | EV_PERSIST, on_writable,
		     child);
	event_add(&child->writable, NULL);
}

/* What both need: that dead children are kept for waitpid(), and orphans come to us. */
static int prepare(void)
{
	struct sigaction action;

	/* Whoever started us may have had it ignored. */
	if (!sigaction(SIGCHLD, NULL, &action) && action.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : guardian_start();
}

int child_start(struct child **ret, struct loop *loop, const struct child_request *request,
		child_cb *cb, void *arg)
{
	struct launch launch = {.request = request,
				.environment = merge_environment(request->environment),
				.parent = getpid(),
				.error = {-1, -1},
				.input = {-1, -1}};
	struct child *child = calloc(1, sizeof *child);
	int r = child && launch.environment ? prepare() : -ENOMEM;

	if (!r) {
		*child = (struct child){.loop = loop,
					.cb = cb,
					.arg = arg,
					.is_group = !request->is_foreground,
					.grace_ms = request->grace_ms,
					.input = request->input,
					.input_len = request->input_len};
		r = launch_command(child, &launch);
	}
	free(launch.environment);
	close_if(launch.error[0]);
	close_if(launch.error[1]);
	close_if(launch.input[0]);
	if (r) {
		close_if(launch.input[1]);
		free(child);
		return r;
	}
	child->input_fd = launch.input[1];
	LIST_INSERT_HEAD(&children, child, link);
	watch(child);
	*ret = child;
	return 0;
}

/* --- standard input ----------------------------------------------------------------------------------------------- */

static void end_input(struct child *child)
{
	if (child->input_fd < 0)
		return;
	event_del(&child->writable);
	close(child->input_fd);
	child->input_fd = -1;
}

/* A command that does not want to read on is no failure. */
static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	ssize_t len = child->input_len ? write(fd, child->input, child->input_len) : 0;

	(void)what;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len > 0) {
		child->input += len;
		child->input_len -= (size_t)len;
	}
	if (len < 0 || child->input_len == 0)
		end_input(child);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static bool is_of_a_child(pid_t pid)
{
	pid_t group = getpgid(pid);
	struct child *child;

	LIST_FOREACH(child, &children, link)
	if (!child->has_ended && (child->pid == pid || child->pid == group))
		return true;
	return false;
}

/* Daemons that have left their group come to us as well, and nobody else buries them. Who stands before them here is a child
 * whose end is about to be noticed, and looks again. */
static void reap_strays(void)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0 ||
		    is_of_a_child(info.si_pid))
			return;
		waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static void end(struct child *child)
{
	event_del(&child->remains);
	event_del(&child->grace);
	end_input(child);
	child->cb(child->status, child->arg);
}

/* All of the group were killed. They are our children by now, or those of somebody who has left it. */
static void bury_remains(struct child *child)
{
	const struct timeval moment = {.tv_usec = REMAINS_EVERY_MS * 1000L};
	pid_t pid = 0;

	while (child->is_group && (pid = waitpid(-child->pid, NULL, WNOHANG)) > 0)
		;
	if (child->is_group && pid == 0 && child->remains_tries++ < REMAINS_TRIES) {
		event_add(&child->remains, &moment);
		return;
	}
	reap_strays();
	end(child);
}

static void on_remains(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	bury_remains(arg);
}

/* Until it is reaped, no other process or group has its number. */
static void on_exited(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	(void)fd;
	(void)what;
	if (child->is_group)
		kill(-child->pid, SIGKILL);
	forget(child);
	reap(child->pid, &child->status);
	child->has_ended = true;
	bury_remains(child);
}

void child_signal(struct child *child, int number)
{
	if (!child->has_ended)
		kill(child->is_group ? -child->pid : child->pid, number);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	child_signal(arg, SIGKILL);
}

void child_stop(struct child *child)
{
	const struct timeval grace = {.tv_sec = child->grace_ms / 1000,
				      .tv_usec = child->grace_ms % 1000 * 1000};

	if (child->has_ended || event_pending(&child->grace, EV_TIMEOUT, NULL))
		return;
	child_signal(child, SIGTERM);
	/* Who was stopped does not see a SIGTERM. */
	child_signal(child, SIGCONT);
	event_add(&child->grace, &grace);
}

void child_free(struct child *child)
{
	if (!child)
		return;
	event_del(&child->exited);
	event_del(&child->remains);
	event_del(&child->grace);
	end_input(child);
	if (!child->has_ended) {
		child_signal(child, SIGKILL);
		forget(child);
		reap(child->pid, NULL);
		while (child->is_group && waitpid(-child->pid, NULL, 0) > 0)
			;
	}
	close(child->pidfd);
	LIST_REMOVE(child, link);
	free(child);
}
