/* role_exec.c - a worker whose tasks are commands. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "node/role.h"
#include "node/worker.h"
#include "worker/exec_work.h"

/* As shells have it. */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127
/* Of a command: one that tells of its end, one for its input. */
#define DESCRIPTORS_EACH 2

struct executor {
	struct worker worker;
	struct exec_work *work;
};

static void stop(struct service *service)
{
	struct executor *executor = (struct executor *)service;

	if (executor->work)
		exec_work_stop(executor->work);
	else
		service_done(service, 0);
}

/* --- configuration ------------------------------------------------------------------------------------------------ */

/* The soft limit is left as it is: commands inherit it, and some rely on its being low (select(2)). */
static long descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX)
		return INT32_MAX;
	return (long)limit.rlim_cur;
}

/* 0, or 1 after a line on standard error. */
static int read_rule(const struct executor *executor, struct exec_rule *rule)
{
	const struct conf *conf = executor->worker.service.conf;
	char error[EXEC_RULE_ERROR_SIZE];

	for (size_t i = 0; i < conf_count(conf, CONF_DEAD_STATUS); i++)
		if (exec_rule_add(rule, conf_at(conf, CONF_DEAD_STATUS, i), error, sizeof error))
			return worker_refuse(&executor->worker, error);
	return 0;
}

static int begin(struct executor *executor, char *const *command)
{
	struct worker *worker = &executor->worker;
	const struct conf *conf = worker->service.conf;
	struct exec_work_config config = {
	    .shift = worker_shift(worker, descriptor_limit(), DESCRIPTORS_EACH),
	    .command = command,
	    .timeout_ms = conf_ms(conf, CONF_TASK_TIMEOUT),
	    .lease_wait_ms = conf_ms(conf, CONF_LEASE_WAIT),
	};
	int r = read_rule(executor, &config.rule);

	if (!r && exec_work_new(&executor->work, &config))
		r = worker_refuse(worker, "out of memory");
	return r;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* The exit status, after a message. */
static int cannot_run(const struct executor *executor, const char *name, int error)
{
	fprintf(stderr, "fairlead %s: cannot run '%s': %s\n", executor->worker.command, name,
		strerror(-error));
	return error == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int look_at(const char *path)
{
	return access(path, X_OK) ? -errno : 0;
}

/* As execvp(3) does: 0, -ENOENT, or -EACCES when what was found is no program. */
static int look_up(const char *name)
{
	const char *path = getenv("PATH");
	char *folders = strdup(path ? path : "/bin:/usr/bin"), *rest = folders, *folder;
	char place[PATH_MAX];
	int r = -ENOENT, found;

	while (r && (folder = strsep(&rest, ":"))) {
		snprintf(place, sizeof place, "%s/%s", *folder ? folder : ".", name);
		found = look_at(place);
		if (found != -ENOENT && found != -ENOTDIR)
			r = found;
	}
	free(folders);
	return r;
}

/* Whoever mistypes it is to be told now, and not when the first task comes. */
static int check_command(const struct executor *executor, const char *name)
{
	int r = strchr(name, '/') ? look_at(name) : look_up(name);

	return r ? cannot_run(executor, name, r) : 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int run(struct executor *executor, const struct role_context *context)
{
	int r;

	role_is_ready(context, "");
	r = service_run(&executor->worker.service);
	tally_print(executor->worker.tally, conf_bool(context->conf, CONF_JSON));
	if (exec_work_error(executor->work))
		r = cannot_run(executor, context->command[0], exec_work_error(executor->work));
	return r;
}

static void finish(struct executor *executor)
{
	if (executor->work)
		exec_work_end(executor->work);
	worker_close_store(&executor->worker);
	exec_work_free(executor->work);
	worker_close(&executor->worker);
}

int role_work_exec(const struct role_context *context)
{
	struct executor executor = {.worker = {.service = {.stop = stop}, .command = "work exec"}};
	int r = check_command(&executor, context->command[0]);

	if (r)
		return r;
	r = worker_open(&executor.worker, context);
	if (!r)
		r = begin(&executor, context->command);
	if (!r)
		r = run(&executor, context);
	finish(&executor);
	return r;
}
