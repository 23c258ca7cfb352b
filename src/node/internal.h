/* internal.h - what the files of the supervisor share; nobody else includes it. */
#ifndef FAIRLEAD_NODE_INTERNAL_H
#define FAIRLEAD_NODE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/bind.h"
#include "node/elders.h"
#include "node/role.h"

#define CHILDREN_MAX 72

/* The order of the start. The stop goes the other way: clients first, then who serves them. */
enum role { ROLE_DEMO, ROLE_KEEPER, ROLE_GATEWAY, ROLE_COUNT };

struct child {
	enum role role;
	int number, slot;
	pid_t pid;    /* 0: not running */
	int ready_fd; /* reads a byte when it serves; -1: it does, or is gone */
	int64_t started_ms, restart_at_ms, backoff_ms;
};

struct supervisor {
	const struct conf *conf; /* in force */
	struct conf *own_conf;   /* the same, if SIGHUP has brought it */
	struct private_server *private;
	struct listeners listeners;
	int demo_listeners[ROLE_DEMO_LISTENERS];
	size_t demo_count;
	bool is_demo;
	bool is_activated; /* the listeners are systemd's choice */
	int signal_fd;
	struct child children[CHILDREN_MAX];
	int child_count;
	struct elders elders;
	pid_t trial_pid; /* a new program on trial; 0: none */
	int64_t trial_until_ms;
	bool is_started;              /* a child that dies is started again, from now on */
	bool is_up;                   /* all have been ready once */
	char checks[ROLE_SAYING_MAX]; /* how the keeper makes them */
	bool is_stopping;
	int stop_role;      /* the one that is told to stop, ROLE_COUNT: none yet */
	int64_t stop_at_ms; /* what still runs then is killed */
	int exit_status;
};

/* --- supervisor.c ------------------------------------------------------------------------------------------------- */

const char *supervisor_role_name(enum role role);

/* To those children that this program has started. */
void supervisor_signal(const struct supervisor *s, int number);

/* --- change.c: while the children run ----------------------------------------------------------------------------- */

/* SIGHUP: a configuration that can be used is in force afterwards, and the children read it, too. */
void change_conf(struct supervisor *s);

/* SIGUSR2: the new program is put on trial, and if it is fit takes over at the trial's end. */
void change_program(struct supervisor *s);

/* The trial has ended. */
void change_judge_trial(struct supervisor *s, int status);

/* There is to be no other program: ends a trial. */
void change_give_up(const struct supervisor *s);

#endif
