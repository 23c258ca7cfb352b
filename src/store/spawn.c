/* spawn.c - runs redis-server or valkey-server as the private server. */
#include "store/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_NAME "redis.log"
#define LOG_BYTES_MAX ((off_t)1 << 20)
#define PID_NAME "redis.pid"

/* Looks `name` up on PATH. */
static bool find_program(const char *name, char *ret, size_t size)
{
	const char *path = getenv("PATH");

	if (!path || !*path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path) {
		size_t len = strcspn(path, ":");

		snprintf(ret, size, "%.*s/%s", (int)len, path, name);
		if (len && !access(ret, X_OK))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* When a process was started, in clock ticks since boot: field 22 of /proc/PID/stat; 0: there is no such process. */
static unsigned long long start_time(pid_t pid)
{
	char path[64], line[1024];
	const char *at;
	FILE *file;
	bool has_line;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "re");
	has_line = file && fgets(line, sizeof line, file);
	if (file)
		fclose(file);
	/* The name in parentheses may hold anything; field 3 stands behind the last one. A zombie is dead. */
	at = has_line ? strrchr(line, ')') : NULL;
	if (!at || at[1] != ' ' || at[2] == 'Z')
		return 0;
	at += 2;
	for (int field = 3; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static void note_self(const char *dir)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof path, "%s/" PID_NAME, dir);
	file = fopen(path, "we");
	if (!file)
		return;
	fprintf(file, "%d %llu\n", getpid(), start_time(getpid()));
	fclose(file);
}

bool spawn_is_alive(const char *dir)
{
	unsigned long long started = 0;
	char path[PATH_MAX];
	bool is_read;
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof path, "%s/" PID_NAME, dir);
	file = fopen(path, "re");
	if (!file)
		return false;
	/* Our own numbers. NOLINTNEXTLINE(cert-err34-c) */
	is_read = fscanf(file, "%d %llu", &pid, &started) == 2;
	fclose(file);
	return is_read && started && start_time(pid) == started;
}

/* Between fork and exec: signals, files and descriptors of its own. */
static void detach(const char *log)
{
	struct stat st;
	sigset_t none;
	int fd;

	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, STDIN_FILENO);
	/* Each start and stop adds to the log; it begins anew when it is long. */
	if (!stat(log, &st) && st.st_size > LOG_BYTES_MAX)
		unlink(log);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
}

static void run(const char *program, const char *dir, const char *socket, const char *log)
{
	setsid();
	umask(077);
	note_self(dir);
	detach(log);
	execl(program, program, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
	      "--dir", dir, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
	      "--maxmemory-policy", "noeviction", "--daemonize", "no", (char *)NULL);
	_exit(127);
}

int spawn_server(pid_t *ret, const char *dir, const char *socket, char *error, size_t error_size)
{
	char program[PATH_MAX], log[PATH_MAX];
	pid_t pid;

	if (!find_program("redis-server", program, sizeof program) &&
	    !find_program("valkey-server", program, sizeof program)) {
		snprintf(error, error_size,
			 "neither redis-server nor valkey-server is on PATH; install one, or name "
			 "a Redis with --redis");
		return -ENOENT;
	}
	snprintf(log, sizeof log, "%s/" LOG_NAME, dir);
	pid = fork();
	if (pid < 0) {
		snprintf(error, error_size, "cannot start %.200s: %s", program, strerror(errno));
		return -errno;
	}
	if (pid == 0)
		run(program, dir, socket, log);
	*ret = pid;
	return 0;
}

void spawn_explain(const char *dir, char *error, size_t error_size)
{
	char path[PATH_MAX], line[512], last[512] = "it left no message";
	FILE *file;

	snprintf(path, sizeof path, "%s/" LOG_NAME, dir);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (strspn(line, " \t\r\n") < strlen(line))
			memcpy(last, line, sizeof last);
	if (file)
		fclose(file);
	last[strcspn(last, "\r\n")] = '\0';
	snprintf(error, error_size, "the private server ended: %.160s (see %.160s)", last, path);
}
