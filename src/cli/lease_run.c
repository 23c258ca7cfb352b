/* lease_run.c - runs a command that uses the member of a lease. */
#include "cli/lease_run.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "cli/lease_word.h"
#include "pool/environment.h"

/* As shells have it. */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL 128

/* --- running ------------------------------------------------------------------------------------------------------ */

static const int passed_signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
#define PASSED (sizeof passed_signals / sizeof *passed_signals)

struct run {
	struct session *session;
	struct child *child;
	bool is_foreground;
	struct event signals[PASSED];
};

static void on_ended(int status, void *arg)
{
	const struct run *run = arg;

	session_answered(run->session, status, "");
}

/* What is typed at the terminal reaches the command as it reaches us. */
static void on_signal(evutil_socket_t number, short what, void *arg)
{
	const struct run *run = arg;

	(void)what;
	if (run->child && !(run->is_foreground && (number == SIGINT || number == SIGQUIT)))
		child_signal(run->child, number);
}

/* We are the job that the terminal is waiting for. In a group of its own the command could not read from there. */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	bool is_ours;

	if (fd < 0)
		return false;
	is_ours = tcgetpgrp(fd) == getpgrp();
	close(fd);
	return is_ours;
}

/* What our starter has had ignored, as nohup(1) does, the command ignores as well. */
static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

static void watch_signals(struct run *run)
{
	for (size_t i = 0; i < PASSED; i++) {
		if (is_ignored(passed_signals[i]))
			continue;
		evsignal_assign(&run->signals[i], loop_base(run->session->loop), passed_signals[i],
				on_signal, run);
		event_add(&run->signals[i], NULL);
	}
}

static void unwatch_signals(struct run *run)
{
	for (size_t i = 0; i < PASSED; i++)
		if (event_initialized(&run->signals[i]))
			event_del(&run->signals[i]);
}

static int not_started(const struct session *session, int result)
{
	cli_error(session->cli, "cannot run '%s': %s", session->cli->args[0], strerror(-result));
	return result == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int lease_run(struct session *session, const struct lease *lease)
{
	static struct environment environment;
	char word[LEASE_WORD_SIZE];
	struct run run = {.session = session, .is_foreground = has_terminal()};
	struct child_request request = {.argv = (char *const *)session->cli->args,
					.environment = environment.list,
					.is_foreground = run.is_foreground};
	int r;

	environment_init(&environment, &lease->member->endpoint);
	lease_word_print(lease, word);
	environment_add(&environment, "FAIRLEAD_LEASE_WORD", word);
	watch_signals(&run);
	r = child_start(&run.child, session->loop, &request, on_ended, &run);
	environment_wipe(&environment);
	r = r ? not_started(session, r) : shell_status(session_wait(session));
	unwatch_signals(&run);
	child_free(run.child);
	return r;
}
