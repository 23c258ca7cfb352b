/* greeting.c - what a node that has just come up says. */
#include "node/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demo.h"
#include "base/net.h"
#include "store/url.h"

static void print_store(FILE *out, const struct conf *conf, const struct private_server *private)
{
	struct store_url url;
	char text[400];

	if (private)
		fprintf(out, "  store   %s (private server, state in %s)\n", private_url(private),
			conf_text(conf, CONF_STATE_DIR));
	else if (!store_url_parse(&url, conf_text(conf, CONF_REDIS), text, sizeof text)) {
		store_url_print(&url, text, sizeof text);
		store_url_wipe(&url);
		fprintf(out, "  store   %s\n", text);
	}
}

/* A name and a password in front of the address, where they are asked for. */
static const char *credentials(const struct conf *conf, const struct listen_spec *spec)
{
	return *conf_text(conf, CONF_AUTH_FILE) && spec->auth != LISTEN_AUTH_OFF ? "USER:PASSWORD@"
										 : "";
}

static void print_target(FILE *out, const struct conf *conf)
{
	if (conf_bool(conf, CONF_DEMO))
		fprintf(out, " http://%s:%d/\n", DEMO_ORIGIN_HOST, DEMO_ORIGIN_PORT);
	else
		fprintf(out, " https://example.com/\n");
}

/* What to type with the listener at `place`. */
static void print_http(FILE *out, const struct conf *conf, const char *who, const char *place)
{
	fprintf(out, "  try     curl %s-x http://%s%s",
		conf_bool(conf, CONF_DEMO) ? "--noproxy '' " : "", who, place);
	print_target(out, conf);
	fprintf(out, "  use     export http_proxy=http://%s%s https_proxy=http://%s%s\n", who,
		place, who, place);
}

static void print_socks(FILE *out, const struct conf *conf, const char *who, const char *place)
{
	fprintf(out, "  socks   curl %s--proxy socks5h://%s%s",
		conf_bool(conf, CONF_DEMO) ? "--noproxy '' " : "", who, place);
	print_target(out, conf);
}

/* All addresses, and an example for each protocol. */
static void print_listeners(FILE *out, const struct conf *conf, const struct listeners *listeners)
{
	bool has_http = false, has_socks = false;
	struct net_place place;
	char text[160];

	for (size_t i = 0; i < listeners->count; i++) {
		const struct listen_spec *spec = &listeners->specs[i];

		if (net_local_place(listeners->fds[i], &place))
			continue;
		net_place_print(&place, text, sizeof text);
		fprintf(out, "  gateway %s\n", text);
		if (place.sa.ss_family == AF_UNIX)
			continue;
		if (spec->protocol != LISTEN_SOCKS && !has_http)
			print_http(out, conf, credentials(conf, spec), text);
		if (spec->protocol != LISTEN_HTTP && !has_socks)
			print_socks(out, conf, credentials(conf, spec), text);
		has_http = has_http || spec->protocol != LISTEN_SOCKS;
		has_socks = has_socks || spec->protocol != LISTEN_HTTP;
	}
}

static void print_all(FILE *out, const struct conf *conf, const struct private_server *private,
		      const struct listeners *listeners, const char *checks)
{
	fprintf(out, "fairlead %s is up\n", FAIRLEAD_VERSION);
	print_store(out, conf, private);
	print_listeners(out, conf, listeners);
	fprintf(out, "  checks  %s\n", checks);
	fprintf(out, "  shares  fairlead pool list --pool %s\n", conf_text(conf, CONF_POOL));
	fprintf(out, "  stop    Ctrl-C\n");
}

/* The children write to the same place: one write() keeps their lines out of ours. */
void greeting_print(const struct conf *conf, const struct private_server *private,
		    const struct listeners *listeners, const char *checks)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = conf_bool(conf, CONF_QUIET) ? NULL : open_memstream(&text, &len);

	if (!out)
		return;
	print_all(out, conf, private, listeners, checks);
	if (!fclose(out))
		fwrite(text, 1, len, stderr);
	free(text);
}
