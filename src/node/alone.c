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

typedef int role_run(const struct role_context *context);

static struct role_context context_of(const struct conf *conf, const char *name,
				      struct listeners *listeners)
{
	return (struct role_context){.conf = conf,
				     .listeners = listeners->fds,
				     .specs = listeners->specs,
				     .listener_count = listeners->count,
				     .ready_fd = -1,
				     .name = name,
				     .owner_pid = getpid()};
}

static int run(const struct conf *conf, const char *name, role_run *role,
	       struct listeners *listeners, char *const *command)
{
	struct role_context context = context_of(conf, name, listeners);
	char error[512] = "out of memory";
	int r;

	context.command = command;
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

typedef int bind_run(const struct conf *conf, struct inherited *inherited, struct listeners *ret,
		     char *error, size_t size);

/* Takes or binds the listeners, as `bind` does. 0, or an exit status > 0 after a line on standard error. */
static int open_listeners(const struct conf *conf, const char *name, bind_run *bind,
			  struct listeners *ret)
{
	struct inherited inherited;
	char error[512];
	int r;

	notify_open();
	inherit_take(&inherited);
	r = bind(conf, &inherited, ret, error, sizeof error);
	inherit_close(&inherited);
	if (!r)
		return 0;
	fprintf(stderr, "fairlead %s: %s\n", name, error);
	return r == -EINVAL ? 2 : 1;
}

int alone_gateway(const struct conf *conf)
{
	static struct listeners listeners;
	int r = open_listeners(conf, "gateway", bind_all, &listeners);

	if (r)
		return r;
	r = run(conf, "gateway", role_gateway, &listeners, NULL);
	role_close(listeners.fds, listeners.count);
	bind_unlink(&listeners);
	return r;
}

/* It has no use for a store, and starts no private server. */
int alone_judge(const struct conf *conf)
{
	static struct listeners listeners;
	struct role_context context;
	int r = open_listeners(conf, "judge", bind_judge, &listeners);

	if (r)
		return r;
	log_context("judge");
	service_hold_signals();
	context = context_of(conf, "judge", &listeners);
	r = role_judge(&context);
	role_close(listeners.fds, listeners.count);
	return r;
}

int alone_keeper(const struct conf *conf)
{
	static struct listeners none;

	notify_open();
	return run(conf, "keeper", role_keeper, &none, NULL);
}

int alone_work_fetch(const struct conf *conf)
{
	static struct listeners none;

	notify_open();
	return run(conf, "work", role_work_fetch, &none, NULL);
}

int alone_work_exec(const struct conf *conf, char *const *command)
{
	static struct listeners none;

	notify_open();
	return run(conf, "work", role_work_exec, &none, command);
}
