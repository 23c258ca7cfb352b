/* setup.c - what the settings of a gateway are made into. */
#include "node/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tls.h"

/* Descriptors that are neither a client's nor an upstream's. */
#define DESCRIPTORS_KEPT 64
#define NETWORKS_MAX 1024
#define WHY_MAX 400

struct setup {
	struct network targets[NETWORKS_MAX], clients[NETWORKS_MAX];
	size_t target_count, client_count;
	struct ports ports;
	struct hosts *allow_hosts, *deny_hosts;
	struct accounts *accounts;
	struct tls *tls;
	char name[80];
};

/* Where what is wrong is told. */
struct telling {
	char *error;
	size_t size;
};

static int refuse(const struct telling *telling, enum conf_id id, const char *why)
{
	char flag[64];

	snprintf(telling->error, telling->size, "%s: %s", conf_flag_name(id, flag, sizeof flag),
		 why);
	return -EINVAL;
}

static int read_networks(const struct conf *conf, enum conf_id id, struct network *ret,
			 size_t *ret_count, const struct telling *telling)
{
	char why[WHY_MAX];

	*ret_count = conf_count(conf, id);
	for (size_t i = 0; i < *ret_count; i++) {
		const char *text = conf_at(conf, id, i);

		if (network_parse(&ret[i], text, strlen(text))) {
			snprintf(why, sizeof why,
				 "'%.60s': expected a network such as 10.0.0.0/8 or 2001:db8::/32",
				 text);
			return refuse(telling, id, why);
		}
	}
	return 0;
}

static int read_ports(const struct conf *conf, struct ports *ret, const struct telling *telling)
{
	char why[WHY_MAX];

	for (size_t i = 0; i < conf_count(conf, CONF_ALLOW_PORT); i++)
		if (ports_add(ret, conf_at(conf, CONF_ALLOW_PORT, i), why, sizeof why))
			return refuse(telling, CONF_ALLOW_PORT, why);
	return 0;
}

static int read_hosts(const struct conf *conf, enum conf_id id, struct hosts **ret,
		      const struct telling *telling)
{
	size_t count = conf_count(conf, id);
	const char **texts = calloc(count + 1, sizeof *texts);
	char why[WHY_MAX] = "out of memory";
	int r = texts ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !r; i++)
		texts[i] = conf_at(conf, id, i);
	if (!r)
		r = hosts_new(ret, texts, count, why, sizeof why);
	free(texts);
	return r ? refuse(telling, id, why) : 0;
}

static int read_accounts(const struct conf *conf, struct accounts **ret,
			 const struct telling *telling)
{
	const char *path = conf_text(conf, CONF_AUTH_FILE);
	char why[WHY_MAX] = "out of memory";

	if (*path && accounts_read(ret, path, why, sizeof why))
		return refuse(telling, CONF_AUTH_FILE, why);
	return 0;
}

int setup_trust(const struct conf *conf, struct tls **ret, char *error, size_t size)
{
	const struct telling telling = {error, size};
	char why[WHY_MAX] = "out of memory";

	if (tls_new(ret, conf_text(conf, CONF_UPSTREAM_CA), why, sizeof why))
		return refuse(&telling, CONF_UPSTREAM_CA, why);
	for (size_t i = 0; i < conf_count(conf, CONF_UPSTREAM_PIN); i++)
		if (tls_pin(*ret, conf_at(conf, CONF_UPSTREAM_PIN, i), why, sizeof why))
			return refuse(&telling, CONF_UPSTREAM_PIN, why);
	return 0;
}

/* RFC 9209: the name is a token or a string; ours is a token. */
static int read_name(const struct conf *conf, struct setup *setup, const struct telling *telling)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ*";
	static const char others[] = "0123456789_-.";
	const char *name = conf_text(conf, CONF_PROXY_NAME);

	for (const char *c = name; *c; c++)
		if (!strchr(letters, *c) && (c == name || !strchr(others, *c)))
			return refuse(telling, CONF_PROXY_NAME,
				      "letters, digits and _ - . only, a letter first");
	snprintf(setup->name, sizeof setup->name, "%s", name);
	return 0;
}

void setup_free(struct setup *setup)
{
	if (!setup)
		return;
	hosts_free(setup->allow_hosts);
	hosts_free(setup->deny_hosts);
	accounts_free(setup->accounts);
	tls_free(setup->tls);
	free(setup);
}

int setup_new(struct setup **ret, const struct conf *conf, char *error, size_t size)
{
	const struct telling telling = {error, size};
	struct setup *setup = calloc(1, sizeof *setup);
	int r;

	if (!setup)
		return -ENOMEM;
	r = read_networks(conf, CONF_ALLOW_TARGET, setup->targets, &setup->target_count, &telling);
	if (!r)
		r = read_networks(conf, CONF_ALLOW_CLIENT, setup->clients, &setup->client_count,
				  &telling);
	if (!r)
		r = read_ports(conf, &setup->ports, &telling);
	if (!r)
		r = read_hosts(conf, CONF_ALLOW_HOST, &setup->allow_hosts, &telling);
	if (!r)
		r = read_hosts(conf, CONF_DENY_HOST, &setup->deny_hosts, &telling);
	if (!r)
		r = read_accounts(conf, &setup->accounts, &telling);
	if (!r)
		r = setup_trust(conf, &setup->tls, error, size);
	if (!r)
		r = read_name(conf, setup, &telling);
	if (r)
		setup_free(setup);
	else
		*ret = setup;
	return r;
}

int setup_check(const struct conf *conf, char *error, size_t size)
{
	struct setup *setup;
	int r = setup_new(&setup, conf, error, size);

	if (!r)
		setup_free(setup);
	return r;
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

static struct policy policy_of(const struct setup *setup, const struct conf *conf)
{
	return (struct policy){.allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE),
			       .targets = setup->targets,
			       .target_count = setup->target_count,
			       .clients = setup->clients,
			       .client_count = setup->client_count,
			       .ports = &setup->ports,
			       .allow_hosts = setup->allow_hosts,
			       .deny_hosts = setup->deny_hosts,
			       .is_demo = conf_bool(conf, CONF_DEMO)};
}

void setup_fill(const struct setup *setup, const struct conf *conf, struct gateway_config *ret)
{
	*ret = (struct gateway_config){
	    .policy = policy_of(setup, conf),
	    .name = setup->name,
	    .has_access_log = conf_bool(conf, CONF_ACCESS_LOG),
	    .has_member_header = conf_bool(conf, CONF_MEMBER_HEADER),
	    .tries = (int)conf_int(conf, CONF_TRIES),
	    .lease_wait_ms = conf_ms(conf, CONF_LEASE_WAIT),
	    .tries_ms = conf_ms(conf, CONF_TRIES_TIMEOUT),
	    .connect_ms = conf_ms(conf, CONF_CONNECT_TIMEOUT),
	    .dial_ms = conf_ms(conf, CONF_DIAL_TIMEOUT),
	    .head_ms = conf_ms(conf, CONF_HEAD_TIMEOUT),
	    .response_ms = conf_ms(conf, CONF_RESPONSE_TIMEOUT),
	    .idle_ms = conf_ms(conf, CONF_IDLE_TIMEOUT),
	    .retry_body_bytes = conf_bytes(conf, CONF_RETRY_BODY),
	    .body_rate = conf_bytes(conf, CONF_BODY_RATE),
	    .retry_after_s = (conf_ms(conf, CONF_RETRY_AFTER) + 999) / 1000,
	    .session_ms = conf_ms(conf, CONF_SESSION_LIFETIME),
	    .session_max_ms = conf_ms(conf, CONF_SESSION_MAX),
	    .session_limit = conf_int(conf, CONF_SESSION_LIMIT),
	    .max_clients = client_limit(conf),
	    .accounts = setup->accounts,
	    .tls = setup->tls,
	};
}
