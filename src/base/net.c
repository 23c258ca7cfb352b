/* net.c - listening and connecting on TCP and unix sockets. */
#include "base/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static int parse_port(const char *text, uint16_t *ret)
{
	char *end;
	unsigned long port;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	port = strtoul(text, &end, 10);
	if (*end || port > 65535)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

static int parse_unix(struct net_place *ret, const char *path)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->sa;
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof un->sun_path)
		return -EINVAL;
	memset(ret, 0, sizeof *ret);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len + 1);
	ret->len = (socklen_t)sizeof *un;
	return 0;
}

int net_place_parse(struct net_place *ret, const char *text)
{
	const char *colon = strrchr(text, ':');
	const char *host = text;
	size_t host_len;
	struct address address;
	bool is_bracketed;
	uint16_t port;

	if (!strncmp(text, "unix:", 5))
		return parse_unix(ret, text + 5);
	if (!colon || parse_port(colon + 1, &port))
		return -EINVAL;
	host_len = (size_t)(colon - text);
	is_bracketed = host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']';
	if (address_parse(&address, host + is_bracketed, host_len - 2 * (size_t)is_bracketed))
		return -EINVAL;
	/* "::1:8888" would be an address as well as a place. */
	if (is_bracketed != (address.family == AF_INET6))
		return -EINVAL;
	ret->len = address_to_sockaddr(&address, port, &ret->sa);
	return 0;
}

void net_place_print(const struct net_place *place, char *buffer, size_t size)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&place->sa;
	char host[64];
	struct address address;

	if (place->sa.ss_family == AF_UNIX) {
		snprintf(buffer, size, "unix:%s",
			 ((const struct sockaddr_un *)&place->sa)->sun_path);
		return;
	}
	if (address_from_sockaddr(&address, (const struct sockaddr *)&place->sa)) {
		snprintf(buffer, size, "unknown");
		return;
	}
	address_print(&address, host, sizeof host);
	/* The port has the same offset in both families. */
	snprintf(buffer, size, address.family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 ntohs(in6->sin6_port));
}

bool net_place_is_local(const struct net_place *place)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&place->sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&place->sa;

	if (place->sa.ss_family == AF_UNIX)
		return true;
	if (place->sa.ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static int new_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static void set_option(int fd, int level, int option)
{
	int on = 1;

	setsockopt(fd, level, option, &on, sizeof on);
}

void net_remove_stale(const struct net_place *place)
{
	const char *path = ((const struct sockaddr_un *)&place->sa)->sun_path;
	struct stat st;
	int fd;

	if (place->sa.ss_family != AF_UNIX || lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = new_socket(AF_UNIX);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)&place->sa, place->len) && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

int net_listen(const struct net_place *place)
{
	int fd = new_socket(place->sa.ss_family);
	int r;

	if (fd < 0)
		return fd;
	if (place->sa.ss_family == AF_UNIX)
		net_remove_stale(place);
	else
		set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	if (place->sa.ss_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (bind(fd, (const struct sockaddr *)&place->sa, place->len) || listen(fd, BACKLOG)) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static int bind_source(int fd, const struct address *source)
{
	struct sockaddr_storage sa;
	socklen_t len = address_to_sockaddr(source, 0, &sa);

	/* The port is chosen at connect(2), so that one source address serves more than 28,000 targets at once. */
	set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
	return bind(fd, (struct sockaddr *)&sa, len) ? -EAFNOSUPPORT : 0;
}

int net_connect(const struct sockaddr *sa, socklen_t len, const struct address *source)
{
	int fd = new_socket(sa->sa_family);
	int r = 0;

	if (fd < 0)
		return fd;
	if (sa->sa_family != AF_UNIX)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY);
	if (source)
		r = bind_source(fd, source);
	if (!r && connect(fd, sa, len) && errno != EINPROGRESS)
		r = -errno;
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

int net_accept(int listener, struct sockaddr_storage *ret_peer)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof peer;
	int fd;

	do
		fd =
		    accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return -errno;
	if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY);
	*ret_peer = peer;
	return fd;
}

int net_local_place(int fd, struct net_place *ret)
{
	struct net_place place = {.len = sizeof place.sa};

	if (getsockname(fd, (struct sockaddr *)&place.sa, &place.len))
		return -errno;
	*ret = place;
	return 0;
}

long net_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1024;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	return (long)limit.rlim_cur;
}
