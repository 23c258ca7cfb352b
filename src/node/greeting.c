/* greeting.c - what a node that has just come up says. */
#include "node/greeting.h"

#include <stdio.h>
#include <string.h>

#include "base/demo.h"
#include "base/net.h"
#include "store/url.h"

static void print_store(const struct conf *conf, const struct private_server *private)
{
	struct store_url url;
	char text[400];

	if (private)
		fprintf(stderr, "  store   %s (private server, state in %s)\n",
			private_url(private), conf_text(conf, CONF_STATE_DIR));
	else if (!store_url_parse(&url, conf_text(conf, CONF_REDIS), text, sizeof text)) {
		store_url_print(&url, text, sizeof text);
		store_url_wipe(&url);
		fprintf(stderr, "  store   %s\n", text);
	}
}

/* What to type with the listener at `place`. */
static void print_try(const struct conf *conf, const char *place)
{
	bool is_demo = conf_bool(conf, CONF_DEMO);

	if (is_demo)
		fprintf(stderr, "  try     curl --noproxy '' -x http://%s http://%s:%d/\n", place,
			DEMO_ORIGIN_HOST, DEMO_ORIGIN_PORT);
	else
		fprintf(stderr, "  try     curl -x http://%s https://example.com/\n", place);
	fprintf(stderr, "  use     export http_proxy=http://%s https_proxy=http://%s\n", place,
		place);
}

void greeting_print(const struct conf *conf, const struct private_server *private,
		    const int *listeners, size_t count)
{
	const char *pool = conf_text(conf, CONF_POOL);
	struct net_place place;
	bool has_example = false;
	char text[160];

	if (conf_bool(conf, CONF_QUIET))
		return;
	fprintf(stderr, "fairlead %s is up\n", FAIRLEAD_VERSION);
	print_store(conf, private);
	for (size_t i = 0; i < count; i++) {
		if (net_local_place(listeners[i], &place))
			continue;
		net_place_print(&place, text, sizeof text);
		fprintf(stderr, "  gateway %s\n", text);
		if (!has_example && place.sa.ss_family != AF_UNIX) {
			print_try(conf, text);
			has_example = true;
		}
	}
	fprintf(stderr, "  shares  fairlead pool list --pool %s\n", pool);
	fprintf(stderr, "  stop    Ctrl-C\n");
}
