/* role_keeper.c - the keeper: supplies the pool from its lists, and does what is to be done from time to time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/demo.h"
#include "base/log.h"
#include "node/heartbeat.h"
#include "node/role.h"
#include "node/service.h"
#include "pool/types.h"
#include "source/load.h"
#include "store/info.h"

#define SWEEP_MS 60000
#define START_MS 15000
#define DEMO_SOURCE "demo"

struct keeper {
	struct service service;
	const struct role_context *context;
	size_t next_list; /* to be loaded */
	struct load *load;
	char source[128];
	struct alarm sweep;
	bool is_serving;
	bool is_supplying;
};

/* Supplying the pool failed: a node that is starting ends, one that serves tries again when the rules are read next. */
static void give_up(struct keeper *keeper)
{
	keeper->is_supplying = false;
	if (!keeper->is_serving)
		service_done(&keeper->service, 1);
}

/* --- sweep -------------------------------------------------------------------------------------------------------- */

static void sweep(void *arg)
{
	struct keeper *keeper = arg;

	heartbeat_prune(keeper->service.store);
	alarm_set(&keeper->sweep, clock_ms() + SWEEP_MS);
}

/* --- the demonstration's members ---------------------------------------------------------------------------------- */

static void demo_items(struct change_item items[DEMO_UPSTREAMS], char ids[DEMO_UPSTREAMS][64])
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;

	for (int i = 0; i < DEMO_UPSTREAMS; i++) {
		snprintf(ids[i], 64, "http://%s:%d", hosts[i], DEMO_UPSTREAM_PORT);
		items[i] = (struct change_item){.id = ids[i]};
	}
}

static int change_demo(struct keeper *keeper, enum change change, change_cb *cb)
{
	struct change_item items[DEMO_UPSTREAMS];
	char ids[DEMO_UPSTREAMS][64];

	demo_items(items, ids);
	return pool_change(keeper->service.pool, change, DEMO_SOURCE, items, DEMO_UPSTREAMS, cb,
			   keeper);
}

/* --- supplying the pool, one step after the other ----------------------------------------------------------------- */

static void load_next(struct keeper *keeper);

static void complain(const char *what, int result, const char *error)
{
	log_error(what, LOG_TEXT("reason", result_word(result)), LOG_TEXT("error", error));
}

/* The name of a source in a member's record: its path, without what the record's syntax uses. */
static void name_source(struct keeper *keeper, const char *path)
{
	size_t at = (size_t)snprintf(keeper->source, sizeof keeper->source, "list:");

	for (; *path && at + 1 < sizeof keeper->source; path++)
		keeper->source[at++] = strchr("\t\n,=", *path) ? '_' : *path;
	keeper->source[at] = '\0';
}

static void on_loaded(int result, const char *error, const struct load_result *done, void *arg)
{
	struct keeper *keeper = arg;
	const uint64_t *placed = done->placed;

	if (result)
		complain("a list could not be applied", result, error);
	else
		log_info(
		    "list loaded", LOG_TEXT("source", keeper->source),
		    LOG_NUMBER("joined", (int64_t)placed[PLACED_JOINED]),
		    LOG_NUMBER("eligible_before", (int64_t)placed[PLACED_ELIGIBLE]),
		    LOG_NUMBER("kept_out", (int64_t)(placed[PLACED_PARKED] + placed[PLACED_LEFT])));
	load_free(keeper->load);
	keeper->load = NULL;
	if (result)
		give_up(keeper);
	else
		load_next(keeper);
}

static void report_rejects(const char *path, const struct load_summary *summary)
{
	for (int verdict = VERDICT_HEADER + 1; verdict < VERDICT_COUNT; verdict++)
		if (summary->counts[verdict])
			log_warn("entries rejected", LOG_TEXT("list", path),
				 LOG_TEXT("reason", verdict_word(verdict)),
				 LOG_NUMBER("count", (int64_t)summary->counts[verdict]),
				 LOG_NUMBER("first_line", (int64_t)summary->first[verdict].line),
				 LOG_TEXT("first", summary->first[verdict].text
						       ? summary->first[verdict].text
						       : ""),
				 LOG_TEXT("hint", verdict_hint(verdict)));
}

static int read_list(struct keeper *keeper, const char *path)
{
	const struct conf *conf = keeper->service.conf;
	struct endpoint_rules rules = {
	    .default_scheme = (enum scheme)conf_enum(conf, CONF_DEFAULT_SCHEME),
	    .colon_order = (enum colon_order)conf_enum(conf, CONF_COLON_ORDER),
	    .allow_private = rules_flag(pool_rules(keeper->service.pool), RULE_ALLOW_PRIVATE),
	    .allow_single_label = conf_bool(conf, CONF_ALLOW_SINGLE_LABEL),
	};
	int r = load_new(&keeper->load, &rules);

	if (!r)
		r = load_read_file(keeper->load, path);
	return r;
}

static void serve(struct keeper *keeper)
{
	keeper->is_serving = true;
	role_is_ready(keeper->context);
	sweep(keeper);
}

static void load_next(struct keeper *keeper)
{
	const struct conf *conf = keeper->service.conf;
	const char *path;
	int r;

	while (keeper->next_list < conf_count(conf, CONF_LIST)) {
		path = conf_at(conf, CONF_LIST, keeper->next_list++);
		r = read_list(keeper, path);
		if (r) {
			log_error("a list cannot be read", LOG_TEXT("list", path),
				  LOG_TEXT("error", strerror(-r)));
			if (!keeper->is_serving) {
				give_up(keeper);
				return;
			}
			continue;
		}
		report_rejects(path, load_summary(keeper->load));
		name_source(keeper, path);
		if (load_count(keeper->load) &&
		    !load_apply(keeper->load, keeper->service.pool, CHANGE_ADD, keeper->source,
				on_loaded, keeper))
			return;
		log_warn("a list has no usable entry; the pool stays as it is",
			 LOG_TEXT("list", path));
		load_free(keeper->load);
		keeper->load = NULL;
	}
	keeper->is_supplying = false;
	if (!keeper->is_serving)
		serve(keeper);
}

static void on_demo(int result, const char *error, const enum placed *placed, size_t count,
		    void *arg)
{
	struct keeper *keeper = arg;

	(void)placed;
	(void)count;
	if (result) {
		complain("the demonstration's members could not be changed", result, error);
		give_up(keeper);
		return;
	}
	load_next(keeper);
}

/* Another node's demonstration, whose members stay. */
static bool is_demo_running(void)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;
	struct net_place place;
	char text[64];
	int fd = -EINVAL;

	snprintf(text, sizeof text, "%s:%d", hosts[0], DEMO_UPSTREAM_PORT);
	if (!net_place_parse(&place, text))
		fd = net_listen(&place);
	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

/* Without --demo, members that a killed demonstration has left go. */
static void on_rules(int result, const char *error, void *arg)
{
	struct keeper *keeper = arg;
	bool is_demo = conf_bool(keeper->service.conf, CONF_DEMO);

	if (result) {
		complain("the pool's rules could not be written", result, error);
		give_up(keeper);
	} else if (!is_demo && is_demo_running()) {
		load_next(keeper);
	} else if (change_demo(keeper, is_demo ? CHANGE_ADD : CHANGE_REMOVE, on_demo)) {
		give_up(keeper);
	}
}

static void write_rules(int result, const char *error, void *arg)
{
	struct keeper *keeper = arg;
	struct word words[] = {WORD("allow_private"), WORD("1")};
	bool allow = conf_bool(keeper->service.conf, CONF_ALLOW_PRIVATE);

	keeper->next_list = 0;
	if (result == REASON_STORE_REFUSED && strncmp(error, "NOPERM", 6)) {
		fprintf(stderr, "fairlead: %s; rename that key, or choose another --pool\n", error);
		give_up(keeper);
	} else if (pool_write_rules(keeper->service.pool, words, allow ? 2 : 0, on_rules, keeper)) {
		give_up(keeper);
	}
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void on_gone(int result, const char *error, const enum placed *placed, size_t count,
		    void *arg)
{
	struct keeper *keeper = arg;

	(void)result;
	(void)error;
	(void)placed;
	(void)count;
	service_done(&keeper->service, 0);
}

static void stop(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;

	if (!conf_bool(service->conf, CONF_DEMO) || !store_is_ready(service->store) ||
	    change_demo(keeper, CHANGE_REMOVE, on_gone))
		service_done(service, 0);
}

static void reload(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;

	if (!keeper->is_serving || keeper->is_supplying)
		return;
	log_info("lists are read again");
	keeper->is_supplying = true;
	keeper->next_list = 0;
	load_next(keeper);
}

/* A pool that was founded has a salt. Without one the server has lost all: the pool is supplied again. */
static void check_pool(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;

	if (!keeper->is_serving || keeper->is_supplying || pool_rules(service->pool)->has_salt)
		return;
	log_warn("the pool is gone from the store and is supplied again",
		 LOG_TEXT("pool", pool_name(service->pool)));
	keeper->is_supplying = true;
	write_rules(0, "", keeper);
}

/* A server that may drop pools is no place for one; what else is wrong is said, and lived with. */
static void on_info(int result, const struct reply *reply, void *arg)
{
	struct info_finding findings[INFO_FINDINGS];
	struct keeper *keeper = arg;

	if (!result)
		info_judge(reply_text(reply, NULL), findings);
	for (int i = 0; i < INFO_FINDINGS && !result; i++) {
		if (findings[i].finding == FINDING_ERROR &&
		    strcmp(findings[i].check, "persistence")) {
			fprintf(stderr, "fairlead: the store is not fit: %s\n", findings[i].detail);
			give_up(keeper);
			return;
		}
		if (findings[i].finding != FINDING_OK)
			log_warn("the store", LOG_TEXT("check", findings[i].check),
				 LOG_TEXT("detail", findings[i].detail));
	}
	if (pool_check_types(keeper->service.pool, write_rules, keeper))
		give_up(keeper);
}

static int judge_server(struct keeper *keeper)
{
	struct word words[] = {WORD("INFO")};

	return store_command(keeper->service.store, STORE_IDEMPOTENT, words, 1, on_info, keeper);
}

/* Whoever starts a node wants to know when the store does not come. */
static int wait_for_store(struct keeper *keeper)
{
	bool is_final;
	int r = store_wait_ready(keeper->service.store, START_MS);

	if (!r)
		return 0;
	fprintf(stderr, "fairlead: the store does not answer: %s\n",
		store_trouble(keeper->service.store, &is_final));
	return 1;
}

int role_keeper(const struct role_context *context)
{
	struct keeper keeper = {
	    .context = context,
	    .service = {.stop = stop, .reload = reload, .rules_read = check_pool}};
	int r = service_start(&keeper.service, context, "keeper", true);

	if (!r)
		r = wait_for_store(&keeper);
	if (!r) {
		alarm_init(&keeper.sweep, keeper.service.loop, sweep, &keeper);
		r = judge_server(&keeper) ? 1 : service_run(&keeper.service);
		alarm_fini(&keeper.sweep);
	}
	load_free(keeper.load);
	service_fini(&keeper.service);
	return r;
}
