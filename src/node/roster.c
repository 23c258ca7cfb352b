/* roster.c - the keeper's sources, brought in line with the configuration by difference. */
#include "node/roster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/secret.h"

struct listed {
	struct source *source;
	struct source_config config; /* its texts are the two below */
	char name[SOURCE_NAME_MAX];
	char *place;
	bool is_named; /* by the configuration that is being followed, with these settings */
};

/* Places that differ in their credentials only are two sources; what tells them apart is keyed by the pool's salt, as
 * the identifiers of members are. */
static int name_apart(const struct roster *roster, const char *place, char *name)
{
	uint8_t digest[DIGEST_BYTES];
	size_t start, len, used = strlen(name);
	char hex[17];

	if (!source_is_url(place) || !secret_find(place, &start, &len))
		return 0;
	if (digest_hmac(digest, pool_rules(roster->pool)->salt, ENDPOINT_SALT_BYTES, place,
			strlen(place)))
		return -EIO;
	hex_print(digest, 8, hex);
	snprintf(name + used, SOURCE_NAME_MAX - used, "#%s", hex);
	return 0;
}

/* The source at `index` as it is to run. */
static int wanted_at(const struct roster *roster, const struct conf *conf, size_t index,
		     struct source_config *ret, char name[SOURCE_NAME_MAX])
{
	sources_at(conf, index, ret, name);
	ret->rules.allow_private = rules_flag(pool_rules(roster->pool), RULE_ALLOW_PRIVATE);
	ret->is_admitting = !conf_bool(conf, CONF_CHECK);
	return name_apart(roster, ret->place, name);
}

static bool is_same(const struct source_config *a, const struct source_config *b)
{
	return !strcmp(a->place, b->place) && a->format == b->format && a->split == b->split &&
	       a->is_strict == b->is_strict && a->is_admitting == b->is_admitting &&
	       a->interval_ms == b->interval_ms && a->grace_ms == b->grace_ms &&
	       a->timeout_ms == b->timeout_ms && a->max_bytes == b->max_bytes &&
	       a->rules.default_scheme == b->rules.default_scheme &&
	       a->rules.colon_order == b->rules.colon_order &&
	       a->rules.https_means_connect == b->rules.https_means_connect &&
	       a->rules.allow_single_label == b->rules.allow_single_label &&
	       a->rules.allow_private == b->rules.allow_private;
}

static struct listed *find(const struct roster *roster, const char *name)
{
	for (size_t i = 0; i < roster->count; i++)
		if (!strcmp(roster->list[i]->name, name))
			return roster->list[i];
	return NULL;
}

static void listed_free(struct listed *listed)
{
	free(listed->place);
	free(listed);
}

static int mark(struct roster *roster, const struct conf *conf)
{
	for (size_t i = 0; i < roster->count; i++)
		roster->list[i]->is_named = false;
	for (size_t i = 0; i < sources_count(conf); i++) {
		char name[SOURCE_NAME_MAX];
		struct source_config config;
		struct listed *listed;
		int r = wanted_at(roster, conf, i, &config, name);

		if (r)
			return r;
		listed = find(roster, name);
		if (listed && is_same(&config, &listed->config))
			listed->is_named = true;
	}
	return 0;
}

/* What it has named stays in the pool, as it would over a restart without it. */
static int end_unnamed(struct roster *roster)
{
	int r = 0;

	for (size_t i = roster->count; i-- > 0;) {
		struct listed *listed = roster->list[i];

		if (listed->is_named)
			continue;
		if (!source_end(listed->source)) {
			r = -EAGAIN;
			continue;
		}
		log_info("a source has ended", LOG_TEXT("source", listed->name));
		listed_free(listed);
		roster->list[i] = roster->list[--roster->count];
	}
	return r;
}

static int begin(struct roster *roster, const struct source_config *config)
{
	struct listed *listed = calloc(1, sizeof *listed);
	bool is_awaited = roster->on_first && !source_is_url(config->place);
	int r;

	if (!listed)
		return -ENOMEM;
	listed->config = *config;
	snprintf(listed->name, sizeof listed->name, "%s", config->name);
	listed->place = strdup(config->place);
	listed->config.name = listed->name;
	listed->config.place = listed->place;
	r = listed->place
		? source_new(&listed->source, roster->loop, roster->store, roster->pool,
			     &listed->config, is_awaited ? roster->on_first : NULL, roster->arg)
		: -ENOMEM;
	if (r) {
		listed_free(listed);
		return r;
	}
	roster->list[roster->count++] = listed;
	roster->files_awaited += is_awaited;
	return 0;
}

static int begin_new(struct roster *roster, const struct conf *conf)
{
	int r = 0;

	for (size_t i = 0; i < sources_count(conf) && roster->count < SOURCES_MAX && !r; i++) {
		char name[SOURCE_NAME_MAX];
		struct source_config config;

		r = wanted_at(roster, conf, i, &config, name);
		/* One of the same name that has not ended yet goes first. */
		if (!r && !find(roster, name))
			r = begin(roster, &config);
	}
	return r;
}

int roster_follow(struct roster *roster, const struct conf *conf, bool is_refreshing)
{
	int r = mark(roster, conf);
	int again = r ? 0 : end_unnamed(roster);

	for (size_t i = 0; i < roster->count && is_refreshing && !r; i++)
		if (roster->list[i]->is_named)
			source_refresh(roster->list[i]->source);
	if (!r)
		r = begin_new(roster, conf);
	return r ? r : again;
}

int64_t roster_age_ms(const struct roster *roster)
{
	int64_t oldest = 0;

	for (size_t i = 0; i < roster->count; i++) {
		int64_t age = source_age_ms(roster->list[i]->source);

		oldest = age > oldest ? age : oldest;
	}
	return oldest;
}

void roster_fini(struct roster *roster)
{
	for (size_t i = 0; i < roster->count; i++) {
		source_free(roster->list[i]->source);
		listed_free(roster->list[i]);
	}
	roster->count = 0;
}
