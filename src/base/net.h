/* net.h - listening and connecting on TCP and unix sockets; every descriptor is non-blocking and close-on-exec. */
#ifndef FAIRLEAD_BASE_NET_H
#define FAIRLEAD_BASE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/address.h"
#include "base/result.h"

/* Where to listen or to connect: an IP address and port, or the path of a unix socket. */
struct net_place {
	struct sockaddr_storage sa;
	socklen_t len;
};

/* "127.0.0.1:8888", "[::1]:8888", "unix:/path". 0 or -EINVAL. */
MUST_USE int net_place_parse(struct net_place *ret, const char *text);
void net_place_print(const struct net_place *place, char *buffer, size_t size);

/* Every address of the place is loopback (a unix socket is). */
bool net_place_is_local(const struct net_place *place);

/* A listening descriptor, or -errno. A unix socket that nobody listens on is replaced. */
MUST_USE int net_listen(const struct net_place *place);

/* A connecting descriptor (connect under way or done), or -errno. `source`: NULL or the local address to bind;
 * -EAFNOSUPPORT: it cannot be bound for this destination. */
MUST_USE int net_connect(const struct sockaddr *sa, socklen_t len, const struct address *source);

/* Removes the file of a unix socket that nobody listens on; a living one, and whatever is no socket, stays. */
void net_remove_stale(const struct net_place *place);

/* The next connection, or -errno (-EAGAIN: none). `ret_peer` as text without port ("unix" for unix sockets). */
MUST_USE int net_accept(int listener, struct sockaddr_storage *ret_peer);

/* The address and port at the near end of a connected or listening socket. 0 or -errno. */
MUST_USE int net_local_place(int fd, struct net_place *ret);

/* How many more descriptors this process may open, roughly; raises the soft limit to the hard one first. */
long net_descriptor_limit(void);

#endif
