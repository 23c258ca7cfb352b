/* real_redis.c - a redis-server of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "real_redis.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TRIES 1000

static char answer[1 << 16];
static size_t answer_len;

static int call_up(const struct real_redis *redis)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", redis->socket);
	if (!connect(fd, (struct sockaddr *)&un, sizeof(un)))
		return fd;
	close(fd);
	return -1;
}

static void keep(const char *text)
{
	int len = snprintf(answer + answer_len, sizeof(answer) - answer_len, "%s%s",
			   answer_len ? " " : "", text);

	answer_len += (size_t)len;
	assert_true(answer_len < sizeof(answer));
}

/* Reads one reply of RESP2 and appends it to the answer, flattened. */
static bool read_reply(FILE *from)
{
	static char line[1 << 16];
	long number;

	if (!fgets(line, sizeof(line), from))
		return false;
	line[strcspn(line, "\r\n")] = '\0';
	number = atol(line + 1);
	if (strchr("+-:", line[0])) {
		keep(line + 1);
	} else if (number < 0) {
		keep("nil");
	} else if (line[0] == '$') {
		assert_true(fread(line, 1, (size_t)number + 2, from) == (size_t)number + 2);
		line[number] = '\0';
		keep(line);
	} else {
		while (number-- > 0 && read_reply(from))
			;
	}
	return true;
}

static bool ask(struct real_redis *redis, const char *command)
{
	int fd = call_up(redis);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r+");
	bool is_answered;

	answer_len = 0;
	answer[0] = '\0';
	if (!stream)
		return false;
	fprintf(stream, "%s\r\n", command);
	fflush(stream);
	is_answered = read_reply(stream);
	fclose(stream);
	return is_answered;
}

const char *redis_ask(struct real_redis *redis, const char *command)
{
	assert_true(ask(redis, command));
	return answer;
}

const char *redis_askf(struct real_redis *redis, const char *format, ...)
{
	static char command[1 << 16];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return redis_ask(redis, command);
}

static void become_server(const struct real_redis *redis, const char *option, const char *value)
{
	char setting[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(setting, sizeof(setting), "--%s", option ? option : "");
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket,
	       "--dir", redis->folder, "--save", "", "--appendonly", "no", "--logfile", "/dev/null",
	       option ? setting : NULL, value, NULL);
	_exit(127);
}

static void launch(struct real_redis *redis, const char *option, const char *value)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int tries = 0;

	redis->pid = fork();
	assert_true(redis->pid >= 0);
	if (redis->pid == 0)
		become_server(redis, option, value);
	/* Any answer will do: with a password it is an error. */
	while (!ask(redis, "PING")) {
		assert_true(++tries < START_TRIES);
		assert_int_equal(waitpid(redis->pid, NULL, WNOHANG), 0);
		nanosleep(&pause, NULL);
	}
}

void redis_start(struct real_redis *redis, const char *option, const char *value)
{
	*redis = (struct real_redis){.folder = "/tmp/fairlead-unit-XXXXXX"};
	assert_non_null(mkdtemp(redis->folder));
	snprintf(redis->socket, sizeof(redis->socket), "%s/redis.sock", redis->folder);
	snprintf(redis->url, sizeof(redis->url), "unix://%s", redis->socket);
	launch(redis, option, value);
}

static void end(struct real_redis *redis)
{
	kill(redis->pid, SIGKILL);
	waitpid(redis->pid, NULL, 0);
	unlink(redis->socket);
	redis->pid = 0;
}

void redis_restart(struct real_redis *redis)
{
	end(redis);
	launch(redis, NULL, NULL);
}

void redis_stop(struct real_redis *redis)
{
	if (redis->pid > 0) {
		end(redis);
		rmdir(redis->folder);
	}
}

long redis_calls(struct real_redis *redis, const char *command)
{
	char label[64];
	const char *at;

	snprintf(label, sizeof(label), "cmdstat_%s:calls=", command);
	at = strstr(redis_ask(redis, "INFO commandstats"), label);
	return at ? atol(at + strlen(label)) : 0;
}
