/* supervisor.c - `fairlead up`: binds each listener once, forks the roles, restarts who dies, stops all. */
#include "node/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "node/greeting.h"
#include "node/role.h"

#define CHILDREN_MAX 72
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define STEADY_MS 10000    /* a child that lived so long begins its backoff anew */
#define KILL_AFTER_MS 5000 /* beyond the drain time-out */

/* The order of the start. The stop goes the other way: clients first, then who serves them. */
enum role { ROLE_DEMO, ROLE_KEEPER, ROLE_GATEWAY, ROLE_COUNT };

static const struct {
	const char *name;
	int (*run)(const struct role_context *context);
} roles[ROLE_COUNT] = {
    [ROLE_DEMO] = {"demo", role_demo},
    [ROLE_KEEPER] = {"keeper", role_keeper},
    [ROLE_GATEWAY] = {"gateway", role_gateway},
};

struct child {
	enum role role;
	int number, slot;
	pid_t pid;    /* 0: not running */
	int ready_fd; /* reads a byte when it serves; -1: it does, or is gone */
	int64_t started_ms, restart_at_ms, backoff_ms;
};

struct supervisor {
	const struct conf *conf;
	struct private_server *private;
	int listeners[ROLE_LISTENERS_MAX], demo_listeners[ROLE_DEMO_LISTENERS];
	size_t listener_count, demo_count;
	bool is_demo;
	int signal_fd;
	struct child children[CHILDREN_MAX];
	int child_count;
	bool is_started; /* all have been ready once */
	bool is_stopping;
	int64_t stop_at_ms; /* what still runs then is killed */
	int exit_status;
};

/* --- children ----------------------------------------------------------------------------------------------------- */

/* Each role keeps the listeners that it serves and no other: a descriptor that is left open anywhere keeps its port. */
static void take_listeners(struct supervisor *s, enum role role, struct role_context *ret)
{
	if (role == ROLE_DEMO) {
		ret->listeners = s->demo_listeners;
		ret->listener_count = s->demo_count;
	} else {
		role_close(s->demo_listeners, s->demo_count);
	}
	if (role == ROLE_GATEWAY) {
		ret->listeners = s->listeners;
		ret->listener_count = s->listener_count;
	} else {
		role_close(s->listeners, s->listener_count);
	}
}

/* The child's side of the fork. */
static void run_child(struct supervisor *s, struct child *child, pid_t parent, int ready_fd)
{
	struct role_context context = {
	    .conf = s->conf, .private = s->private, .ready_fd = ready_fd, .owner_pid = parent};
	char name[32];

	/* Should the supervisor be killed, its children end in good order, and the last of them stops the private server. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	close(s->signal_fd);
	snprintf(name, sizeof name, "%s.%d", roles[child->role].name, child->number);
	log_context(name);
	context.name = name;
	metric_use(child->slot);
	metric_add(METRIC_STARTS, 0, 1);
	if (s->private && private_adopt(s->private))
		_exit(1);
	take_listeners(s, child->role, &context);
	s->exit_status = roles[child->role].run(&context);
	private_detach(s->private);
	_exit(s->exit_status);
}

static int start_child(struct supervisor *s, struct child *child)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	child->pid = fork();
	if (child->pid == 0) {
		close(fds[0]);
		run_child(s, child, parent, fds[1]);
	}
	close(fds[1]);
	if (child->pid < 0) {
		int r = -errno;

		close(fds[0]);
		child->pid = 0;
		return r;
	}
	child->ready_fd = fds[0];
	child->started_ms = clock_ms();
	child->restart_at_ms = 0;
	return 0;
}

static void add_child(struct supervisor *s, enum role role, int number)
{
	s->children[s->child_count] =
	    (struct child){.role = role, .number = number, .slot = s->child_count, .ready_fd = -1};
	s->child_count++;
}

static void signal_role(struct supervisor *s, int role, int number)
{
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid && (role < 0 || (int)s->children[i].role == role))
			kill(s->children[i].pid, number);
}

static bool is_running(const struct supervisor *s, int role)
{
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid && (role < 0 || (int)s->children[i].role == role))
			return true;
	return false;
}

/* --- stop --------------------------------------------------------------------------------------------------------- */

/* Tells the next role to stop when nobody before it runs any more. */
static void stop_next(struct supervisor *s)
{
	for (int role = ROLE_COUNT - 1; role >= 0; role--) {
		if (is_running(s, role)) {
			signal_role(s, role, SIGTERM);
			return;
		}
	}
}

static void begin_stop(struct supervisor *s, int exit_status)
{
	if (s->is_stopping) {
		/* Asked twice: at once. */
		signal_role(s, -1, SIGTERM);
		s->stop_at_ms = clock_ms() + KILL_AFTER_MS;
		return;
	}
	s->is_stopping = true;
	s->exit_status = exit_status;
	role_close(s->listeners, s->listener_count); /* new clients are refused, not kept waiting */
	s->stop_at_ms = clock_ms() + conf_ms(s->conf, CONF_DRAIN_TIMEOUT) + KILL_AFTER_MS;
	stop_next(s);
}

/* --- reap --------------------------------------------------------------------------------------------------------- */

static void schedule_restart(struct child *child)
{
	bool was_steady = clock_ms() - child->started_ms >= STEADY_MS;
	int64_t next = child->backoff_ms && !was_steady ? 2 * child->backoff_ms : BACKOFF_FIRST_MS;

	child->backoff_ms = next < BACKOFF_MAX_MS ? next : BACKOFF_MAX_MS;
	child->restart_at_ms = clock_ms() + child->backoff_ms;
}

static void on_death(struct supervisor *s, struct child *child, int status)
{
	int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;

	child->pid = 0;
	if (child->ready_fd >= 0)
		close(child->ready_fd);
	child->ready_fd = -1;
	if (s->is_stopping) {
		if (!is_running(s, (int)child->role))
			stop_next(s);
		return;
	}
	if (!s->is_started) {
		/* It has said why. */
		begin_stop(s, exit_status ? exit_status : 1);
		return;
	}
	schedule_restart(child);
	log_warn("a child ended and is started again", LOG_TEXT("role", roles[child->role].name),
		 LOG_NUMBER("number", child->number),
		 LOG_NUMBER("exit", WIFEXITED(status) ? exit_status : -1),
		 LOG_NUMBER("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0),
		 LOG_NUMBER("backoff_ms", child->backoff_ms));
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < s->child_count; i++)
			if (s->children[i].pid == pid)
				on_death(s, &s->children[i], status);
}

/* --- the watch ---------------------------------------------------------------------------------------------------- */

static void on_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD)
			reap(s);
		else if (info.ssi_signo == SIGHUP)
			signal_role(s, -1, SIGHUP);
		else
			begin_stop(s, 0);
	}
}

static void on_ready(struct child *child)
{
	char byte;

	if (read(child->ready_fd, &byte, 1) != 1)
		return; /* it died; SIGCHLD tells */
	close(child->ready_fd);
	child->ready_fd = -1;
}

/* Sleeps until a signal, a child that is ready, or `until_ms`. */
static void wait_for_events(struct supervisor *s, int64_t until_ms)
{
	struct pollfd fds[CHILDREN_MAX + 1] = {{.fd = s->signal_fd, .events = POLLIN}};
	struct child *owners[CHILDREN_MAX + 1];
	nfds_t count = 1;
	int64_t wait = until_ms == INT64_MAX ? -1 : until_ms - clock_ms();

	for (int i = 0; i < s->child_count; i++) {
		if (s->children[i].ready_fd < 0)
			continue;
		owners[count] = &s->children[i];
		fds[count++] = (struct pollfd){.fd = s->children[i].ready_fd, .events = POLLIN};
	}
	if (until_ms != INT64_MAX && wait < 0)
		wait = 0;
	if (poll(fds, count, (int)wait) < 0)
		return;
	for (nfds_t i = 1; i < count; i++)
		if (fds[i].revents)
			on_ready(owners[i]);
	if (fds[0].revents)
		on_signal(s);
}

static int64_t next_event(const struct supervisor *s)
{
	int64_t next = s->is_stopping ? s->stop_at_ms : INT64_MAX;

	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].restart_at_ms && s->children[i].restart_at_ms < next)
			next = s->children[i].restart_at_ms;
	return next;
}

static void restart_due(struct supervisor *s)
{
	for (int i = 0; i < s->child_count; i++) {
		struct child *child = &s->children[i];

		if (child->restart_at_ms && clock_ms() >= child->restart_at_ms &&
		    start_child(s, child))
			schedule_restart(child);
	}
}

static void watch(struct supervisor *s)
{
	while (!s->is_stopping || is_running(s, -1)) {
		wait_for_events(s, next_event(s));
		if (!s->is_stopping)
			restart_due(s);
		else if (clock_ms() >= s->stop_at_ms)
			signal_role(s, -1, SIGKILL);
	}
}

/* --- start -------------------------------------------------------------------------------------------------------- */

/* Starts the children of one role and waits until all of them serve. False when the node is stopping instead. */
static bool start_role(struct supervisor *s, enum role role)
{
	bool is_waiting = true;

	for (int i = 0; i < s->child_count; i++) {
		if (s->children[i].role == role && start_child(s, &s->children[i])) {
			fprintf(stderr, "fairlead: cannot start a process: %s\n", strerror(errno));
			begin_stop(s, 1);
		}
	}
	while (!s->is_stopping && is_waiting) {
		is_waiting = false;
		for (int i = 0; i < s->child_count; i++)
			is_waiting = is_waiting || s->children[i].ready_fd >= 0;
		if (is_waiting)
			wait_for_events(s, INT64_MAX);
	}
	return !s->is_stopping;
}

static void start_all(struct supervisor *s)
{
	if (s->is_demo)
		add_child(s, ROLE_DEMO, 1);
	add_child(s, ROLE_KEEPER, 1);
	for (int i = 1; i <= (int)conf_int(s->conf, CONF_WORKERS); i++)
		add_child(s, ROLE_GATEWAY, i);
	for (int role = 0; role < ROLE_COUNT; role++)
		if (!start_role(s, (enum role)role))
			return;
	s->is_started = true;
	greeting_print(s->conf, s->private, s->listeners, s->listener_count);
}

static int open_signals(struct supervisor *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? 1 : 0;
}

static int attach(struct supervisor *s)
{
	char error[512] = "out of memory";

	if (*conf_text(s->conf, CONF_REDIS))
		return 0;
	if (!private_attach(&s->private, conf_text(s->conf, CONF_STATE_DIR), error, sizeof error))
		return 0;
	fprintf(stderr, "fairlead up: %s\n", error);
	return 1;
}

int supervisor_run(const struct conf *conf)
{
	static struct supervisor s;
	int r;

	s.conf = conf;
	s.is_demo = conf_bool(conf, CONF_DEMO);
	log_context("up");
	net_descriptor_limit();
	r = role_bind(conf, s.listeners, &s.listener_count);
	if (!r && s.is_demo)
		r = role_bind_demo(s.demo_listeners, &s.demo_count);
	if (!r)
		r = open_signals(&s);
	if (!r)
		r = metric_map(CHILDREN_MAX) ? 1 : 0;
	if (!r)
		r = attach(&s);
	if (r)
		return r;
	start_all(&s);
	watch(&s);
	role_close(s.listeners, s.listener_count);
	role_unlink(conf);
	role_close(s.demo_listeners, s.demo_count);
	private_detach(s.private);
	return s.exit_status;
}
