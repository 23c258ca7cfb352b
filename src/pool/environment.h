/* environment.h - a member as the environment of a command: the variables in which programs look for their proxy. */
#ifndef FAIRLEAD_POOL_ENVIRONMENT_H
#define FAIRLEAD_POOL_ENVIRONMENT_H

#include "base/endpoint.h"

#define ENVIRONMENT_PROXIES 8
#define ENVIRONMENT_REMOVED 2
#define ENVIRONMENT_ADDED 4  /* of environment_add(), at most */
#define ENVIRONMENT_TEXT 320 /* of each of them: NAME=VALUE */

/* Large: not for the stack. Holds the credentials of the member until environment_wipe(). */
struct environment {
	const char *list[ENVIRONMENT_PROXIES + ENVIRONMENT_REMOVED + 1 + ENVIRONMENT_ADDED + 1];
	size_t count; /* of `list`, which ends with a NULL */
	char proxies[ENVIRONMENT_PROXIES][ENDPOINT_TEXT_MAX + 16];
	char proxy[ENDPOINT_TEXT_MAX + 16];
	char added[ENVIRONMENT_ADDED][ENVIRONMENT_TEXT];
	size_t added_count;
};

/* `environment->list` is for child_request: http_proxy, https_proxy, all_proxy, ftp_proxy in both cases and
 * FAIRLEAD_PROXY are the member; no_proxy is taken out. Not for a `direct` member, which has no URL that a program
 * understands. */
void environment_init(struct environment *environment, const struct endpoint *member);

/* One more variable; a longer one is cut. */
void environment_add(struct environment *environment, const char *name, const char *value);

void environment_wipe(struct environment *environment);

#endif
