/* connect_upstream.c - the cheapest peer that a proxy can have: only the proxy is measured.
 *
 * usage: connect_upstream [-d MS] ADDRESS...
 *
 * Listens on a free port of each IPv4 address and prints them, `ADDRESS:PORT` a line. To CONNECT it
 * answers 200, then echoes; to any other method a fixed response (with -d so long after the head),
 * then it closes. One thread; ends with its standard input, and prints then how many responses it
 * has given, and how many requests waited for theirs, on average over time and at most. Answers are
 * small and fit a socket's buffer: what does not is dropped with its connection. */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 4096
#define EVENTS_MAX 256
#define DESCRIPTORS_MAX 65536

static const char connect_answer[] = "HTTP/1.1 200 OK\r\n\r\n";
static const char fixed_answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n"
    "Connection: close\r\n\r\n"
    "0123456789012345678901234567890123456789012345678\n"
    "0123456789012345678901234567890123456789012345678\n";

enum state { UNUSED, LISTENER, HEAD, ECHO };

/* By descriptor. The last bytes of a head are kept, since its end may come in two reads. */
static struct {
	enum state state;
	char first, tail[3];
} peers[DESCRIPTORS_MAX];

/* Requests that wait for their response, the oldest first: the delay is the same for all. */
static struct {
	int delay_ms;
	int fds[DESCRIPTORS_MAX];
	int64_t due_us[DESCRIPTORS_MAX];
	size_t first, count;
} waiting;

/* Of the time since the first request. */
static struct {
	int64_t begun_us, last_us, waited_us;
	size_t served, most;
} tally;

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Before the number of those that wait changes. */
static void tally_time(int64_t now)
{
	if (!tally.begun_us)
		tally.begun_us = tally.last_us = now;
	tally.waited_us += (now - tally.last_us) * (int64_t)waiting.count;
	tally.last_us = now;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "connect_upstream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(int epoll, int fd, enum state state)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (fd >= DESCRIPTORS_MAX || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll");
	peers[fd].state = state;
	peers[fd].first = '\0';
	memset(peers[fd].tail, 0, sizeof peers[fd].tail);
}

static void peer_end(int fd)
{
	peers[fd].state = UNUSED;
	close(fd);
}

static void listen_on(int epoll, const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
		errno = EINVAL;
		fail(text);
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		fail(text);
	watch(epoll, fd, LISTENER);
	printf("%s:%u\n", text, ntohs(address.sin_port));
}

static void accept_all(int epoll, int listener)
{
	const int on = 1;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		watch(epoll, fd, HEAD);
	}
}

/* Does the head end within these bytes? Nothing follows it before its answer. */
static bool is_head_complete(int fd, const char *bytes, size_t size)
{
	char end[sizeof peers[fd].tail + HEAD_MAX];
	size_t total = sizeof peers[fd].tail + size;

	memcpy(end, peers[fd].tail, sizeof peers[fd].tail);
	memcpy(end + sizeof peers[fd].tail, bytes, size);
	memcpy(peers[fd].tail, end + total - sizeof peers[fd].tail, sizeof peers[fd].tail);
	return memcmp(end + total - 4, "\r\n\r\n", 4) == 0;
}

static void answer_plain(int fd)
{
	if (write(fd, fixed_answer, sizeof fixed_answer - 1) > 0)
		tally.served++;
	peer_end(fd);
}

/* Nobody looks at it meanwhile. */
static void make_wait(int epoll, int fd)
{
	size_t last = (waiting.first + waiting.count) % DESCRIPTORS_MAX;
	int64_t now = now_us();

	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	tally_time(now);
	waiting.fds[last] = fd;
	waiting.due_us[last] = now + waiting.delay_ms * INT64_C(1000);
	waiting.count++;
	if (waiting.count > tally.most)
		tally.most = waiting.count;
}

/* Returns the milliseconds until the next is due; -1: nobody waits. */
static int answer_due(void)
{
	int64_t now = now_us();

	while (waiting.count && waiting.due_us[waiting.first] <= now) {
		tally_time(now);
		answer_plain(waiting.fds[waiting.first]);
		waiting.first = (waiting.first + 1) % DESCRIPTORS_MAX;
		waiting.count--;
	}
	return waiting.count ? (int)((waiting.due_us[waiting.first] - now + 999) / 1000) : -1;
}

static void answer_head(int epoll, int fd, const char *bytes, size_t size)
{
	if (!peers[fd].first)
		peers[fd].first = bytes[0];
	if (!is_head_complete(fd, bytes, size))
		return;
	if (peers[fd].first != 'C' && waiting.delay_ms)
		make_wait(epoll, fd);
	else if (peers[fd].first != 'C')
		answer_plain(fd);
	else if (write(fd, connect_answer, sizeof connect_answer - 1) > 0)
		peers[fd].state = ECHO;
	else
		peer_end(fd);
}

static void read_peer(int epoll, int fd)
{
	char bytes[HEAD_MAX];
	ssize_t size = read(fd, bytes, sizeof bytes);

	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0)
		peer_end(fd);
	else if (peers[fd].state == HEAD)
		answer_head(epoll, fd, bytes, (size_t)size);
	else if (write(fd, bytes, (size_t)size) != size)
		peer_end(fd);
}

static void print_tally(void)
{
	tally_time(now_us());
	printf("served=%zu waited_mean=%.1f waited_most=%zu\n", tally.served,
	       (double)tally.waited_us / (double)(tally.last_us - tally.begun_us + 1), tally.most);
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll = epoll_create1(0);
	int first = 1;

	if (argc > 2 && strcmp(argv[1], "-d") == 0) {
		waiting.delay_ms = atoi(argv[2]);
		first = 3;
	}
	for (int i = first; i < argc; i++)
		listen_on(epoll, argv[i]);
	fflush(stdout);
	watch(epoll, STDIN_FILENO, UNUSED);
	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, answer_due());

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO) {
				print_tally();
				return 0;
			}
			if (peers[fd].state == LISTENER)
				accept_all(epoll, fd);
			else if (peers[fd].state != UNUSED)
				read_peer(epoll, fd);
		}
	}
}
