/* role_gateway.c - a gateway process: its configuration, its life. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "node/role.h"
#include "node/service.h"
#include "node/setup.h"

#define RULES_WAIT_MS 1000

struct gateway_role {
	struct service service;
	const struct role_context *context;
	struct setup *setup;
	struct gateway *gateway;
	struct pools *pools;
	struct limits *limits;
};

static void on_drained(void *arg)
{
	struct service *service = arg;

	service_done(service, 0);
}

static void stop(struct service *service)
{
	struct gateway_role *role = (struct gateway_role *)service;

	if (!role->gateway) {
		service_done(service, 0);
		return;
	}
	gateway_drain(role->gateway, clock_ms() + service_drain_ms(service), on_drained, service);
	role_close(role->context->listeners, role->context->listener_count);
}

/* --- configuration ------------------------------------------------------------------------------------------------ */

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

/* The configuration as the gateway takes it. */
static int compose(const struct gateway_role *role, const struct setup *setup,
		   struct gateway_config *ret)
{
	const struct service *service = &role->service;
	struct store_config store;
	int r = service_store_config(service->conf, service->private, &store);

	if (r)
		return r;
	setup_fill(setup, service->conf, ret);
	ret->pools = role->pools;
	ret->limits = role->limits;
	add_store(&ret->policy, &store);
	store_url_wipe(&store.url);
	return 0;
}

static int set_pools(struct gateway_role *role, char *error, size_t size)
{
	const struct conf *conf = role->service.conf;
	size_t count = conf_count(conf, CONF_ALIAS);
	const char **texts = calloc(count + 1, sizeof *texts);
	char why[320] = "out of memory";
	int r = texts ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !r; i++)
		texts[i] = conf_at(conf, CONF_ALIAS, i);
	if (!r)
		r = pools_set(role->pools, texts, count, why, sizeof why);
	free(texts);
	if (r)
		snprintf(error, size, "--alias: %s", why);
	return r;
}

static void set_limits(struct gateway_role *role)
{
	const struct conf *conf = role->service.conf;
	const struct limits_config config = {
	    .client_concurrent = conf_int(conf, CONF_CLIENT_CONCURRENT),
	    .client_rate = conf_int(conf, CONF_CLIENT_RATE),
	    .host_concurrent = conf_int(conf, CONF_HOST_CONCURRENT),
	    .host_rate = conf_int(conf, CONF_HOST_RATE),
	    .is_shared = conf_bool(conf, CONF_SHARED_LIMITS),
	};

	limits_set(role->limits, &config);
}

/* Makes the configuration in force the one that the gateway, when there is one, goes by. 0, or -errno with a line in
 * `error`. */
static int apply(struct gateway_role *role, struct gateway_config *ret, char *error, size_t size)
{
	struct setup *setup = NULL;
	int r = set_pools(role, error, size);

	if (!r)
		r = setup_new(&setup, role->service.conf, error, size);
	if (!r && compose(role, setup, ret)) {
		snprintf(error, size, "--redis cannot be used");
		r = -EINVAL;
	}
	if (r) {
		setup_free(setup);
		return r;
	}
	set_limits(role);
	if (role->gateway)
		gateway_configure(role->gateway, ret);
	setup_free(role->setup);
	role->setup = setup;
	return 0;
}

static void reload(struct service *service)
{
	struct gateway_role *role = (struct gateway_role *)service;
	struct gateway_config config;
	char error[512] = "out of memory";

	if (!role->gateway || service->is_stopping)
		return;
	if (apply(role, &config, error, sizeof error))
		log_error("the settings of the gateway stay as they were",
			  LOG_TEXT("error", error));
}

/* 0, or an exit status > 0 after a line on standard error. */
static int refuse(int result, const char *error)
{
	fprintf(stderr, "fairlead: %s\n", error);
	return result == -ENOMEM ? 1 : 2;
}

static int serve(struct gateway_role *role, const struct role_context *context)
{
	struct gateway_config config;
	char error[512] = "out of memory";
	int r = apply(role, &config, error, sizeof error);

	if (r)
		return refuse(r, error);
	if (gateway_new(&role->gateway, role->service.loop, &config))
		return 1;
	for (size_t i = 0; i < context->listener_count; i++)
		if (gateway_listen(role->gateway, context->listeners[i], &context->specs[i]))
			return 1;
	return 0;
}

/* The first request must meet the pools' rules. A store that is away does not hold up the start: it is 503 until it
 * comes. */
static void wait_for_rules(struct gateway_role *role)
{
	struct service *service = &role->service;
	int64_t deadline = clock_ms() + RULES_WAIT_MS;

	while ((!service->has_rules || !pools_are_read(role->pools)) && !service->is_stopping &&
	       clock_ms() < deadline)
		loop_turn(service->loop);
}

static int prepare(struct gateway_role *role)
{
	struct service *service = &role->service;
	char error[512] = "out of memory";
	int r;

	if (pools_new(&role->pools, service->loop, service->store, service->pool) ||
	    limits_new(&role->limits, service->loop, service->pool))
		return 1;
	r = set_pools(role, error, sizeof error);
	if (r)
		return refuse(r, error);
	wait_for_rules(role);
	return 0;
}

/* What has gathered is sent before the store goes, and the store goes before those who wait for its answers. */
static void finish(struct gateway_role *role)
{
	gateway_free(role->gateway);
	if (role->pools)
		pools_send_traffic(role->pools);
	service_end_store(&role->service);
	limits_free(role->limits);
	pools_free(role->pools);
	service_fini(&role->service);
	setup_free(role->setup);
}

int role_gateway(const struct role_context *context)
{
	struct gateway_role *role = calloc(1, sizeof *role);
	int r;

	if (!role)
		return 1;
	*role = (struct gateway_role){
	    .service = {.stop = stop, .check = setup_check, .reload = reload}, .context = context};
	r = service_start(&role->service, context, "gateway", true);
	if (!r)
		r = prepare(role);
	if (!r)
		r = serve(role, context);
	if (!r) {
		role_is_ready(context, "");
		r = service_run(&role->service);
	}
	finish(role);
	free(role);
	return r;
}
