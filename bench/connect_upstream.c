/* connect_upstream.c - the cheapest peer that a proxy can have: only the proxy is measured.
 *
 * usage: connect_upstream ADDRESS...
 *
 * Listens on a free port of each IPv4 address and prints them, `ADDRESS:PORT` a line. To CONNECT it
 * answers 200, then echoes; to any other method a fixed response, then it closes. One thread; ends
 * with its standard input. Answers are small and fit a socket's buffer: what does not is dropped
 * with its connection. */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

static void answer_head(int fd, const char *bytes, size_t size)
{
	bool is_sent;

	if (!peers[fd].first)
		peers[fd].first = bytes[0];
	if (!is_head_complete(fd, bytes, size))
		return;
	if (peers[fd].first == 'C') {
		is_sent = write(fd, connect_answer, sizeof connect_answer - 1) > 0;
		peers[fd].state = ECHO;
	} else {
		is_sent = write(fd, fixed_answer, sizeof fixed_answer - 1) > 0;
		peer_end(fd);
	}
	if (!is_sent && peers[fd].state != UNUSED)
		peer_end(fd);
}

static void read_peer(int fd)
{
	char bytes[HEAD_MAX];
	ssize_t size = read(fd, bytes, sizeof bytes);

	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0)
		peer_end(fd);
	else if (peers[fd].state == HEAD)
		answer_head(fd, bytes, (size_t)size);
	else if (write(fd, bytes, (size_t)size) != size)
		peer_end(fd);
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll = epoll_create1(0);

	for (int i = 1; i < argc; i++)
		listen_on(epoll, argv[i]);
	fflush(stdout);
	watch(epoll, STDIN_FILENO, UNUSED);
	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == STDIN_FILENO)
				return 0;
			if (peers[fd].state == LISTENER)
				accept_all(epoll, fd);
			else if (peers[fd].state != UNUSED)
				read_peer(fd);
		}
	}
}
