/* bind.c - listeners, bound once, with an error that says what to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/demo.h"
#include "node/role.h"

void role_close(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void role_unlink(const struct conf *conf)
{
	struct net_place place;

	for (size_t i = 0; i < conf_count(conf, CONF_LISTEN); i++)
		if (!net_place_parse(&place, conf_at(conf, CONF_LISTEN, i)))
			net_remove_stale(&place);
}

static void explain(const char *text, int error, const char *way_out)
{
	const char *cause =
	    error == -EADDRINUSE ? "in use; does another node run here?" : strerror(-error);

	fprintf(stderr, "fairlead: cannot listen on %s: %s %s\n", text, cause, way_out);
}

/* A listener that others can reach must know its clients. */
static bool is_safe(const struct conf *conf, const struct net_place *place, const char *text)
{
	if (net_place_is_local(place) || conf_count(conf, CONF_ALLOW_CLIENT))
		return true;
	fprintf(stderr,
		"fairlead: --listen %s: refused, it would be an open proxy; name its clients with "
		"--allow-client NETWORK\n",
		text);
	return false;
}

static int bind_one(const struct conf *conf, const char *text, int *ret)
{
	struct net_place place;
	int fd;

	if (net_place_parse(&place, text)) {
		fprintf(stderr,
			"fairlead: --listen %s: expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH\n",
			text);
		return 2;
	}
	if (!is_safe(conf, &place, text))
		return 2;
	fd = net_listen(&place);
	if (fd < 0) {
		explain(text, fd, "(--listen chooses another address)");
		return 1;
	}
	*ret = fd;
	return 0;
}

int role_bind(const struct conf *conf, int *ret_fds, size_t *ret_count)
{
	size_t count = conf_count(conf, CONF_LISTEN);
	int r = 0;

	if (count == 0 || count > ROLE_LISTENERS_MAX) {
		fprintf(stderr, "fairlead: --listen: 1 to %d addresses\n", ROLE_LISTENERS_MAX);
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		r = bind_one(conf, conf_at(conf, CONF_LISTEN, i), &ret_fds[i]);
		if (r) {
			role_close(ret_fds, i);
			return r;
		}
	}
	*ret_count = count;
	return 0;
}

int role_bind_demo(int *ret_fds, size_t *ret_count)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;
	char text[64];

	for (size_t i = 0; i < ROLE_DEMO_LISTENERS; i++) {
		bool is_origin = i == DEMO_UPSTREAMS;
		struct net_place place;
		int fd = -EINVAL;

		snprintf(text, sizeof text, "%s:%d", is_origin ? DEMO_ORIGIN_HOST : hosts[i],
			 is_origin ? DEMO_ORIGIN_PORT : DEMO_UPSTREAM_PORT);
		if (!net_place_parse(&place, text))
			fd = net_listen(&place);
		if (fd < 0) {
			explain(text, fd, "(--demo needs exactly this address)");
			role_close(ret_fds, i);
			return 1;
		}
		ret_fds[i] = fd;
	}
	*ret_count = ROLE_DEMO_LISTENERS;
	return 0;
}
