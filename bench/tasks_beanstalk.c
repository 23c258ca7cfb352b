/* tasks_beanstalk.c - a producer, or a worker, that is limited by beanstalkd alone.
 *
 * usage: tasks_beanstalk push|work PORT TASKS BATCH BYTES
 *
 * Commands are pipelined over one connection: 2 x BATCH tasks are under way, and each time that BATCH of them have been
 * answered the next BATCH leave in one write; a worker's deletes along with them. Prints the seconds from the first
 * command to the last answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int fd;
static bool is_push;
static size_t tasks, batch, bytes;
static char *out, *in;
static size_t out_len, in_len, in_size;

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "tasks_beanstalk: %s\n", why);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void flush_out(void)
{
	size_t sent = 0;

	while (sent < out_len) {
		ssize_t r = write(fd, out + sent, out_len - sent);

		if (r < 0)
			fail(strerror(errno));
		sent += (size_t)r;
	}
	out_len = 0;
}

static void ask_one(void)
{
	if (!is_push) {
		out_len += (size_t)sprintf(out + out_len, "reserve\r\n");
		return;
	}
	out_len += (size_t)sprintf(out + out_len, "put 1000 0 60 %zu\r\n", bytes);
	memset(out + out_len, 'x', bytes);
	memcpy(out + out_len + bytes, "\r\n", 2);
	out_len += bytes + 2;
}

/* The next answer's line, and its body skipped; it is good until the next call. */
static char *next_answer(void)
{
	static size_t used;
	size_t len;
	char *end;

	memmove(in, in + used, in_len - used);
	in_len -= used;
	for (;;) {
		end = memmem(in, in_len, "\r\n", 2);
		len = end ? (size_t)(end - in) + 2 : 0;
		if (end && strncmp(in, "RESERVED ", 9) == 0)
			len += bytes + 2;
		if (end && in_len >= len)
			break;
		ssize_t r = read(fd, in + in_len, in_size - in_len);

		if (r <= 0)
			fail(r ? strerror(errno) : "beanstalkd has closed the connection");
		in_len += (size_t)r;
	}
	*end = '\0';
	used = len;
	return in;
}

static void run(void)
{
	size_t begun = 0, found = 0, ended = 0;

	for (; begun < 2 * batch && begun < tasks; begun++)
		ask_one();
	flush_out();
	while (ended < tasks) {
		const char *line = next_answer();

		if (strncmp(line, "RESERVED ", 9) == 0)
			out_len += (size_t)sprintf(out + out_len, "delete %llu\r\n",
						   strtoull(line + 9, NULL, 10));
		else if (strcmp(line, "DELETED") == 0 || strncmp(line, "INSERTED ", 9) == 0)
			ended++;
		else
			fail(line);
		if (strcmp(line, "DELETED") == 0)
			continue;
		found++;
		if (found % batch && found < tasks)
			continue;
		for (size_t i = 0; i < batch && begun < tasks; i++, begun++)
			ask_one();
		flush_out();
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	double begin;

	if (argc != 6)
		fail("usage: tasks_beanstalk push|work PORT TASKS BATCH BYTES");
	is_push = strcmp(argv[1], "push") == 0;
	address.sin_port = htons((in_port_t)atoi(argv[2]));
	tasks = strtoul(argv[3], NULL, 10);
	batch = strtoul(argv[4], NULL, 10);
	bytes = strtoul(argv[5], NULL, 10);
	in_size = 1 << 16;
	out = malloc(2 * batch * (bytes + 64));
	in = malloc(in_size + bytes);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!out || !in || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		fail(strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	begin = now_s();
	run();
	printf("%.6f\n", now_s() - begin);
}
