/* alone.c - a role as a process of its own. */
#include "node/alone.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "node/role.h"
#include "node/service.h"

static int run(const struct conf *conf, const char *name,
	       int (*role)(const struct role_context *context), int *listeners, size_t count)
{
	struct role_context context = {.conf = conf,
				       .listeners = listeners,
				       .listener_count = count,
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
	int listeners[ROLE_LISTENERS_MAX];
	size_t count = 0;
	int r = role_bind(conf, listeners, &count);

	if (!r)
		r = run(conf, "gateway", role_gateway, listeners, count);
	role_close(listeners, count);
	role_unlink(conf);
	return r;
}

int alone_keeper(const struct conf *conf)
{
	return run(conf, "keeper", role_keeper, NULL, 0);
}
