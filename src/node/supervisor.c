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
#include "node/handover.h"
#include "node/internal.h"
#include "node/notify.h"
#include "node/reload.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define STEADY_MS 10000    /* a child that lived so long begins its backoff anew */
#define KILL_AFTER_MS 5000 /* beyond the drain time-out */

static const struct {
	const char *name;
	int (*run)(const struct role_context *context);
} roles[ROLE_COUNT] = {
    [ROLE_DEMO] = {"demo", role_demo},
    [ROLE_KEEPER] = {"keeper", role_keeper},
    [ROLE_GATEWAY] = {"gateway", role_gateway},
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
		ret->listeners = s->listeners.fds;
		ret->specs = s->listeners.specs;
		ret->listener_count = s->listeners.count;
	} else {
		role_close(s->listeners.fds, s->listeners.count);
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

/* Of this program's children. */
static void signal_children(const struct supervisor *s, int role, int number)
{
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid && (role < 0 || (int)s->children[i].role == role))
			kill(s->children[i].pid, number);
}

void supervisor_signal(const struct supervisor *s, int number)
{
	signal_children(s, -1, number);
}

const char *supervisor_role_name(enum role role)
{
	return roles[role].name;
}

static const char *role_name(int role)
{
	return role < 0 ? NULL : roles[role].name;
}

/* Of earlier ones, too. */
static void signal_role(struct supervisor *s, int role, int number)
{
	signal_children(s, role, number);
	elders_signal(&s->elders, role_name(role), number);
}

static bool is_running(const struct supervisor *s, int role)
{
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid && (role < 0 || (int)s->children[i].role == role))
			return true;
	return elders_run(&s->elders, role_name(role));
}

/* --- stop --------------------------------------------------------------------------------------------------------- */

/* Tells the next role to stop when nobody before it runs any more. */
static void stop_next(struct supervisor *s)
{
	int role = ROLE_COUNT - 1;

	while (role >= 0 && !is_running(s, role))
		role--;
	if (role < 0 || role == s->stop_role)
		return;
	s->stop_role = role;
	signal_role(s, role, SIGTERM);
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
	notify_stopping();
	change_give_up(s);
	role_close(s->listeners.fds,
		   s->listeners.count); /* new clients are refused, not kept waiting */
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
	if (s->is_stopping)
		return;
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

static void on_end(struct supervisor *s, pid_t pid, int status)
{
	if (pid == s->trial_pid) {
		change_judge_trial(s, status);
		return;
	}
	if (elders_reap(&s->elders, pid, status))
		return;
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid == pid)
			on_death(s, &s->children[i], status);
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		on_end(s, pid, status);
	if (s->is_stopping)
		stop_next(s);
}

/* --- the watch ---------------------------------------------------------------------------------------------------- */

static void on_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD)
			reap(s);
		else if (info.ssi_signo == SIGHUP)
			change_conf(s);
		else if (info.ssi_signo == SIGUSR2)
			change_program(s);
		else
			begin_stop(s, 0);
	}
}

/* A pipe keeps a writing of this size whole. */
static void on_ready(struct supervisor *s, struct child *child)
{
	char text[1 + ROLE_SAYING_MAX];
	ssize_t len = read(child->ready_fd, text, sizeof text - 1);

	if (len < 1)
		return; /* it died; SIGCHLD tells */
	if (child->role == ROLE_KEEPER)
		snprintf(s->checks, sizeof s->checks, "%.*s", (int)len - 1, text + 1);
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
			on_ready(s, owners[i]);
	if (fds[0].revents)
		on_signal(s);
}

static int64_t next_event(const struct supervisor *s)
{
	int64_t next = s->is_stopping ? s->stop_at_ms : INT64_MAX;

	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].restart_at_ms && s->children[i].restart_at_ms < next)
			next = s->children[i].restart_at_ms;
	if (s->trial_pid && s->trial_until_ms < next)
		next = s->trial_until_ms;
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

/* Waits for what comes next, and does what is due then. */
static void step(struct supervisor *s)
{
	wait_for_events(s, next_event(s));
	if (s->trial_pid && clock_ms() >= s->trial_until_ms)
		change_give_up(s);
	if (!s->is_stopping)
		restart_due(s);
	else if (clock_ms() >= s->stop_at_ms)
		signal_role(s, -1, SIGKILL);
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static bool is_awaited(const struct supervisor *s)
{
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].ready_fd >= 0 || s->children[i].restart_at_ms)
			return true;
	return false;
}

/* Starts the children of one role and waits until all of them serve. False when the node is stopping instead. */
static bool start_role(struct supervisor *s, enum role role)
{
	for (int i = 0; i < s->child_count; i++) {
		struct child *child = &s->children[i];
		int r = child->role == role ? start_child(s, child) : 0;

		if (r && s->is_started) {
			schedule_restart(child);
		} else if (r) {
			fprintf(stderr, "fairlead: cannot start a process: %s\n", strerror(-r));
			begin_stop(s, 1);
		}
	}
	while (!s->is_stopping && is_awaited(s))
		step(s);
	return !s->is_stopping;
}

static void start_all(struct supervisor *s)
{
	if (s->is_demo)
		add_child(s, ROLE_DEMO, 1);
	add_child(s, ROLE_KEEPER, 1);
	for (int i = 1; i <= (int)conf_int(s->conf, CONF_WORKERS); i++)
		add_child(s, ROLE_GATEWAY, i);
	/* While the program before serves on, a child that fails is a child to be tried again. */
	s->is_started = handover_received() != NULL;
	for (int role = 0; role < ROLE_COUNT; role++)
		if (!start_role(s, (enum role)role))
			return;
	s->is_started = true;
	s->is_up = true;
	elders_signal(&s->elders, NULL, SIGUSR2);
	greeting_print(s->conf, s->private, &s->listeners, s->checks);
	notify_ready();
}

static int open_signals(struct supervisor *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
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

/* The listeners, the demonstration's behind them, at the descriptors at which they can be passed on. */
static int open_listeners(struct supervisor *s, char *error, size_t size)
{
	const struct handover *left = handover_received();
	int *all[ROLE_LISTENERS_MAX + ROLE_DEMO_LISTENERS];
	struct inherited inherited;
	size_t count = 0;
	int r = 0;

	inherit_take(&inherited);
	if (left)
		inherited.is_activated = left->is_activated;
	s->is_activated = inherited.is_activated;
	if (s->is_demo)
		r = bind_demo(&inherited, s->demo_listeners, error, size);
	s->demo_count = s->is_demo && !r ? ROLE_DEMO_LISTENERS : 0;
	if (!r)
		r = bind_all(s->conf, &inherited, &s->listeners, error, size);
	inherit_close(&inherited);
	for (size_t i = 0; i < s->listeners.count; i++)
		all[count++] = &s->listeners.fds[i];
	for (size_t i = 0; i < s->demo_count; i++)
		all[count++] = &s->demo_listeners[i];
	return r ? r : inherit_arrange(all, count);
}

/* What a stop leaves to whoever starts next. */
static void tidy_up(struct supervisor *s)
{
	role_close(s->listeners.fds, s->listeners.count);
	bind_unlink(&s->listeners);
	role_close(s->demo_listeners, s->demo_count);
	private_detach(s->private);
	reload_free(s->own_conf);
}

int supervisor_run(const struct conf *conf)
{
	static struct supervisor s;
	char error[512] = "cannot arrange the listeners";
	int r;

	s.conf = conf;
	s.is_demo = conf_bool(conf, CONF_DEMO);
	s.stop_role = ROLE_COUNT;
	log_context("up");
	notify_open();
	net_descriptor_limit();
	r = open_listeners(&s, error, sizeof error);
	if (r) {
		fprintf(stderr, "fairlead up: %s\n", error);
		return r == -EINVAL ? 2 : 1;
	}
	elders_init(&s.elders, handover_received());
	r = open_signals(&s);
	if (!r)
		r = metric_map(CHILDREN_MAX) ? 1 : 0;
	if (!r)
		r = attach(&s);
	if (r)
		return r;
	reap(&s); /* who ended while one program became the other */
	start_all(&s);
	while (!s.is_stopping || is_running(&s, -1))
		step(&s);
	tidy_up(&s);
	return s.exit_status;
}
