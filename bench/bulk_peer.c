/* bulk_peer.c - both ends of tunnels that carry as much as they can; the peers spend as little as possible themselves.
 *
 * usage: bulk_peer upstream ADDRESS
 *        bulk_peer up|down TUNNELS BYTES PROXY_ADDRESS PORT TARGET
 *
 * The upstream listens on a free port, prints `ADDRESS:PORT`, answers CONNECT with 200, and does what the first byte in the
 * tunnel says: U reads to the end, D writes until its peer goes. It ends with its standard input. The clients, TUNNELS at
 * once, move BYTES through each tunnel and print one line of key=value when the last byte has arrived. A process a
 * connection; what is received is dropped in the kernel (MSG_TRUNC), so that the proxy is what limits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_BYTES ((size_t)1 << 20)

static char source[STEP_BYTES];

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "bulk_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Sends `bytes`; false when the peer has gone. */
static bool send_bytes(int fd, uint64_t bytes)
{
	while (bytes > 0) {
		ssize_t n =
		    send(fd, source, bytes < STEP_BYTES ? (size_t)bytes : STEP_BYTES, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes -= (uint64_t)n;
	}
	return true;
}

/* Drops up to `bytes`, and returns how many came before the end. */
static uint64_t drop_bytes(int fd, uint64_t bytes)
{
	uint64_t sum = 0;

	while (sum < bytes) {
		size_t len = bytes - sum < STEP_BYTES ? (size_t)(bytes - sum) : STEP_BYTES;
		ssize_t n = recv(fd, NULL, len, MSG_TRUNC);

		if (n <= 0)
			break;
		sum += (uint64_t)n;
	}
	return sum;
}

/* Byte for byte: nothing behind the head is taken. */
static bool read_head(int fd)
{
	static const char end[] = "\r\n\r\n";
	size_t matched = 0;
	char byte;

	while (matched < 4 && read(fd, &byte, 1) == 1)
		matched = byte == end[matched] ? matched + 1 : byte == end[0];
	return matched == 4;
}

static struct sockaddr_in place(const char *address, const char *port)
{
	struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	errno = EINVAL;
	if (inet_pton(AF_INET, address, &found.sin_addr) != 1)
		fail(address);
	return found;
}

static void set_no_delay(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* --- the upstream ------------------------------------------------------------------------------------------------- */

static void serve(int fd)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n";
	char way;

	set_no_delay(fd);
	if (!read_head(fd) || write(fd, answer, sizeof answer - 1) < 0 || read(fd, &way, 1) != 1)
		return;
	if (way == 'U')
		drop_bytes(fd, UINT64_MAX);
	else
		send_bytes(fd, UINT64_MAX);
}

static void upstream(const char *address)
{
	struct sockaddr_in own = place(address, "0");
	struct pollfd polled[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	socklen_t size = sizeof own;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&own, size) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&own, &size))
		fail("listen");
	printf("%s:%u\n", address, ntohs(own.sin_port));
	fflush(stdout);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	polled[1].fd = fd;
	while (poll(polled, 2, -1) > 0 && !polled[0].revents) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0 && fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve(client);
			_exit(0);
		}
		close(client);
	}
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static bool carry(const struct sockaddr_in *proxy, const char *target, bool is_up, uint64_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char request[512];
	int size = snprintf(request, sizeof request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			    target, target);
	bool is_good;

	set_no_delay(fd);
	if (connect(fd, (const struct sockaddr *)proxy, sizeof *proxy) ||
	    write(fd, request, (size_t)size) != size || !read_head(fd) ||
	    write(fd, is_up ? "U" : "D", 1) != 1)
		return false;
	if (is_up)
		is_good =
		    send_bytes(fd, bytes) && shutdown(fd, SHUT_WR) == 0 && drop_bytes(fd, 1) == 0;
	else
		is_good = drop_bytes(fd, bytes) == bytes;
	close(fd);
	return is_good;
}

static int load(char **argv)
{
	const bool is_up = strcmp(argv[1], "up") == 0;
	const int tunnels = atoi(argv[2]);
	const uint64_t bytes = strtoull(argv[3], NULL, 10);
	const struct sockaddr_in proxy = place(argv[4], argv[5]);
	const int64_t begun_us = now_us();
	int errors = 0, status;
	double seconds;

	for (int i = 0; i < tunnels; i++)
		if (fork() == 0)
			_exit(!carry(&proxy, argv[6], is_up, bytes));
	while (wait(&status) > 0)
		errors += status != 0;
	seconds = (double)(now_us() - begun_us) / 1e6;
	printf("done=%d errors=%d seconds=%.3f bytes_per_second=%.0f\n", tunnels, errors, seconds,
	       (double)bytes * tunnels / seconds);
	return errors != 0;
}

int main(int argc, char **argv)
{
	memset(source, 'x', sizeof source);
	if (argc == 3 && strcmp(argv[1], "upstream") == 0)
		upstream(argv[2]);
	else if (argc == 7)
		return load(argv);
	else {
		fputs("usage: bulk_peer upstream ADDRESS\n"
		      "       bulk_peer up|down TUNNELS BYTES ADDRESS PORT TARGET\n",
		      stderr);
		return 2;
	}
	return 0;
}
