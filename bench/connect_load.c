/* connect_load.c - clients of a proxy, many at once, that count and time what they do.
 *
 * usage: connect_load [-g] [-h] -c PARALLEL -n TOTAL [-s BYTES] PROXY_ADDRESS PORT TARGET
 *
 * Each tunnel: CONNECT TARGET, wait for 2xx, send BYTES, wait until as many came back, close. With
 * -g instead: GET http://TARGET/ with `Connection: close`, read until the end. With -h the tunnels
 * are opened and used, `holding` is printed, and they stay until standard input ends. Prints one
 * line of key=value; times are from connect() to the last byte. Clients come from many addresses of
 * 127.0.1.0/24, so that ports in TIME_WAIT are never short. */
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

#define EVENTS_MAX 256
#define HEAD_MAX 2048
#define PAYLOAD_MAX 65536

enum state { CONNECTING, HEAD, PAYLOAD, REST, HELD };

struct client {
	int fd;
	enum state state;
	int64_t started_us;
	size_t head_size, received;
	char head[HEAD_MAX];
};

static struct {
	bool is_get, is_hold;
	int parallel, total;
	size_t payload_size;
	struct sockaddr_in proxy;
	char request[512];
	size_t request_size;
} config = {.parallel = 1, .total = 1, .payload_size = 100};

static int epoll_fd;
static int started, done, errors, held;
static int64_t *latency_us;
static char payload[PAYLOAD_MAX];

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "connect_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void client_start(struct client *c)
{
	const int on = 1;
	struct sockaddr_in source = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(0x7f000100u + 1 + (uint32_t)started % 250),
	};
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};

	started++;
	*c = (struct client){.state = CONNECTING, .started_us = now_us()};
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		fail("socket");
	setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (bind(c->fd, (struct sockaddr *)&source, sizeof source) < 0)
		fail("bind");
	if (connect(c->fd, (struct sockaddr *)&config.proxy, sizeof config.proxy) < 0 &&
	    errno != EINPROGRESS)
		fail("connect");
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event) < 0)
		fail("epoll");
}

/* The one end of each exchange; the next one takes its place. */
static void client_end(struct client *c, bool is_good)
{
	if (is_good)
		latency_us[done - errors] = now_us() - c->started_us;
	else
		errors++;
	done++;
	if (is_good && config.is_hold) {
		c->state = HELD;
		held++;
		return;
	}
	close(c->fd);
	if (started < config.total)
		client_start(c);
}

static void client_connected(struct client *c)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

	c->state = HEAD;
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
	if (write(c->fd, config.request, config.request_size) != (ssize_t)config.request_size)
		client_end(c, false);
}

static bool is_success(const char *head)
{
	return strncmp(head, "HTTP/1.", 7) == 0 && strncmp(head + 8, " 2", 2) == 0;
}

static void client_head(struct client *c, const char *bytes, size_t size)
{
	char *end;

	if (c->head_size + size >= HEAD_MAX) {
		client_end(c, false);
		return;
	}
	memcpy(c->head + c->head_size, bytes, size);
	c->head_size += size;
	c->head[c->head_size] = '\0';
	end = strstr(c->head, "\r\n\r\n");
	if (!end)
		return;
	if (!is_success(c->head)) {
		client_end(c, false);
	} else if (config.is_get) {
		c->state = REST;
		c->received = c->head_size - (size_t)(end + 4 - c->head);
	} else {
		c->state = PAYLOAD;
		if (write(c->fd, payload, config.payload_size) != (ssize_t)config.payload_size)
			client_end(c, false);
	}
}

static void client_read(struct client *c)
{
	char bytes[HEAD_MAX];
	ssize_t size = read(c->fd, bytes, sizeof bytes);

	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0) {
		client_end(c, c->state == REST && size == 0 && c->received > 0);
		return;
	}
	switch (c->state) {
	case HEAD:
		client_head(c, bytes, (size_t)size);
		break;
	case PAYLOAD:
		c->received += (size_t)size;
		if (c->received >= config.payload_size)
			client_end(c, c->received == config.payload_size);
		break;
	case REST:
		c->received += (size_t)size;
		break;
	case CONNECTING:
	case HELD:
		break;
	}
}

static int compare_us(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static void print_result(int64_t took_us)
{
	int good = done - errors;

	qsort(latency_us, (size_t)good, sizeof *latency_us, compare_us);
	printf("done=%d errors=%d seconds=%.3f per_second=%.0f p50_us=%lld p99_us=%lld\n", done,
	       errors, (double)took_us / 1e6, (double)good * 1e6 / (double)took_us,
	       (long long)(good ? latency_us[good / 2] : 0),
	       (long long)(good ? latency_us[(int)((double)good * 0.99)] : 0));
	fflush(stdout);
}

static void run(void)
{
	struct client *clients = calloc((size_t)config.parallel, sizeof *clients);
	struct epoll_event events[EVENTS_MAX];
	int64_t begun_us = now_us();
	int opened = 0;

	if (!clients)
		fail("memory");
	while (done < config.total) {
		int count;

		/* In steps: the proxy's backlog does not take thousands at once. */
		while (opened < config.parallel && started < config.total &&
		       started - done < EVENTS_MAX)
			client_start(&clients[opened++]);
		count = epoll_wait(epoll_fd, events, EVENTS_MAX, 10000);
		if (count == 0)
			fail("nothing within 10 s");
		for (int i = 0; i < count; i++) {
			struct client *c = events[i].data.ptr;

			if (c->state == CONNECTING)
				client_connected(c);
			else
				client_read(c);
		}
	}
	print_result(now_us() - begun_us);
	free(clients);
}

static void hold(void)
{
	char byte;

	printf("holding %d\n", held);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0) {
	}
}

static _Noreturn void usage(void)
{
	fputs("usage: connect_load [-g] [-h] -c PARALLEL -n TOTAL [-s BYTES] ADDRESS PORT TARGET\n",
	      stderr);
	exit(2);
}

static void read_arguments(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "ghc:n:s:")) != -1) {
		switch (option) {
		case 'g':
			config.is_get = true;
			break;
		case 'h':
			config.is_hold = true;
			break;
		case 'c':
			config.parallel = atoi(optarg);
			break;
		case 'n':
			config.total = atoi(optarg);
			break;
		case 's':
			config.payload_size = (size_t)atoi(optarg);
			break;
		default:
			usage();
		}
	}
	config.proxy.sin_family = AF_INET;
	if (argc - optind != 3 || config.parallel < 1 || config.total < config.parallel ||
	    config.payload_size > PAYLOAD_MAX ||
	    inet_pton(AF_INET, argv[optind], &config.proxy.sin_addr) != 1)
		usage();
	config.proxy.sin_port = htons((uint16_t)atoi(argv[optind + 1]));
	config.request_size =
	    (size_t)snprintf(config.request, sizeof config.request,
			     config.is_get ? "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n"
					     "Connection: close\r\n\r\n"
					   : "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			     argv[optind + 2], argv[optind + 2]);
	memset(payload, 'x', sizeof payload);
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv);
	latency_us = calloc((size_t)config.total, sizeof *latency_us);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!latency_us || epoll_fd < 0)
		fail("start");
	run();
	if (config.is_hold)
		hold();
	return errors ? 1 : 0;
}
