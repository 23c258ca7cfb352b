/* loop.c - one event loop a process, and what happens at the end of each of its turns. */
#include "base/loop.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/net.h"

#define DNS_PORT 53

struct loop {
	struct event_base *base;
	struct evdns_base *dns;
	struct net_place nameservers[LOOP_NAMESERVERS_MAX];
	size_t nameserver_count; /* 0: those of /etc/resolv.conf */
	TAILQ_HEAD(, turn_hook) hooks;
	struct grave *graves;
	bool again;
	bool stop;
};

int loop_new(struct loop **ret)
{
	struct event_config *config = event_config_new();
	struct loop *loop = calloc(1, sizeof *loop);

	if (loop && config) {
		/* Changes of interest within a turn become one epoll_ctl(2) a descriptor. No descriptor is ever dup(2)ed. */
		event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
		loop->base = event_base_new_with_config(config);
		TAILQ_INIT(&loop->hooks);
	}
	if (config)
		event_config_free(config);
	if (!loop || !loop->base) {
		free(loop);
		return -ENOMEM;
	}
	*ret = loop;
	return 0;
}

static void free_the_dead(struct loop *loop)
{
	while (loop->graves) {
		struct grave *grave = loop->graves;

		loop->graves = grave->next;
		grave->free_object(grave);
	}
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	free_the_dead(loop);
	if (loop->dns)
		evdns_base_free(loop->dns, 0);
	event_base_free(loop->base);
	free(loop);
}

struct event_base *loop_base(struct loop *loop)
{
	return loop->base;
}

static int read_nameserver(struct net_place *ret, const char *text)
{
	struct address address;
	struct net_place place;

	if (!address_parse(&address, text, strlen(text))) {
		ret->len = address_to_sockaddr(&address, DNS_PORT, &ret->sa);
		return 0;
	}
	/* The port has the same offset in both families. */
	if (net_place_parse(&place, text) || place.sa.ss_family == AF_UNIX ||
	    !((const struct sockaddr_in *)&place.sa)->sin_port)
		return -EINVAL;
	*ret = place;
	return 0;
}

int loop_nameservers(struct loop *loop, const char *const *texts, size_t count, size_t *ret_bad)
{
	struct net_place places[LOOP_NAMESERVERS_MAX] = {0};

	for (size_t i = 0; i < count; i++)
		if (i >= LOOP_NAMESERVERS_MAX || read_nameserver(&places[i], texts[i])) {
			*ret_bad = i;
			return -EINVAL;
		}
	memcpy(loop->nameservers, places, sizeof places);
	loop->nameserver_count = count;
	return 0;
}

static void use_nameservers(struct loop *loop)
{
	for (size_t i = 0; i < loop->nameserver_count; i++) {
		const struct net_place *place = &loop->nameservers[i];

		evdns_base_nameserver_sockaddr_add(loop->dns, (const struct sockaddr *)&place->sa,
						   place->len, 0);
	}
	evdns_base_load_hosts(loop->dns, "/etc/hosts");
}

struct evdns_base *loop_dns(struct loop *loop)
{
	if (loop->dns)
		return loop->dns;
	loop->dns = evdns_base_new(loop->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!loop->dns)
		return NULL;
	if (loop->nameserver_count) {
		use_nameservers(loop);
		return loop->dns;
	}
	/* Without the first there are still the names of the second. */
	evdns_base_resolv_conf_parse(loop->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	evdns_base_load_hosts(loop->dns, NULL);
	return loop->dns;
}

/* Hooks feed one another (an answer asks for more), each time with less to do; the bound only guards against a bug. */
#define ROUNDS_MAX 16

static void turn_end(struct loop *loop)
{
	struct turn_hook *hook;
	int rounds = 0;

	do {
		loop->again = false;
		TAILQ_FOREACH (hook, &loop->hooks, link)
			hook->run(hook->arg);
	} while (loop->again && ++rounds < ROUNDS_MAX);
	log_flush();
	free_the_dead(loop);
}

void loop_turn(struct loop *loop)
{
	turn_end(loop);
	event_base_loop(loop->base, loop->again ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
	turn_end(loop);
}

void loop_run(struct loop *loop)
{
	turn_end(loop);
	while (!loop->stop) {
		event_base_loop(loop->base, loop->again ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
		turn_end(loop);
	}
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
	event_base_loopbreak(loop->base);
}

void loop_hook(struct loop *loop, struct turn_hook *hook)
{
	TAILQ_INSERT_HEAD(&loop->hooks, hook, link);
}

void loop_unhook(struct loop *loop, struct turn_hook *hook)
{
	TAILQ_REMOVE(&loop->hooks, hook, link);
}

void loop_again(struct loop *loop)
{
	loop->again = true;
}

void loop_bury(struct loop *loop, struct grave *grave)
{
	grave->next = loop->graves;
	loop->graves = grave;
}
