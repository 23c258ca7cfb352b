/* role_demo.c - the demonstration: three upstreams, the gateway's own code dialling directly, and an origin. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demo.h"
#include "gateway/gateway.h"
#include "node/origin.h"
#include "node/role.h"
#include "node/service.h"

#define DESCRIPTORS_PER_CLIENT 4
#define ORIGIN_POLL_MS 50

struct demo {
	struct service service;
	struct endpoint upstreams[DEMO_UPSTREAMS];
	struct gateway *gateways[DEMO_UPSTREAMS];
	struct origin *origin;
	int draining; /* upstreams that still serve somebody */
	struct alarm end;
};

static void end(void *arg)
{
	struct demo *demo = arg;

	if (origin_is_idle(demo->origin))
		service_done(&demo->service, 0);
	else
		alarm_set(&demo->end, clock_ms() + ORIGIN_POLL_MS);
}

static void on_drained(void *arg)
{
	struct demo *demo = arg;

	if (--demo->draining == 0)
		end(demo);
}

/* Whoever is being served when a successor takes over is served to the end, by the upstreams and then by the origin. */
static void stop(struct service *service)
{
	struct demo *demo = (struct demo *)service;

	if (!service->is_handover) {
		service_done(service, 0);
		return;
	}
	origin_pause(demo->origin);
	demo->draining = DEMO_UPSTREAMS;
	for (int i = 0; i < DEMO_UPSTREAMS; i++)
		gateway_drain(demo->gateways[i], clock_ms() + service_drain_ms(service), on_drained,
			      demo);
}

/* Each upstream goes out from its own loopback address, which the origin answers with. */
static int open_upstream(struct demo *demo, int index, int fd)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;
	const struct conf *conf = demo->service.conf;
	struct endpoint *upstream = &demo->upstreams[index];
	struct gateway_config config = {
	    .policy = {.is_demo = true},
	    .name = "demo",
	    .connect_ms = conf_ms(conf, CONF_CONNECT_TIMEOUT),
	    .dial_ms = conf_ms(conf, CONF_DIAL_TIMEOUT),
	    .head_ms = conf_ms(conf, CONF_HEAD_TIMEOUT),
	    .response_ms = conf_ms(conf, CONF_RESPONSE_TIMEOUT),
	    .idle_ms = conf_ms(conf, CONF_IDLE_TIMEOUT),
	    .tries = 1,
	    .tries_ms = conf_ms(conf, CONF_DIAL_TIMEOUT),
	    .body_rate = conf_bytes(conf, CONF_BODY_RATE),
	    .retry_after_s = 1,
	    .max_clients =
		(size_t)net_descriptor_limit() / (DESCRIPTORS_PER_CLIENT * DEMO_UPSTREAMS),
	    .upstream = upstream,
	};
	int r;

	upstream->scheme = SCHEME_DIRECT;
	strcpy(upstream->host, hosts[index]);
	r = gateway_new(&demo->gateways[index], demo->service.loop, &config);
	return r ? r : gateway_listen(demo->gateways[index], fd, NULL);
}

int role_demo(const struct role_context *context)
{
	struct demo demo = {.service = {.stop = stop}};
	int r = service_start(&demo.service, context, "demo", false);

	for (int i = 0; i < DEMO_UPSTREAMS && !r; i++)
		r = open_upstream(&demo, i, context->listeners[i]) ? 1 : 0;
	if (!r)
		r = origin_new(&demo.origin, demo.service.loop, context->listeners[DEMO_UPSTREAMS])
			? 1
			: 0;
	if (!r) {
		alarm_init(&demo.end, demo.service.loop, end, &demo);
		role_is_ready(context, "");
		r = service_run(&demo.service);
		alarm_fini(&demo.end);
	}
	for (int i = 0; i < DEMO_UPSTREAMS; i++)
		gateway_free(demo.gateways[i]);
	origin_free(demo.origin);
	service_fini(&demo.service);
	return r;
}
