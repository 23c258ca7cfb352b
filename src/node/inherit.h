/* inherit.h - listening sockets that this process was started with, by systemd or by the program that it replaces.
 *
 * They come as systemd passes them: descriptors 3, 4, ..., their number in LISTEN_FDS, and in LISTEN_PID for whom
 * they are. */
#ifndef FAIRLEAD_NODE_INHERIT_H
#define FAIRLEAD_NODE_INHERIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/net.h"

#define INHERIT_FIRST 3
#define INHERIT_MAX 80

struct inherited {
	int fds[INHERIT_MAX];
	size_t count;
	bool is_activated; /* somebody else chose them: without --listen they are what is served */
};

/* Takes what is meant for this process; what is no listening socket is closed. Unsets the variables in any case. */
void inherit_take(struct inherited *ret);

/* Hands out the first socket at `place`, whose port 0 is any; -1: there is none. */
int inherit_find(struct inherited *inherited, const struct net_place *place);

/* Closes what was not handed out. */
void inherit_close(struct inherited *inherited);

/* Moves all these descriptors to 3, 4, ..., in their order, so that they can be passed on; what stands there is
 * closed. For a process that has opened nothing else yet. 0 or -errno. */
MUST_USE int inherit_arrange(int *const *fds, size_t count);

#endif
