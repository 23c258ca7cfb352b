/* check_farm.c - plays any number of proxies on loopback, good and bad ones.
 *
 * usage: check_farm
 *
 * Listens on one port of all addresses and prints it, behind it a port on which nobody listens. A proxy is an address 127.K.Y.Z:
 * K, from 1 on, says how it behaves, in the order of `enum kind`. Plain HTTP only; it answers for the target itself. One thread;
 * ends with its standard input. Callers that do not come over loopback are dropped. */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define DESCRIPTORS_MAX 65536
#define DRIP_MS 500

enum kind { GOOD = 1, SILENT, DRIP, RESET, GARBAGE, CREDENTIALS, REDIRECT, ENDLESS, KINDS };

static const char *const answers[KINDS] = {
    [GOOD] = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\nfairlead farm\n",
    [GARBAGE] = "SSH-2.0-OpenSSH_9.2p1\r\n",
    [CREDENTIALS] = "HTTP/1.1 407 Proxy Authentication Required\r\n"
		    "Proxy-Authenticate: Basic realm=\"farm\"\r\nContent-Length: 0\r\n\r\n",
    [REDIRECT] =
	"HTTP/1.1 302 Found\r\nLocation: http://farm.example/\r\nContent-Length: 0\r\n\r\n",
};
static const char dripped[] = "HTTP/1.1 200 OK\r\nX-Slow: ";

/* By descriptor. The last bytes of a head are kept, since its end may come in two reads. */
static struct {
	enum kind kind; /* 0: not open, or the listener */
	bool has_answered;
	size_t sent;
	char tail[3];
} proxies[DESCRIPTORS_MAX];
static int highest;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "check_farm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void proxy_end(int fd, bool is_reset)
{
	struct linger linger = {.l_onoff = 1};

	if (is_reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	proxies[fd].kind = 0;
	close(fd);
}

static void proxy_accept(int epoll, int listener)
{
	struct sockaddr_in local = {0};
	socklen_t len = sizeof local;
	struct epoll_event event = {.events = EPOLLIN};
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	uint32_t address, kind;

	if (fd < 0)
		return;
	if (fd >= DESCRIPTORS_MAX || getsockname(fd, (struct sockaddr *)&local, &len))
		fail("accept");
	address = ntohl(local.sin_addr.s_addr);
	kind = address >> 16 & 0xff;
	if (address >> 24 != 127 || !kind || kind >= KINDS) {
		close(fd);
		return;
	}
	memset(&proxies[fd], 0, sizeof proxies[fd]);
	proxies[fd].kind = (enum kind)kind;
	if (fd > highest)
		highest = fd;
	event.data.fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll");
}

/* What was read holds the end of the request's head, with what came before it. */
static bool has_head(int fd, const char *bytes, size_t len)
{
	char joined[3 + 4096];

	memcpy(joined, proxies[fd].tail, 3);
	memcpy(joined + 3, bytes, len);
	memcpy(proxies[fd].tail, joined + len, 3);
	return memmem(joined, 3 + len, "\r\n\r\n", 4);
}

#define ENDLESS_LINE "X-Endless: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
#define FOUR(text) text text text text

/* Many lines at a time: what is measured shall not wait for the farm. */
static void say_endlessly(int fd)
{
	static const char start[] = "HTTP/1.1 200 OK\r\n";
	static const char lines[] = FOUR(FOUR(FOUR(FOUR(ENDLESS_LINE))));
	const size_t start_len = sizeof start - 1, lines_len = sizeof lines - 1;
	ssize_t n;

	do {
		size_t sent = proxies[fd].sent;
		size_t at = sent < start_len ? sent : (sent - start_len) % lines_len;

		n = sent < start_len ? send(fd, start + at, start_len - at, MSG_NOSIGNAL)
				     : send(fd, lines + at, lines_len - at, MSG_NOSIGNAL);
		if (n > 0)
			proxies[fd].sent += (size_t)n;
	} while (n > 0);
	if (errno != EAGAIN)
		proxy_end(fd, true);
}

static void proxy_answer(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.fd = fd};
	const char *answer = answers[proxies[fd].kind];

	proxies[fd].has_answered = true;
	if (proxies[fd].kind == RESET) {
		proxy_end(fd, true);
	} else if (proxies[fd].kind == ENDLESS) {
		epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
	} else if (answer) {
		if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
			proxy_end(fd, true);
		else
			shutdown(fd, SHUT_WR);
	}
}

static void proxy_ready(int epoll, int fd, uint32_t events)
{
	char bytes[4096];
	ssize_t n;

	if (events & EPOLLOUT && proxies[fd].kind == ENDLESS)
		say_endlessly(fd);
	if (!proxies[fd].kind || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	n = recv(fd, bytes, sizeof bytes, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		proxy_end(fd, false);
	else if (n > 0 && !proxies[fd].has_answered && has_head(fd, bytes, (size_t)n))
		proxy_answer(epoll, fd);
}

/* A byte for each of those that drip, behind the head's first line a letter for ever. */
static void drip(void)
{
	for (int fd = 0; fd <= highest; fd++) {
		size_t at = proxies[fd].sent;

		if (proxies[fd].kind != DRIP || !proxies[fd].has_answered)
			continue;
		if (send(fd, at < sizeof dripped - 1 ? &dripped[at] : "a", 1, MSG_NOSIGNAL) == 1)
			proxies[fd].sent++;
	}
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A bound socket on a free port; it refuses as long as nobody listens on it. */
static int bind_port(uint16_t *ret_port)
{
	struct sockaddr_in place = {.sin_family = AF_INET};
	socklen_t len = sizeof place;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&place, sizeof place) ||
	    getsockname(fd, (struct sockaddr *)&place, &len))
		fail("bind");
	*ret_port = ntohs(place.sin_port);
	return fd;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll");
}

static void serve(int epoll, int listener)
{
	static struct epoll_event events[EVENTS_MAX];
	int64_t next_ms = now_ms() + DRIP_MS;

	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, DRIP_MS / 5);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO)
				return;
			if (fd == listener)
				proxy_accept(epoll, listener);
			else if (proxies[fd].kind)
				proxy_ready(epoll, fd, events[i].events);
		}
		if (now_ms() >= next_ms) {
			drip();
			next_ms = now_ms() + DRIP_MS;
		}
	}
}

int main(void)
{
	struct rlimit limit;
	uint16_t port, refusing;
	int epoll = epoll_create1(EPOLL_CLOEXEC), listener = bind_port(&port);

	bind_port(&refusing);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (epoll < 0 || listen(listener, 4096))
		fail("listen");
	watch(epoll, listener);
	watch(epoll, STDIN_FILENO);
	printf("%u %u\n", port, refusing);
	fflush(stdout);
	serve(epoll, listener);
	return 0;
}
