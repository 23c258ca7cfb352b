/* role_judge.c - the judge: a page that tells what a proxy says of its client. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/net.h"
#include "check/judge.h"
#include "node/role.h"
#include "node/service.h"

#define CLIENTS_MAX ((size_t)4096)

struct judging {
	struct service service;
	struct judge *judges[ROLE_LISTENERS_MAX];
};

static void stop(struct service *service)
{
	service_done(service, 0);
}

static bool is_any(const struct net_place *place)
{
	struct address address;
	static const uint8_t zeros[16];

	return !address_from_sockaddr(&address, (const struct sockaddr *)&place->sa) &&
	       !memcmp(address.bytes, zeros, address.family == AF_INET ? 4 : sizeof zeros);
}

/* Whoever listens on all addresses is known to others by one that they must tell. */
static void print_place(int fd)
{
	struct net_place place;
	char text[160];

	if (net_local_place(fd, &place))
		return;
	net_place_print(&place, text, sizeof text);
	fprintf(stderr, "  judge   http://%s/\n", text);
	fprintf(stderr, "  use     fairlead pool rules check_target=http://%s%s/\n",
		is_any(&place) ? "HOST" : "", is_any(&place) ? strrchr(text, ':') : text);
	if (net_place_is_local(&place))
		fprintf(stderr,
			"  note    only proxies on this host reach it; --listen 0.0.0.0:%u "
			"serves all\n",
			ntohs(((const struct sockaddr_in *)&place.sa)->sin_port));
}

static void greet(const struct role_context *context)
{
	if (conf_bool(context->conf, CONF_QUIET))
		return;
	fprintf(stderr, "fairlead %s judges\n", FAIRLEAD_VERSION);
	for (size_t i = 0; i < context->listener_count; i++)
		print_place(context->listeners[i]);
	fprintf(stderr, "  stop    Ctrl-C\n");
}

int role_judge(const struct role_context *context)
{
	struct judging judging = {.service = {.stop = stop}};
	size_t limit = (size_t)net_descriptor_limit() / 2 / context->listener_count;
	int r = service_start(&judging.service, context, "judge", false);

	for (size_t i = 0; i < context->listener_count && !r; i++)
		r = judge_new(&judging.judges[i], judging.service.loop, context->listeners[i],
			      limit < CLIENTS_MAX ? limit : CLIENTS_MAX)
			? 1
			: 0;
	if (!r) {
		greet(context);
		role_is_ready(context, "");
		r = service_run(&judging.service);
	}
	for (size_t i = 0; i < context->listener_count; i++)
		judge_free(judging.judges[i]);
	service_fini(&judging.service);
	return r;
}
