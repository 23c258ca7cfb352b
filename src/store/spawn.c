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

/* Between fork and exec: a session, signals, files and descriptors of its own. */
static void detach(const char *log)
{
	sigset_t none;
	int fd;

	setsid();
	umask(077);
	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, STDIN_FILENO);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
}

static void run(const char *program, const char *dir, const char *socket, const char *log)
{
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
