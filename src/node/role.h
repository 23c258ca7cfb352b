/* role.h - the long-running processes: each runs alone or as a child of the supervisor. */
#ifndef FAIRLEAD_NODE_ROLE_H
#define FAIRLEAD_NODE_ROLE_H

#include <stddef.h>

#include "base/conf.h"
#include "base/listen.h"
#include "store/private.h"

#define ROLE_LISTENERS_MAX 64
#define ROLE_DEMO_LISTENERS 4

struct role_context {
	const struct conf *conf;
	struct private_server *private;  /* attached or adopted by this process; NULL: --redis */
	int *listeners;                  /* closed, and -1, once the role takes no more clients */
	const struct listen_spec *specs; /* what holds at each of them; NULL: the demonstration's */
	size_t listener_count;
	int ready_fd; /* a byte and a saying are written when the role serves; -1: nobody waits */
	const char *name;     /* "gateway.1" of a child, "gateway" alone */
	int owner_pid;        /* of the supervisor, or of this process */
	char *const *command; /* of `work exec`, NULL-terminated; NULL: another role */
};

/* Each runs until it is told to stop and returns an exit status. */
int role_gateway(const struct role_context *context);
int role_keeper(const struct role_context *context);
int role_judge(const struct role_context *context); /* without a store */
int role_demo(const struct role_context *context);
int role_work_fetch(const struct role_context *context);
int role_work_exec(const struct role_context *context);

/* Closes what is open of the listeners; each is -1 then. */
void role_close(int *fds, size_t count);

/* The longest saying, terminating NUL included. */
#define ROLE_SAYING_MAX 600

/* Tells whoever waits that the role serves, and says something for the greeting of the node ("" = nothing). */
void role_is_ready(const struct role_context *context, const char *saying);

#endif
