/* bind.c - listeners: judged, inherited or bound once, with an error that says what to do. */
#include "node/bind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/demo.h"

void role_close(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void bind_unlink(const struct listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++)
		net_remove_stale(&listeners->specs[i].place);
}

/* --- what may be listened on -------------------------------------------------------------------------------------- */

/* A listener that others can reach must know its clients. A name that is assumed (user=) proves nothing. */
static int judge(const struct conf *conf, const struct listen_spec *spec, char *error, size_t size)
{
	bool has_accounts = *conf_text(conf, CONF_AUTH_FILE);

	if (spec->auth == LISTEN_AUTH_ON && !has_accounts) {
		snprintf(error, size, "auth=on needs --auth-file");
		return -EINVAL;
	}
	if (net_place_is_local(&spec->place) || conf_count(conf, CONF_ALLOW_CLIENT) ||
	    (has_accounts && spec->auth != LISTEN_AUTH_OFF))
		return 0;
	snprintf(error, size,
		 "refused, it would be an open proxy; name its clients with --allow-client NETWORK "
		 "or --auth-file FILE%s",
		 spec->auth == LISTEN_AUTH_OFF ? " (auth=off asks nobody)" : "");
	return -EINVAL;
}

static int read_spec(const struct conf *conf, const char *text, struct listen_spec *ret,
		     char *error, size_t size)
{
	struct listen_spec spec;
	char why[320];
	int r = listen_parse(&spec, text, why, sizeof why);

	if (!r)
		r = judge(conf, &spec, why, sizeof why);
	if (r)
		snprintf(error, size, "--listen %.150s: %s", text, why);
	else
		*ret = spec;
	return r;
}

int bind_check(const struct conf *conf, char *error, size_t size)
{
	size_t count = conf_count(conf, CONF_LISTEN);
	struct listen_spec spec;
	int r = 0;

	if (count == 0 || count > ROLE_LISTENERS_MAX) {
		snprintf(error, size, "--listen: 1 to %d addresses", ROLE_LISTENERS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < count && !r; i++)
		r = read_spec(conf, conf_at(conf, CONF_LISTEN, i), &spec, error, size);
	return r;
}

/* --- bind --------------------------------------------------------------------------------------------------------- */

static int explain(const char *text, int r, const char *way_out, char *error, size_t size)
{
	const char *cause = r == -EADDRINUSE ? "in use; does another node run here?" : strerror(-r);

	snprintf(error, size, "cannot listen on %.150s: %s %s", text, cause, way_out);
	return r == -EINVAL ? -EIO : r;
}

static int find_or_listen(struct inherited *inherited, const struct net_place *place)
{
	int fd = inherit_find(inherited, place);

	return fd >= 0 ? fd : net_listen(place);
}

static void add(struct listeners *listeners, const struct listen_spec *spec, int fd)
{
	listeners->specs[listeners->count] = *spec;
	listeners->fds[listeners->count++] = fd;
}

static int bind_one(const struct conf *conf, struct inherited *inherited, const char *text,
		    struct listeners *listeners, char *error, size_t size)
{
	struct listen_spec spec;
	int r = read_spec(conf, text, &spec, error, size);
	int fd;

	if (r)
		return r;
	fd = find_or_listen(inherited, &spec.place);
	if (fd < 0)
		return explain(spec.address, fd, "(--listen chooses another address)", error, size);
	add(listeners, &spec, fd);
	return 0;
}

/* A socket that was handed to us, at whatever place it has. `conf` NULL: it needs not to know its clients. */
static int take_one(const struct conf *conf, int fd, struct listeners *listeners, char *error,
		    size_t size)
{
	struct listen_spec spec = {0};
	char why[320];
	int r = net_local_place(fd, &spec.place);

	if (r)
		return explain("an inherited socket", r, "", error, size);
	net_place_print(&spec.place, spec.address, sizeof spec.address);
	r = conf ? judge(conf, &spec, why, sizeof why) : 0;
	if (r)
		snprintf(error, size, "the inherited socket %s: %s", spec.address, why);
	else
		add(listeners, &spec, fd);
	return r;
}

static int take_all(const struct conf *conf, struct inherited *inherited,
		    struct listeners *listeners, char *error, size_t size)
{
	int r = inherited->count > ROLE_LISTENERS_MAX ? -E2BIG : 0;

	if (r)
		snprintf(error, size, "at most %d sockets can be inherited", ROLE_LISTENERS_MAX);
	for (size_t i = 0; i < inherited->count && !r; i++)
		r = take_one(conf, inherited->fds[i], listeners, error, size);
	if (!r)
		inherited->count = 0;
	else
		listeners->count = 0; /* they are still the other's to close */
	return r;
}

int bind_all(const struct conf *conf, struct inherited *inherited, struct listeners *ret,
	     char *error, size_t size)
{
	bool is_given = inherited->is_activated && !conf_is_set(conf, CONF_LISTEN);
	int r;

	ret->count = 0;
	if (is_given && inherited->count)
		return take_all(conf, inherited, ret, error, size);
	r = bind_check(conf, error, size);
	for (size_t i = 0; i < conf_count(conf, CONF_LISTEN) && !r; i++)
		r = bind_one(conf, inherited, conf_at(conf, CONF_LISTEN, i), ret, error, size);
	if (r)
		role_close(ret->fds, ret->count);
	return r;
}

static int bind_page(struct inherited *inherited, const char *text, struct listeners *listeners,
		     char *error, size_t size)
{
	struct listen_spec spec = {0};
	int fd;

	if (net_place_parse(&spec.place, text) || spec.place.sa.ss_family == AF_UNIX) {
		snprintf(error, size, "--listen %.150s: expected ADDRESS:PORT or [IPV6]:PORT",
			 text);
		return -EINVAL;
	}
	fd = find_or_listen(inherited, &spec.place);
	if (fd < 0)
		return explain(text, fd, "(--listen chooses another address)", error, size);
	add(listeners, &spec, fd);
	return 0;
}

int bind_judge(const struct conf *conf, struct inherited *inherited, struct listeners *ret,
	       char *error, size_t size)
{
	bool is_given = inherited->is_activated && !conf_is_set(conf, CONF_JUDGE_LISTEN);
	size_t count = conf_count(conf, CONF_JUDGE_LISTEN);
	int r = 0;

	ret->count = 0;
	if (is_given && inherited->count)
		return take_all(NULL, inherited, ret, error, size);
	for (size_t i = 0; i < count && !r; i++)
		r = bind_page(inherited, conf_at(conf, CONF_JUDGE_LISTEN, i), ret, error, size);
	if (r)
		role_close(ret->fds, ret->count);
	return r;
}

int bind_demo(struct inherited *inherited, int *ret_fds, char *error, size_t size)
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
			fd = find_or_listen(inherited, &place);
		if (fd < 0) {
			role_close(ret_fds, i);
			return explain(text, fd, "(--demo needs exactly this address)", error,
				       size);
		}
		ret_fds[i] = fd;
	}
	return 0;
}
