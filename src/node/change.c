/* change.c - a new configuration or a new program for a supervisor whose children run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/checks.h"
#include "node/handover.h"
#include "node/internal.h"
#include "node/notify.h"
#include "node/reload.h"
#include "node/setup.h"
#include "node/sources.h"

#define TRIAL_MS 10000 /* for the new program to show that it can read its configuration */

/* --- a new configuration ------------------------------------------------------------------------------------------ */

static int check_conf(const struct conf *conf, char *error, size_t size)
{
	int r = bind_check(conf, error, size);

	if (!r)
		r = sources_check(conf, error, size);
	if (!r)
		r = checks_check(conf, error, size);
	return r ? r : setup_check(conf, error, size);
}

/* The children read it for themselves; those of earlier programs go on as they are. */
void change_conf(struct supervisor *s)
{
	struct conf *fresh;

	if (s->is_up)
		notify_reloading();
	if (!reload_read(&fresh, s->conf, check_conf, true)) {
		reload_free(s->own_conf);
		s->own_conf = fresh;
		s->conf = fresh;
		supervisor_signal(s, SIGHUP);
	}
	if (s->is_up)
		notify_ready();
}

/* --- a new program ------------------------------------------------------------------------------------------------ */

/* Could these listeners be had? Those that stand are tried as copies, and all are closed again. */
static int try_listeners(struct supervisor *s, const struct conf *conf, char *error, size_t size)
{
	static struct listeners trial;
	struct inherited copies = {.is_activated = s->is_activated};
	int r;

	for (size_t i = 0; i < s->listeners.count; i++) {
		int fd = fcntl(s->listeners.fds[i], F_DUPFD_CLOEXEC, 0);

		if (fd >= 0)
			copies.fds[copies.count++] = fd;
	}
	r = bind_all(conf, &copies, &trial, error, size);
	if (!r)
		role_close(trial.fds, trial.count);
	inherit_close(&copies);
	return r;
}

/* What this program knows to be wrong with the configuration is no reason to lose a node that runs. What it does not
 * know, a setting that is new, the new one judges. */
static int judge_conf(struct supervisor *s)
{
	struct conf_error error;
	struct conf conf;
	int r;

	if (conf_reload(&conf, s->conf, &error))
		return 0;
	r = sources_check(&conf, error.text, sizeof error.text);
	if (!r)
		r = checks_check(&conf, error.text, sizeof error.text);
	if (!r)
		r = setup_check(&conf, error.text, sizeof error.text);
	if (!r)
		r = try_listeners(s, &conf, error.text, sizeof error.text);
	conf_fini(&conf);
	if (r)
		log_error("no handover: the configuration cannot be used",
			  LOG_TEXT("error", error.text));
	return r;
}

void change_program(struct supervisor *s)
{
	pid_t pid;

	if (s->is_stopping || s->trial_pid)
		return;
	if (s->elders.count + (size_t)s->child_count > HANDOVER_CHILDREN_MAX) {
		log_error("no handover: too many children of earlier programs still serve",
			  LOG_NUMBER("children", (int64_t)s->elders.count));
		return;
	}
	if (judge_conf(s))
		return;
	pid = handover_try();
	if (pid < 0) {
		log_error("no handover: the new program cannot be started",
			  LOG_TEXT("error", strerror(-pid)));
		return;
	}
	s->trial_pid = pid;
	s->trial_until_ms = clock_ms() + TRIAL_MS;
}

static void leave(struct handover *left, const char *role, int number, pid_t pid)
{
	struct handover_child *child = &left->children[left->child_count++];

	*child = (struct handover_child){.number = number, .pid = pid};
	snprintf(child->role, sizeof child->role, "%s", role);
}

/* Becomes the new program. Whoever waits for a connection goes on waiting, for the listeners stand all the time. */
static void hand_over(struct supervisor *s)
{
	static struct handover left;
	int r;

	left = (struct handover){.is_activated = s->is_activated};
	for (size_t i = 0; i < s->elders.count; i++)
		left.children[left.child_count++] = s->elders.list[i];
	for (int i = 0; i < s->child_count; i++)
		if (s->children[i].pid)
			leave(&left, supervisor_role_name(s->children[i].role),
			      s->children[i].number, s->children[i].pid);
	log_info("a new program takes over");
	notify_reloading();
	r = handover_execute(&left, s->listeners.count + s->demo_count);
	log_error("no handover: the new program cannot be executed",
		  LOG_TEXT("error", strerror(-r)));
	notify_ready();
}

void change_judge_trial(struct supervisor *s, int status)
{
	s->trial_pid = 0;
	if (s->is_stopping)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		hand_over(s);
		return;
	}
	log_error("no handover: the new program failed its trial; all stays as it is",
		  LOG_NUMBER("exit", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
		  LOG_NUMBER("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

void change_give_up(const struct supervisor *s)
{
	if (s->trial_pid)
		kill(s->trial_pid, SIGKILL);
}
