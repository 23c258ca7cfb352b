/* role.h - the long-running processes: each runs alone or as a child of the supervisor. */
#ifndef FAIRLEAD_NODE_ROLE_H
#define FAIRLEAD_NODE_ROLE_H

#include <stddef.h>

#include "base/conf.h"
#include "base/net.h"
#include "store/private.h"

#define ROLE_LISTENERS_MAX 64

struct role_context {
	const struct conf *conf;
	struct private_server *private; /* attached or adopted by this process; NULL: --redis */
	int *listeners;                 /* closed, and -1, once the role takes no more clients */
	size_t listener_count;
	int ready_fd;     /* a byte is written when the role serves; -1: nobody waits */
	const char *name; /* "gateway.1" of a child, "gateway" alone */
	int owner_pid;    /* of the supervisor, or of this process */
};

/* Each runs until it is told to stop and returns an exit status. */
int role_gateway(const struct role_context *context);
int role_keeper(const struct role_context *context);
int role_demo(const struct role_context *context);

/* Closes what is open of the listeners; each is -1 then. */
void role_close(int *fds, size_t count);

/* Removes the files of the unix listeners of the configuration, once they are closed everywhere. */
void role_unlink(const struct conf *conf);

/* Tells whoever waits that the role serves. */
void role_is_ready(const struct role_context *context);

/* Binds every listener of the configuration. Returns 0, or an exit status > 0 after a line on standard error that says
 * which and why; then nothing is bound. */
MUST_USE int role_bind(const struct conf *conf, int *ret_fds, size_t *ret_count);

/* The demonstration's listeners: its upstreams, then its origin. Likewise. */
#define ROLE_DEMO_LISTENERS 4
MUST_USE int role_bind_demo(int *ret_fds, size_t *ret_count);

#endif
