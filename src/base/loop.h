/* loop.h - one event loop a process, and what happens at the end of each of its turns.
 *
 * Objects that end inside a callback are buried and freed after the turn, so that no callback of the same turn meets
 * freed memory. Nothing here exists before a fork. */
#ifndef FAIRLEAD_BASE_LOOP_H
#define FAIRLEAD_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/result.h"

struct event_base;
struct evdns_base;
struct loop;

/* Runs at the end of each turn until removed, the last registered first: who uses a thing comes before it. */
struct turn_hook {
	void (*run)(void *arg);
	void *arg;
	TAILQ_ENTRY(turn_hook) link;
};

/* Stands inside an object that can be buried. */
struct grave {
	struct grave *next;
	void (*free_object)(struct grave *grave);
};

/* 0, -ENOMEM or -errno. */
MUST_USE int loop_new(struct loop **ret);
void loop_free(struct loop *loop);

struct event_base *loop_base(struct loop *loop);

#define LOOP_NAMESERVERS_MAX 16

/* The DNS servers that the resolver asks in place of those of /etc/resolv.conf, each "ADDRESS" or "ADDRESS:PORT" (IPv6
 * with a port in brackets); /etc/hosts still comes first. Before the first loop_dns(). 0, or -EINVAL: `texts[*ret_bad]` is
 * none, or there are too many. */
MUST_USE int loop_nameservers(struct loop *loop, const char *const *texts, size_t count,
			      size_t *ret_bad);

/* The resolver, made at its first use; NULL: no memory or no usable configuration. */
struct evdns_base *loop_dns(struct loop *loop);

/* Runs turns until loop_stop(). loop_turn() does what waits for the end of a turn, then runs a single one. */
void loop_run(struct loop *loop);
void loop_turn(struct loop *loop);
void loop_stop(struct loop *loop);

void loop_hook(struct loop *loop, struct turn_hook *hook);
void loop_unhook(struct loop *loop, struct turn_hook *hook);

/* Says that a hook has found, or been given, something to do: they all run once more in this turn. */
void loop_again(struct loop *loop);

/* `grave->free_object` runs once, after this turn. */
void loop_bury(struct loop *loop, struct grave *grave);

#endif
