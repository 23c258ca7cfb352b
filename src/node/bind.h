/* bind.h - the listeners of a node: judged, inherited or bound once, before any process is started. */
#ifndef FAIRLEAD_NODE_BIND_H
#define FAIRLEAD_NODE_BIND_H

#include "base/conf.h"
#include "base/listen.h"
#include "node/inherit.h"
#include "node/role.h"

struct listeners {
	int fds[ROLE_LISTENERS_MAX];
	struct listen_spec specs[ROLE_LISTENERS_MAX];
	size_t count;
};

/* May the listeners of this configuration be served? 0, or -EINVAL with one line in `error`. */
MUST_USE int bind_check(const struct conf *conf, char *error, size_t size);

/* Every listener of the configuration, from `inherited` where it is there; without --listen whatever systemd has
 * handed over. 0, -EINVAL (the configuration) or another -errno, with one line in `error`; then nothing is bound. */
MUST_USE int bind_all(const struct conf *conf, struct inherited *inherited, struct listeners *ret,
		      char *error, size_t size);

/* The listeners of the judge, likewise: a page, which everybody may ask. */
MUST_USE int bind_judge(const struct conf *conf, struct inherited *inherited, struct listeners *ret,
			char *error, size_t size);

/* The demonstration's ROLE_DEMO_LISTENERS: its upstreams, then its origin. Likewise. */
MUST_USE int bind_demo(struct inherited *inherited, int *ret_fds, char *error, size_t size);

/* Removes the files of the unix listeners, once they are closed everywhere. */
void bind_unlink(const struct listeners *listeners);

#endif
