/* gateway_world.c - the world of fuzz_gateway. */
#include "gateway_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/resolve.h"
#include "gateway/internal.h"

#define SMALL_BUFFER 4096
#define SMALL_SEGMENT 536
#define BIG_BUFFER (1 << 19)
#define DESCRIPTORS_MAX 64
#define DIALS_MAX 64
#define REFUSED_PORT 9

static struct event tick; /* always active: no turn blocks */
static int64_t now_ms = 1000000;
static unsigned epoll_events;
static in_port_t upstream_port; /* in network order */
static uint32_t numbers;
static bool has_small_sockets;
static int lookups; /* under way */

/* Which descriptor the gateway dialled from which address. */
static struct {
	uint32_t number;
	int fd;
} dials[DIALS_MAX];
static size_t dial_count;

/* --- what stands in for the system -------------------------------------------------------------------------------- */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ret);
	*ret = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
	return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
	int n = (int)syscall(SYS_epoll_wait, fd, events, count, timeout);

	epoll_events += n > 0 ? (unsigned)n : 0;
	return n;
}

/* Each connection has its own address: so many a second would run out of ports, and it tells who is who. */
static struct sockaddr_in numbered_address(uint32_t number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x7f010000 + number % 0xfe0000)};
}

static uint32_t number_of(const struct sockaddr_in *address)
{
	return ntohl(address->sin_addr.s_addr) - 0x7f010000;
}

/* Connections inherit what a listener has. There is no way back to sizes that the kernel chooses; the big ones are big enough. A
 * segment must fit into a small window, else the kernel waits before it sends one. */
static void size_socket(int fd)
{
	int size = has_small_sockets ? SMALL_BUFFER : BIG_BUFFER;
	int segment = has_small_sockets ? SMALL_SEGMENT : 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
}

static int connect_numbered(int fd, in_port_t port, uint32_t number)
{
	struct sockaddr_in from = numbered_address(number);
	struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	if (has_small_sockets)
		size_socket(fd);
	CHECK(!bind(fd, (struct sockaddr *)&from, sizeof from));
	return (int)syscall(SYS_connect, fd, &to, sizeof to);
}

/* Whatever is dialled is the scripted upstream, but for one port and IPv6, which fail at once. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)to;

	(void)len;
	if (to->sa_family != AF_INET || in->sin_port == htons(REFUSED_PORT)) {
		errno = to->sa_family == AF_INET ? ECONNREFUSED : ENETUNREACH;
		return -1;
	}
	dials[dial_count % DIALS_MAX].fd = fd;
	dials[dial_count++ % DIALS_MAX].number = ++numbers % 0xfe0000;
	return connect_numbered(fd, upstream_port, numbers);
}

struct resolve {
	struct event event;
	resolve_cb *cb;
	void *arg;
	bool is_found;
};

static void on_resolved(evutil_socket_t fd, short what, void *arg)
{
	struct resolve *resolve = arg;
	struct address address = {.family = AF_INET, .bytes = {192, 0, 2, 1}};

	(void)fd;
	(void)what;
	lookups--;
	resolve->cb(resolve->is_found ? 0 : -ENOENT, &address, resolve->is_found, resolve->arg);
	free(resolve);
}

/* Names with an 'n' at the front do not exist; those with an 's' take longer than a dial may. */
int resolve_start(struct resolve **ret, struct loop *loop, const char *host, resolve_cb *cb,
		  void *arg)
{
	struct resolve *resolve = calloc(1, sizeof *resolve);
	struct timeval wait = {.tv_sec = *host == 's' ? 2 * WORLD_DIAL_MS / 1000 : 0};

	CHECK(resolve);
	resolve->cb = cb;
	resolve->arg = arg;
	resolve->is_found = *host != 'n';
	event_assign(&resolve->event, loop_base(loop), -1, 0, on_resolved, resolve);
	event_add(&resolve->event, &wait);
	lookups++;
	*ret = resolve;
	return 0;
}

void resolve_cancel(struct resolve *resolve)
{
	if (!resolve)
		return;
	event_del(&resolve->event);
	free(resolve);
	lookups--;
}

bool world_is_looking_up(void)
{
	return lookups > 0;
}

/* --- far ends ----------------------------------------------------------------------------------------------------- */

/* What is said arrives at once, whatever was said before. */
static void peer_init(struct peer *peer, int fd, uint32_t number)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*peer = (struct peer){.fd = fd, .number = number, .owner = -1};
	buffer_init(&peer->said, WORLD_BYTES_MAX);
	buffer_init(&peer->heard, WORLD_BYTES_MAX);
}

static void peer_close(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

struct peer *world_connect(struct world *w)
{
	struct net_place place;
	struct peer *peer;
	uint32_t number = ++numbers % 0xfe0000;
	int fd;

	if (w->client_count == WORLD_CLIENTS_MAX)
		return NULL;
	CHECK(!net_local_place(w->listener, &place));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(!connect_numbered(fd, ((struct sockaddr_in *)&place.sa)->sin_port, number) ||
	      errno == EINPROGRESS);
	peer = &w->clients[w->client_count++];
	peer_init(peer, fd, number);
	return peer;
}

void peer_say(struct peer *peer, const void *bytes, size_t len)
{
	ssize_t n;

	if (peer->fd < 0 || peer->has_shut || buffer_room(&peer->said) < len)
		return;
	n = send(peer->fd, bytes, len, MSG_NOSIGNAL);
	if (n > 0)
		CHECK(!buffer_add(&peer->said, bytes, (size_t)n));
	else if (errno != EAGAIN) /* told once: recv(2) will only say that this is the end */
		peer->is_broken = true;
}

void peer_listen(struct peer *peer)
{
	char bytes[65536];
	ssize_t n;

	while (peer->fd >= 0 && !peer->has_ended) {
		n = recv(peer->fd, bytes, sizeof bytes, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		peer->has_ended = n <= 0;
		peer->is_broken = peer->is_broken || n < 0;
		if (n > 0)
			CHECK(!buffer_add(&peer->heard, bytes, (size_t)n));
	}
}

void peer_shut(struct peer *peer)
{
	if (peer->fd < 0 || peer->has_shut)
		return;
	peer->has_shut = true;
	shutdown(peer->fd, SHUT_WR);
}

void peer_reset(struct peer *peer)
{
	struct linger linger = {.l_onoff = 1};

	peer_listen(peer);
	if (peer->fd < 0)
		return;
	peer->has_reset = true;
	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	peer_close(peer);
}

/* The client whose exchange has just dialled from `number`; -1 when it has ended already. */
static int find_owner(const struct world *w, uint32_t number)
{
	struct client *client;
	int fd = -1;

	for (size_t i = 0; i < DIALS_MAX; i++)
		if (dials[i].number == number)
			fd = dials[i].fd;
	if (!w->gateway)
		return -1;
	TAILQ_FOREACH (client, &w->gateway->clients, link) {
		struct sockaddr_in peer = {0};

		if (!client->exchange || client->exchange->upstream.stream.fd != fd ||
		    inet_pton(AF_INET, client->peer, &peer.sin_addr) != 1)
			continue;
		for (size_t i = 0; i < w->client_count; i++)
			if (w->clients[i].number == number_of(&peer))
				return (int)i;
	}
	return -1;
}

static void accept_dialled(struct world *w)
{
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	struct peer *peer;
	int fd;

	while ((fd = accept4(w->upstream_listener, (struct sockaddr *)&from, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (w->upstream_count == WORLD_UPSTREAMS_MAX) {
			w->lost++;
			close(fd);
			continue;
		}
		peer = &w->upstreams[w->upstream_count++];
		peer_init(peer, fd, number_of(&from));
		peer->owner = find_owner(w, peer->number);
		if (peer->owner < 0 && w->client_count == 1)
			peer->owner = 0;
	}
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

void world_turn(struct world *w)
{
	event_active(&tick, EV_TIMEOUT, 0);
	loop_turn(w->loop);
	accept_dialled(w);
}

void world_sleep(struct world *w, int64_t ms)
{
	now_ms += ms;
	w->slept_ms += ms;
	world_turn(w);
}

static size_t listen_all(struct world *w)
{
	size_t heard = 0;

	for (size_t i = 0; i < w->client_count; i++) {
		peer_listen(&w->clients[i]);
		heard += buffer_len(&w->clients[i].heard) + w->clients[i].has_ended;
	}
	for (size_t i = 0; i < w->upstream_count; i++) {
		peer_listen(&w->upstreams[i]);
		heard += buffer_len(&w->upstreams[i].heard) + w->upstreams[i].has_ended;
	}
	return heard;
}

/* Idle turns that must follow one another: a timer that is due takes one more. */
#define QUIET_TURNS 3
/* Turns without a byte moved in which descriptors are ready nevertheless: the loop spins. */
#define BUSY_TURNS 2000

/* How long the kernel may sit on bytes that a small window has held back: longer than its first probe takes. */
#define KERNEL_MS 300

/* The gateway hears nothing more from there. */
static bool is_over(const struct world *w, int fd)
{
	for (size_t i = 0; i < w->client_count; i++)
		if (w->clients[i].fd == fd && w->clients[i].has_ended)
			return true;
	for (size_t i = 0; i < w->upstream_count; i++)
		if (w->upstreams[i].fd == fd && w->upstreams[i].has_ended)
			return true;
	return false;
}

/* Bytes wait to be sent although all that has arrived was read. What the gateway does not read is not the kernel's fault. */
static bool is_kernel_late(const struct world *w)
{
	int bytes;
	bool is_late = false;

	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
		if (!ioctl(fd, SIOCOUTQNSD, &bytes) && bytes > 0 && !is_over(w, fd))
			is_late = true;
		if (!ioctl(fd, SIOCINQ, &bytes) && bytes > 0)
			return false;
	}
	return is_late;
}

void world_settle(struct world *w)
{
	size_t before, heard = listen_all(w);
	unsigned quiet = 0, busy = 0;
	int waits = 0;

	while (quiet < QUIET_TURNS || (w->is_small && !w->is_drained && waits++ < KERNEL_MS &&
				       is_kernel_late(w) && poll(NULL, 0, 1) == 0)) {
		before = heard;
		epoll_events = 0;
		world_turn(w);
		heard = listen_all(w);
		quiet = epoll_events || heard != before ? 0 : quiet + 1;
		busy = heard != before ? 0 : busy + 1;
		CHECK(busy < BUSY_TURNS);
	}
}

/* --- an input ----------------------------------------------------------------------------------------------------- */

static int listen_on(const char *text)
{
	struct net_place place;
	int fd;

	CHECK(!net_place_parse(&place, text));
	fd = net_listen(&place);
	CHECK(fd >= 0);
	return fd;
}

struct world *world_new(void)
{
	static struct world world;
	struct net_place place;

	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	CHECK(!loop_new(&world.loop));
	event_assign(&tick, loop_base(world.loop), -1, 0, on_tick, NULL);
	world.listener = listen_on("127.0.0.1:0");
	world.upstream_listener = listen_on("127.0.0.1:0");
	CHECK(!net_local_place(world.upstream_listener, &place));
	upstream_port = ((struct sockaddr_in *)&place.sa)->sin_port;
	return &world;
}

void world_begin(struct world *w, const struct gateway_config *config,
		 enum listen_protocol protocol, bool is_small)
{
	struct listen_spec spec = {.protocol = protocol};

	w->client_count = w->upstream_count = w->lost = 0;
	w->slept_ms = 0;
	w->is_drained = false;
	w->is_small = is_small;
	has_small_sockets = is_small;
	size_socket(w->listener);
	size_socket(w->upstream_listener);
	CHECK(!gateway_new(&w->gateway, w->loop, config));
	CHECK(!gateway_listen(w->gateway, w->listener, &spec));
}

/* What is open, one digit a descriptor: pipes of the relay may stay, sockets may not. */
static void note_sockets(char *ret)
{
	int type;
	socklen_t len = sizeof type;

	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
		ret[fd] = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) ? '0' : '1';
}

static void close_all(struct peer *peers, size_t count, bool by_reset)
{
	for (size_t i = 0; i < count; i++) {
		if (by_reset)
			peer_reset(&peers[i]);
		else
			peer_close(&peers[i]);
	}
}

void world_free_gateway(struct world *w)
{
	gateway_free(w->gateway);
	w->gateway = NULL;
	world_turn(w);
}

/* Nobody is there any more: the gateway shall see it without waiting for a deadline, but for that of a lookup, whose client may
 * just have half-closed. */
static void check_that_all_has_gone(struct world *w)
{
	if (lookups)
		world_sleep(w, WORLD_DIAL_MS);
	for (int i = 0; i < BUSY_TURNS && w->gateway->client_count; i++) {
		world_turn(w);
		close_all(w->upstreams, w->upstream_count, false);
	}
	CHECK(w->gateway->client_count == 0);
	world_free_gateway(w);
}

/* Connections that nobody took, as happens while the gateway drains. */
static void clear_listeners(const struct world *w)
{
	int fds[] = {w->listener, w->upstream_listener};
	struct sockaddr_storage peer;
	int fd;

	for (int i = 0; i < 2; i++)
		while ((fd = net_accept(fds[i], &peer)) >= 0)
			close(fd);
}

void world_end(struct world *w, bool by_reset, bool upstreams_first)
{
	static char sockets[DESCRIPTORS_MAX], now[DESCRIPTORS_MAX];

	if (upstreams_first) {
		close_all(w->upstreams, w->upstream_count, by_reset);
		world_turn(w);
	}
	close_all(w->clients, w->client_count, by_reset);
	world_turn(w);
	close_all(w->upstreams, w->upstream_count, by_reset);
	if (w->gateway)
		check_that_all_has_gone(w);
	CHECK(lookups == 0);
	CHECK(metric_own(METRIC_CLIENTS) == 0 && metric_own(METRIC_EXCHANGES) == 0);
	clear_listeners(w);
	world_turn(w);
	CHECK(event_base_get_num_events(loop_base(w->loop), EVENT_BASE_COUNT_ADDED) == 0);
	note_sockets(now);
	if (!*sockets)
		memcpy(sockets, now, sizeof sockets);
	CHECK(!memcmp(sockets, now, sizeof sockets));
	for (size_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
		buffer_fini(&w->clients[i].said);
		buffer_fini(&w->clients[i].heard);
	}
	for (size_t i = 0; i < WORLD_UPSTREAMS_MAX; i++) {
		buffer_fini(&w->upstreams[i].said);
		buffer_fini(&w->upstreams[i].heard);
	}
}
