/* listen.h - one element of --listen: an address and what holds for those who connect there. Pure.
 *
 * "127.0.0.1:8888 auth=off protocol=socks user=acme-session-a pool=eu" */
#ifndef FAIRLEAD_BASE_LISTEN_H
#define FAIRLEAD_BASE_LISTEN_H

#include <stdbool.h>

#include "base/net.h"

enum listen_auth { LISTEN_AUTH_DEFAULT, LISTEN_AUTH_ON, LISTEN_AUTH_OFF };
enum listen_protocol { LISTEN_ANY, LISTEN_HTTP, LISTEN_SOCKS };

#define LISTEN_USER_MAX 255
#define LISTEN_POOL_MAX 64

struct listen_spec {
	struct net_place place;
	char address[128]; /* as written */
	enum listen_auth auth;
	enum listen_protocol protocol;
	char user[LISTEN_USER_MAX +
		  1]; /* whom clients that give no name are taken for; "" = nobody */
	char pool[LISTEN_POOL_MAX +
		  1]; /* alias of the pool for clients that choose none; "" = --pool */
};

/* 0, or -EINVAL with a line in `error` that names the word and what it may be. */
MUST_USE int listen_parse(struct listen_spec *ret, const char *text, char *error,
			  size_t error_size);

#endif
