/* role_gateway.c - a gateway process: its configuration, its life. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "node/role.h"
#include "node/service.h"

/* Descriptors that are neither a client's nor an upstream's. */
#define DESCRIPTORS_KEPT 64
#define NETWORKS_MAX 1024
/* A gateway whose supervisor is gone ends soon: somebody may be starting a new node. */
#define ORPHAN_DRAIN_MS 1000
#define RULES_WAIT_MS 1000

struct gateway_role {
	struct service service;
	const struct role_context *context;
	struct gateway *gateway;
	struct network targets[NETWORKS_MAX], clients[NETWORKS_MAX];
};

static void on_drained(void *arg)
{
	struct service *service = arg;

	service_done(service, 0);
}

static void stop(struct service *service)
{
	struct gateway_role *role = (struct gateway_role *)service;
	int64_t wait =
	    service->is_orphan ? ORPHAN_DRAIN_MS : conf_ms(service->conf, CONF_DRAIN_TIMEOUT);

	if (!role->gateway) {
		service_done(service, 0);
		return;
	}
	gateway_drain(role->gateway, clock_ms() + wait, on_drained, service);
	role_close(role->context->listeners, role->context->listener_count);
}

void role_is_ready(const struct role_context *context)
{
	if (context->ready_fd < 0)
		return;
	if (write(context->ready_fd, "r", 1) < 0) {
		/* Whoever waited is gone; the signal of its death is on its way. */
	}
	close(context->ready_fd);
}

/* --- configuration ------------------------------------------------------------------------------------------------ */

static int parse_networks(const struct conf *conf, enum conf_id id, struct network *ret,
			  size_t *ret_count)
{
	char flag[64];

	*ret_count = conf_count(conf, id);
	for (size_t i = 0; i < *ret_count; i++) {
		const char *text = conf_at(conf, id, i);

		if (network_parse(&ret[i], text, strlen(text))) {
			fprintf(stderr,
				"fairlead: %s %s: expected a network such as 10.0.0.0/8 or "
				"2001:db8::/32\n",
				conf_flag_name(id, flag, sizeof flag), text);
			return 2;
		}
	}
	return 0;
}

/* The store is never a target, wherever it listens. */
static void add_store(struct policy *policy, const struct store_config *store)
{
	struct net_place *place = &policy->own[policy->own_count];
	struct address address;

	if (store->url.kind == STORE_TCP &&
	    !address_parse(&address, store->url.host, strlen(store->url.host))) {
		place->len = address_to_sockaddr(&address, store->url.port, &place->sa);
		policy->own_count++;
	}
}

/* As many clients as descriptors for two ends each. */
static size_t client_limit(const struct conf *conf)
{
	size_t wanted = (size_t)conf_int(conf, CONF_MAX_CLIENTS);
	long limit = net_descriptor_limit();
	size_t possible = limit > 2 * DESCRIPTORS_KEPT ? (size_t)(limit - DESCRIPTORS_KEPT) / 2
						       : DESCRIPTORS_KEPT;

	if (wanted <= possible)
		return wanted;
	log_line(conf_is_set(conf, CONF_MAX_CLIENTS) ? LOG_WARN : LOG_DEBUG,
		 "clients are limited by the descriptor limit (ulimit -n)",
		 LOG_NUMBER("descriptors", limit), LOG_NUMBER("max_clients", (int64_t)possible));
	return possible;
}

/* RFC 9209: the name is a token or a string; ours is a token. */
static int check_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*",
			    *c))
			return -EINVAL;
	return (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || *name == '*'
		   ? 0
		   : -EINVAL;
}

static int configure(struct gateway_role *role, struct gateway_config *ret)
{
	const struct conf *conf = role->service.conf;
	struct policy policy = {.allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE),
				.targets = role->targets,
				.clients = role->clients,
				.is_demo = conf_bool(conf, CONF_DEMO)};
	struct store_config store;
	int r = parse_networks(conf, CONF_ALLOW_TARGET, role->targets, &policy.target_count);

	if (!r)
		r = parse_networks(conf, CONF_ALLOW_CLIENT, role->clients, &policy.client_count);
	if (!r)
		r = service_store_config(conf, role->service.private, &store);
	if (r)
		return r;
	if (check_name(conf_text(conf, CONF_PROXY_NAME))) {
		fprintf(stderr,
			"fairlead: --proxy-name: letters, digits and _ - . only, a letter first\n");
		return 2;
	}
	add_store(&policy, &store);
	store_url_wipe(&store.url);
	*ret = (struct gateway_config){
	    .policy = policy,
	    .name = conf_text(conf, CONF_PROXY_NAME),
	    .has_access_log = conf_bool(conf, CONF_ACCESS_LOG),
	    .tries = (int)conf_int(conf, CONF_TRIES),
	    .connect_ms = conf_ms(conf, CONF_CONNECT_TIMEOUT),
	    .dial_ms = conf_ms(conf, CONF_DIAL_TIMEOUT),
	    .head_ms = conf_ms(conf, CONF_HEAD_TIMEOUT),
	    .response_ms = conf_ms(conf, CONF_RESPONSE_TIMEOUT),
	    .idle_ms = conf_ms(conf, CONF_IDLE_TIMEOUT),
	    .retry_body_bytes = conf_bytes(conf, CONF_RETRY_BODY),
	    .retry_after_s = (conf_ms(conf, CONF_RETRY_AFTER) + 999) / 1000,
	    .max_clients = client_limit(conf),
	    .pool = role->service.pool,
	};
	return 0;
}

static int serve(struct gateway_role *role, const struct role_context *context)
{
	struct gateway_config config;
	int r = configure(role, &config);

	if (r)
		return r;
	if (gateway_new(&role->gateway, role->service.loop, &config))
		return 1;
	for (size_t i = 0; i < context->listener_count; i++)
		if (gateway_listen(role->gateway, context->listeners[i]))
			return 1;
	return 0;
}

/* The first request must meet the pool's rules. A store that is away does not hold up the start: it is 503 until it comes. */
static void wait_for_rules(struct service *service)
{
	int64_t deadline = clock_ms() + RULES_WAIT_MS;

	while (!service->has_rules && !service->is_stopping && clock_ms() < deadline)
		loop_turn(service->loop);
}

int role_gateway(const struct role_context *context)
{
	struct gateway_role *role = calloc(1, sizeof *role);
	int r = role ? 0 : 1;

	if (!r)
		*role = (struct gateway_role){.service = {.stop = stop}, .context = context};
	if (!r)
		r = service_start(&role->service, context, "gateway", true);
	if (!r)
		wait_for_rules(&role->service);
	if (!r)
		r = serve(role, context);
	if (!r) {
		role_is_ready(context);
		r = service_run(&role->service);
	}
	if (role) {
		gateway_free(role->gateway);
		service_fini(&role->service);
	}
	free(role);
	return r;
}
