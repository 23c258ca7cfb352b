/* alone.c - a role as a process of its own. */
#include "node/alone.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "node/bind.h"
#include "node/notify.h"
#include "node/role.h"
#include "node/service.h"

static int run(const struct conf *conf, const char *name,
	       int (*role)(const struct role_context *context), struct listeners *listeners)
{
	struct role_context context = {.conf = conf,
				       .listeners = listeners->fds,
				       .specs = listeners->specs,
				       .listener_count = listeners->count,
				       .ready_fd = -1,
				       .name = name,
				       .owner_pid = getpid()};
	char error[512] = "out of memory";
	int r;

	log_context(name);
	service_hold_signals();
	if (!*conf_text(conf, CONF_REDIS) &&
	    private_attach(&context.private, conf_text(conf, CONF_STATE_DIR), error,
			   sizeof error)) {
		fprintf(stderr, "fairlead %s: %s\n", name, error);
		return 1;
	}
	metric_add(METRIC_STARTS, 0, 1);
	r = role(&context);
	private_detach(context.private);
	return r;
}

int alone_gateway(const struct conf *conf)
{
	static struct listeners listeners;
	struct inherited inherited;
	char error[512];
	int r;

	notify_open();
	inherit_take(&inherited);
	r = bind_all(conf, &inherited, &listeners, error, sizeof error);
	inherit_close(&inherited);
	if (r) {
		fprintf(stderr, "fairlead gateway: %s\n", error);
		return r == -EINVAL ? 2 : 1;
	}
	r = run(conf, "gateway", role_gateway, &listeners);
	role_close(listeners.fds, listeners.count);
	bind_unlink(&listeners);
	return r;
}

int alone_keeper(const struct conf *conf)
{
	static struct listeners none;

	notify_open();
	return run(conf, "keeper", role_keeper, &none);
}
