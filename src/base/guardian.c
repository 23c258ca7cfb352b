/* guardian.c - kills process groups when this process dies, however suddenly. */
#include "base/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The pipe to the guardian of the process `owner`; a fork of it has none yet. */
static struct {
	pid_t owner;
	int fd;
} guardian;

/* --- the guardian ------------------------------------------------------------------------------------------------- */

struct groups {
	pid_t *numbers;
	size_t count, size;
};

/* Without memory it is only the leader that dies with its parent, by the kernel's doing. */
static void add(struct groups *groups, pid_t group)
{
	if (groups->count == groups->size) {
		size_t size = groups->size ? 2 * groups->size : 64;
		pid_t *numbers = reallocarray(groups->numbers, size, sizeof *numbers);

		if (!numbers)
			return;
		groups->numbers = numbers;
		groups->size = size;
	}
	groups->numbers[groups->count++] = group;
}

static void drop(struct groups *groups, pid_t group)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->numbers[i] == group)
			groups->numbers[i--] = groups->numbers[--groups->count];
}

/* Away from the terminal and from whoever signals our group, with nothing of ours but the pipe. All signals are blocked, for
 * good: it must be there when others have died of one. */
static void __attribute__((noreturn)) watch(int fd)
{
	struct groups groups = {0};
	pid_t number;

	setsid();
	prctl(PR_SET_NAME, "fairlead-guard");
	dup2(fd, STDIN_FILENO);
	closefrom(STDIN_FILENO + 1);
	while (read(STDIN_FILENO, &number, sizeof number) == (ssize_t)sizeof number) {
		if (number > 0)
			add(&groups, number);
		else
			drop(&groups, -number);
	}
	for (size_t i = 0; i < groups.count; i++)
		kill(-groups.numbers[i], SIGKILL);
	_exit(0);
}

/* --- this side ---------------------------------------------------------------------------------------------------- */

/* Until the guardian has closed what it inherited: a descriptor that lived on in it would go on to report to our
 * epoll(7). */
static void wait_until_closed(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
}

static pid_t fork_guardian(int fd)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		watch(fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int guardian_start(void)
{
	int numbers[2], ready[2];
	pid_t pid;

	if (guardian.owner == getpid())
		return 0;
	if (pipe2(numbers, O_CLOEXEC))
		return -errno;
	if (pipe2(ready, O_CLOEXEC)) {
		close(numbers[0]);
		close(numbers[1]);
		return -errno;
	}
	pid = fork_guardian(numbers[0]);
	close(numbers[0]);
	close(ready[1]);
	if (pid > 0) {
		wait_until_closed(ready[0]);
		guardian.owner = getpid();
		guardian.fd = numbers[1];
	} else {
		close(numbers[1]);
	}
	close(ready[0]);
	return pid > 0 ? 0 : -EAGAIN;
}

/* Whole or not at all: shorter than PIPE_BUF. If there is no guardian any more, somebody has killed it. */
static void tell(pid_t number)
{
	while (write(guardian.fd, &number, sizeof number) < 0 && errno == EINTR)
		;
}

void guardian_add(pid_t group)
{
	tell(group);
}

void guardian_remove(pid_t group)
{
	tell(-group);
}
