/* role_keeper.c - the keeper: supplies the pool from its lists, checks its members, and does what is to be done from time to
 * time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/demo.h"
#include "base/log.h"
#include "base/metric.h"
#include "node/checks.h"
#include "node/heartbeat.h"
#include "node/queues.h"
#include "node/role.h"
#include "node/roster.h"
#include "node/service.h"
#include "pool/sweep.h"
#include "pool/types.h"
#include "source/source.h"
#include "store/info.h"

#define SWEEP_MS 60000
#define AGE_MS 1000
#define START_MS 15000
#define LOOK_MS 100
#define FOLLOW_MS 100
#define DEMO_SOURCE "demo"

struct keeper {
	struct service service;
	const struct role_context *context;
	struct roster roster;
	struct checks *checks;
	struct sweep *janitor;
	struct queue_care *queue;
	struct alarm sweep, age, follow;
	bool is_serving;
	bool is_supplying;
	bool is_reload_wanted; /* asked for while the pool is being founded */
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

static void complain(const char *what, int result, const char *error)
{
	log_error(what, LOG_TEXT("reason", result_word(result)), LOG_TEXT("error", error));
}

static void serve(struct keeper *keeper)
{
	char saying[ROLE_SAYING_MAX];

	keeper->is_serving = true;
	keeper->roster.on_first = NULL;
	checks_print(keeper->service.pool, keeper->service.conf, saying, sizeof saying);
	role_is_ready(keeper->context, saying);
	sweep(keeper);
	if (keeper->is_reload_wanted)
		alarm_set(&keeper->follow, clock_ms());
}

/* Files are read before the node serves; what comes over the network may take its time. */
static void on_first_attempt(struct source *source, void *arg)
{
	struct keeper *keeper = arg;

	(void)source;
	if (--keeper->roster.files_awaited == 0)
		serve(keeper);
}

/* Brings the sources in line with the configuration; one that is at work is asked again soon. */
static void follow(void *arg)
{
	struct keeper *keeper = arg;
	int r = roster_follow(&keeper->roster, keeper->service.conf, keeper->is_reload_wanted);

	keeper->is_reload_wanted = false;
	if (r == -EAGAIN) {
		alarm_set(&keeper->follow, clock_ms() + FOLLOW_MS);
	} else if (r) {
		complain("a source cannot be watched", r, "");
		give_up(keeper);
	}
}

/* Settings that cannot be used were refused before: what is left is want of memory or a file that has gone meanwhile. */
static void begin_checks(struct keeper *keeper)
{
	char error[512];

	if (checks_begin(keeper->checks, keeper->service.conf, error, sizeof error))
		log_error("nobody is checked", LOG_TEXT("error", error));
}

/* The pool is founded: its sources begin, or read all once more. */
static void supply(struct keeper *keeper)
{
	keeper->is_supplying = false;
	begin_checks(keeper);
	keeper->is_reload_wanted = true;
	follow(keeper);
	if (!keeper->is_serving && !keeper->roster.files_awaited)
		serve(keeper);
}

static void tell_age(void *arg)
{
	struct keeper *keeper = arg;

	metric_set(METRIC_SOURCE_AGE, roster_age_ms(&keeper->roster));
	metric_set(METRIC_CHECK_AGE, checks_age_ms(keeper->checks));
	alarm_set(&keeper->age, clock_ms() + AGE_MS);
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
	supply(keeper);
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
		supply(keeper);
	} else if (change_demo(keeper, is_demo ? CHANGE_ADD : CHANGE_REMOVE, on_demo)) {
		give_up(keeper);
	}
}

static void write_rules(int result, const char *error, void *arg)
{
	struct keeper *keeper = arg;
	struct word words[] = {WORD("allow_private"), WORD("1")};
	bool allow = conf_bool(keeper->service.conf, CONF_ALLOW_PRIVATE);

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

/* A successor supplies the same pool, and its demonstration has the same members. */
static void stop(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;

	checks_end(keeper->checks);
	if (service->is_handover || !conf_bool(service->conf, CONF_DEMO) ||
	    !store_is_ready(service->store) || change_demo(keeper, CHANGE_REMOVE, on_gone))
		service_done(service, 0);
}

static void reload(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;
	bool allows = rules_flag(pool_rules(service->pool), RULE_ALLOW_PRIVATE);

	keeper->is_reload_wanted = true;
	if (!keeper->is_serving || keeper->is_supplying)
		return;
	log_info("lists are read again");
	/* The rule is the pool's: a setting gives it and never takes it back. */
	if (conf_bool(service->conf, CONF_ALLOW_PRIVATE) && !allows) {
		keeper->is_supplying = true;
		write_rules(0, "", keeper);
	} else {
		supply(keeper);
	}
}

/* A pool that was founded has a salt. Without one the server has lost all: the pool is supplied again. */
static void check_pool(struct service *service)
{
	struct keeper *keeper = (struct keeper *)service;

	if (!keeper->is_serving || keeper->is_supplying)
		return;
	if (pool_rules(service->pool)->has_salt) {
		/* The store was away when it was asked for. */
		if (keeper->is_reload_wanted)
			reload(service);
		return;
	}
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

/* Whoever starts a node wants to know when the store does not come; whoever ends it does not wait for that. */
static int wait_for_store(struct keeper *keeper)
{
	int64_t deadline = clock_ms() + START_MS;
	bool is_final;
	int r;

	do
		r = store_wait_ready(keeper->service.store, LOOK_MS);
	while (r == REASON_STORE_NOT_DONE && !keeper->service.is_stopping && clock_ms() < deadline);
	if (!r || keeper->service.is_stopping)
		return 0;
	fprintf(stderr, "fairlead: the store does not answer: %s\n",
		store_trouble(keeper->service.store, &is_final));
	return 1;
}

static int check_conf(const struct conf *conf, char *error, size_t size)
{
	int r = sources_check(conf, error, size);

	r = r ? r : queues_check(conf, error, size);
	return r ? r : checks_check(conf, error, size);
}

static int care_for_queue(struct keeper *keeper)
{
	char error[512];

	if (!queue_care_new(&keeper->queue, keeper->service.loop, keeper->service.store,
			    keeper->service.conf, error, sizeof error))
		return 0;
	fprintf(stderr, "fairlead: %s\n", error);
	return 1;
}

/* Whoever waits for answers of the store is ended before it, and freed behind it. */
static void finish(struct keeper *keeper)
{
	checks_end(keeper->checks);
	service_end_store(&keeper->service);
	roster_fini(&keeper->roster);
	checks_free(keeper->checks);
	pool_sweep_free(keeper->janitor);
	queue_care_free(keeper->queue);
	service_fini(&keeper->service);
}

static int begin(struct keeper *keeper)
{
	struct service *service = &keeper->service;

	if (checks_new(&keeper->checks, service->loop, service->store, service->pool) ||
	    pool_sweep_new(&keeper->janitor, service->loop, service->pool))
		return 1;
	return care_for_queue(keeper);
}

static int work(struct keeper *keeper)
{
	struct service *service = &keeper->service;
	int r;

	alarm_init(&keeper->sweep, service->loop, sweep, keeper);
	alarm_init(&keeper->age, service->loop, tell_age, keeper);
	alarm_init(&keeper->follow, service->loop, follow, keeper);
	keeper->roster = (struct roster){.loop = service->loop,
					 .store = service->store,
					 .pool = service->pool,
					 .on_first = on_first_attempt,
					 .arg = keeper};
	tell_age(keeper);
	r = judge_server(keeper) ? 1 : service_run(service);
	alarm_fini(&keeper->sweep);
	alarm_fini(&keeper->age);
	alarm_fini(&keeper->follow);
	return r;
}

int role_keeper(const struct role_context *context)
{
	static struct keeper keeper;
	keeper = (struct keeper){
	    .context = context,
	    .service = {
		.stop = stop, .check = check_conf, .reload = reload, .rules_read = check_pool}};
	int r = service_start(&keeper.service, context, "keeper", true);

	if (!r)
		r = wait_for_store(&keeper);
	if (!r && !keeper.service.is_stopping)
		r = begin(&keeper);
	if (!r && !keeper.service.is_stopping)
		r = work(&keeper);
	finish(&keeper);
	return r;
}
