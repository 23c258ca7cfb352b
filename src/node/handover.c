/* handover.c - a new program takes the place of the running one. */
#include "node/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "node/inherit.h"
#include "node/notify.h"

/* The number of the descriptor that holds the note. It is text: a head, lines of "name values", a line "arguments",
 * and behind it the arguments, a NUL behind each. Unknown lines are passed over, so that the next version may write
 * more. */
#define VARIABLE "FAIRLEAD_HANDOVER"
#define HEAD "fairlead handover 1"
#define NOTE_MAX (4 << 20)
#define TRIAL "--print-config"

static char program[PATH_MAX];
static int own_argc;
static char **own_argv; /* main()'s: what others see of us */
static char **arguments;
static struct handover received;
static bool has_received;

/* --- the program's file ------------------------------------------------------------------------------------------- */

/* The path by which this program was executed, not the file behind it: where a link pointed to another file since, that
 * one is meant. A program that was executed by descriptor has no path. */
static void find_program(void)
{
	/* The kernel's number is a pointer. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	char dir[PATH_MAX / 2] = "";
	ssize_t len;

	if (!name || !*name || !strncmp(name, "/dev/fd/", 8)) {
		len = readlink("/proc/self/exe", program, sizeof program - 1);
		program[len > 0 ? len : 0] = '\0';
	} else if (*name == '/' || getcwd(dir, sizeof dir)) {
		/* One that is cut is not found when it is needed, and that is told then. */
		snprintf(program, sizeof program, "%s%s%s", dir, *dir ? "/" : "", name);
	}
}

/* --- the note is read --------------------------------------------------------------------------------------------- */

static void take_line(const char *line)
{
	struct handover_child child = {0};
	int activated;

	/* Our own numbers. NOLINTBEGIN(cert-err34-c) */
	if (sscanf(line, "activated %d", &activated) == 1)
		received.is_activated = activated;
	else if (received.child_count < HANDOVER_CHILDREN_MAX &&
		 sscanf(line, "child %15s %d %d", child.role, &child.number, &child.pid) == 3 &&
		 child.pid > 0)
		received.children[received.child_count++] = child;
	/* NOLINTEND(cert-err34-c) */
}

/* `end` is where the text ends; the byte there is NUL. Arguments must be as many as those that others see. */
static int take_arguments(char *at, const char *end)
{
	arguments = calloc((size_t)own_argc + 1, sizeof *arguments);
	if (!arguments)
		return -ENOMEM;
	for (int i = 0; i < own_argc; i++) {
		if (at >= end)
			return -EBADMSG;
		arguments[i] = at;
		at += strlen(at) + 1;
	}
	return 0;
}

static int take_note(char *text, size_t len)
{
	char *line = text, *next;

	if (strncmp(text, HEAD "\n", strlen(HEAD "\n")) != 0)
		return -EBADMSG;
	while ((next = strchr(line, '\n'))) {
		*next = '\0';
		if (!strcmp(line, "arguments"))
			return take_arguments(next + 1, text + len);
		take_line(line);
		line = next + 1;
	}
	return -EBADMSG;
}

/* The text stays: the arguments lie in it. */
static int read_note(int fd)
{
	struct stat st;
	char *text;
	int r = -EBADMSG;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > NOTE_MAX)
		return -EBADMSG;
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	if (pread(fd, text, (size_t)st.st_size, 0) == st.st_size)
		r = take_note(text, (size_t)st.st_size);
	if (r)
		free(text);
	return r;
}

static int copy_arguments(void)
{
	arguments = calloc((size_t)own_argc + 1, sizeof *arguments);
	for (int i = 0; arguments && i < own_argc; i++) {
		arguments[i] = strdup(own_argv[i]);
		if (!arguments[i])
			return -ENOMEM;
	}
	return arguments ? 0 : -ENOMEM;
}

int handover_begin(int argc, char **argv)
{
	const char *text = getenv(VARIABLE);
	int fd = text ? (int)strtol(text, NULL, 10) : -1;
	int r;

	own_argc = argc;
	own_argv = argv;
	unsetenv(VARIABLE);
	find_program();
	if (fd < INHERIT_FIRST)
		return copy_arguments();
	r = read_note(fd);
	close(fd);
	has_received = !r;
	return r;
}

char **handover_arguments(void)
{
	return arguments;
}

const struct handover *handover_received(void)
{
	return has_received ? &received : NULL;
}

/* --- the note is written ------------------------------------------------------------------------------------------ */

static void print_arguments(FILE *out, bool is_trial)
{
	fprintf(out, "arguments\n");
	for (int i = 0; i < own_argc; i++) {
		fprintf(out, "%s%c", arguments[i], '\0');
		/* In front: behind "--" it would be no option. */
		if (i == 0 && is_trial)
			fprintf(out, TRIAL "%c", '\0');
	}
}

/* A descriptor that is closed at the next exec, or -errno. */
static int write_note(const struct handover *left, bool is_trial)
{
	int fd = memfd_create("fairlead-handover", MFD_CLOEXEC);
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, INHERIT_FIRST + INHERIT_MAX);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	bool is_bad;

	if (out) {
		fprintf(out, HEAD "\nactivated %d\n", left->is_activated);
		for (size_t i = 0; i < left->child_count; i++)
			fprintf(out, "child %s %d %d\n", left->children[i].role,
				left->children[i].number, left->children[i].pid);
		print_arguments(out, is_trial);
		is_bad = ferror(out);
		is_bad = fclose(out) || is_bad;
		if (!is_bad)
			return fd;
	} else if (copy >= 0) {
		close(copy);
	}
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

static void pass_note(int fd)
{
	char text[16];

	snprintf(text, sizeof text, "%d", fd);
	setenv(VARIABLE, text, 1);
	fcntl(fd, F_SETFD, 0);
}

/* --- trial -------------------------------------------------------------------------------------------------------- */

/* In a forked child: signals and files as a program expects them that is started from a shell. */
static void run_trial(char **words, int note)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	pass_note(note);
	execv(program, words);
	log_error("the new program cannot be executed", LOG_TEXT("program", program),
		  LOG_TEXT("error", strerror(errno)));
	_exit(127);
}

pid_t handover_try(void)
{
	static const struct handover nothing;
	char **words = calloc((size_t)own_argc + 2, sizeof *words);
	int note = words ? write_note(&nothing, true) : -ENOMEM;
	pid_t pid = -1;

	if (note >= 0) {
		words[0] = own_argv[0];
		words[1] = TRIAL;
		memcpy(words + 2, own_argv + 1, ((size_t)own_argc - 1) * sizeof *words);
		log_flush();
		pid = fork();
		if (pid == 0)
			run_trial(words, note);
		note = pid < 0 ? -errno : note;
	}
	if (pid > 0)
		close(note);
	free(words);
	return pid > 0 ? pid : note;
}

/* --- exec --------------------------------------------------------------------------------------------------------- */

static void pass_listeners(size_t count, bool on)
{
	char text[16];

	for (size_t i = 0; i < count; i++)
		fcntl(INHERIT_FIRST + (int)i, F_SETFD, on ? 0 : FD_CLOEXEC);
	snprintf(text, sizeof text, "%zu", count);
	setenv("LISTEN_FDS", text, 1);
	snprintf(text, sizeof text, "%d", getpid());
	setenv("LISTEN_PID", text, 1);
}

int handover_execute(const struct handover *left, size_t listener_count)
{
	int note = write_note(left, false);
	int r;

	if (note < 0)
		return note;
	pass_note(note);
	pass_listeners(listener_count, true);
	notify_pass_on();
	log_flush();
	execv(program, own_argv);
	r = -errno;
	pass_listeners(listener_count, false);
	close(note);
	unsetenv(VARIABLE);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	notify_open();
	return r;
}
