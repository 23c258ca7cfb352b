/* checks.c - the checker of a keeper.
 *
 * Which pools there are stands in the rules of the first (docs/operations.md, "Split"), so that keepers that do not run the
 * sources check them, too. One pool after the other is asked for its rules, in turn. */
#include "node/checks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/tls.h"
#include "check/schedule.h"
#include "node/setup.h"
#include "pool/branches.h"
#include "pool/sweep.h"

#define POOLS_MAX ((size_t)1024)
#define ROUND_MS 5000
#define STEP_MIN_MS 100

/* A pool and who checks it. */
struct branch {
	struct checks *checks;
	struct pool *pool;         /* our own but that of the first */
	struct schedule *schedule; /* NULL: it is not checked, or its rules were not read yet */
	struct sweep *sweep;       /* NULL: of the first, which the keeper sweeps */
};

struct checks {
	struct loop *loop;
	struct store *store;
	struct branch branches[POOLS_MAX];
	size_t count;
	size_t next;  /* to be asked for its rules */
	size_t first; /* to be woken when there is room */
	struct alarm step;
	bool is_running;
	struct crowd *crowd;
	struct tls *tls;
	struct countries *countries;
	struct schedule_config config;
};

/* --- settings ----------------------------------------------------------------------------------------------------- */

static int open_countries(const struct conf *conf, struct countries **ret, char *error, size_t size)
{
	const char *path = conf_text(conf, CONF_COUNTRY_DATABASE);
	char why[300] = "out of memory";
	int r;

	*ret = NULL;
	if (!*path)
		return 0;
	r = countries_open(ret, path, why, sizeof why);
	if (r)
		snprintf(error, size, "--country-database: %s", why);
	return r;
}

int checks_check(const struct conf *conf, char *error, size_t size)
{
	struct countries *countries;
	struct tls *tls = NULL;
	int r = setup_trust(conf, &tls, error, size);

	tls_free(tls);
	if (!r)
		r = open_countries(conf, &countries, error, size);
	if (!r)
		countries_close(countries);
	return r;
}

void checks_print(const struct pool *pool, const struct conf *conf, char *buffer, size_t size)
{
	const char *target = pool_rules(pool)->value[RULE_CHECK_TARGET];

	if (!conf_bool(conf, CONF_CHECK))
		snprintf(buffer, size, "none (--no-check)");
	else if (*target)
		snprintf(buffer, size, "%s", target);
	else
		snprintf(buffer, size, "connection only; set check_target for more");
}

/* --- the pools ---------------------------------------------------------------------------------------------------- */

static void start(struct checks *checks, struct branch *branch)
{
	if (checks->is_running && !branch->schedule &&
	    schedule_new(&branch->schedule, checks->loop, branch->pool, &checks->config))
		log_error("no memory to check a pool", LOG_TEXT("pool", pool_name(branch->pool)));
}

static bool has_pool(const struct checks *checks, const char *name)
{
	for (size_t i = 0; i < checks->count; i++)
		if (!strcmp(pool_name(checks->branches[i].pool), name))
			return true;
	return false;
}

/* Its check begins when its rules have been read. */
static void add_pool(struct checks *checks, const char *name)
{
	char error[200] = "there are too many";
	struct branch *branch = &checks->branches[checks->count];

	if (has_pool(checks, name))
		return;
	if (checks->count == POOLS_MAX ||
	    pool_new(&branch->pool, checks->loop, checks->store, name, error, sizeof error)) {
		log_warn("a pool is not checked", LOG_TEXT("pool", name), LOG_TEXT("error", error));
		return;
	}
	if (pool_sweep_new(&branch->sweep, checks->loop, branch->pool))
		log_error("no memory to sweep a pool", LOG_TEXT("pool", name));
	branch->checks = checks;
	checks->count++;
}

static void on_tag(const char *tag, size_t len, void *arg)
{
	struct checks *checks = arg;
	char name[KEY_NAME_MAX + 300];

	snprintf(name, sizeof name, "%s.%.*s", pool_name(checks->branches[0].pool),
		 (int)(len < 255 ? len : 255), tag);
	add_pool(checks, name);
}

static void step_soon(struct checks *checks)
{
	int64_t wait = checks->count ? ROUND_MS / (int64_t)checks->count : ROUND_MS;

	if (checks->is_running)
		alarm_set(&checks->step, clock_ms() + (wait > STEP_MIN_MS ? wait : STEP_MIN_MS));
}

static void on_found(int result, const struct reply *reply, void *arg)
{
	struct checks *checks = arg;
	size_t before = checks->count;

	if (!result)
		branches_each(reply, on_tag, checks);
	if (checks->count > before)
		alarm_set(&checks->step, clock_ms());
	else
		step_soon(checks);
}

static void on_rules(int result, const char *error, void *arg)
{
	struct branch *branch = arg;

	(void)error;
	if (!result)
		start(branch->checks, branch);
	step_soon(branch->checks);
}

/* The rules of the first are read by the keeper itself; here they are looked through for new pools. */
static void step(void *arg)
{
	struct checks *checks = arg;
	struct branch *branch;

	checks->next = (checks->next + 1) % checks->count;
	branch = &checks->branches[checks->next];
	if (checks->next ? pool_read_rules(branch->pool, on_rules, branch)
			 : branches_ask(branch->pool, on_found, checks))
		step_soon(checks);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* Whoever was woken first the last time comes last. */
static void on_room(void *arg)
{
	struct checks *checks = arg;

	checks->first = (checks->first + 1) % checks->count;
	for (size_t i = 0; i < checks->count; i++) {
		struct branch *branch = &checks->branches[(checks->first + i) % checks->count];

		if (branch->schedule)
			schedule_wake(branch->schedule);
	}
}

int checks_new(struct checks **ret, struct loop *loop, struct store *store, struct pool *pool)
{
	struct checks *checks = calloc(1, sizeof *checks);

	if (!checks)
		return -ENOMEM;
	checks->loop = loop;
	checks->store = store;
	checks->branches[0] = (struct branch){.checks = checks, .pool = pool};
	checks->count = 1;
	alarm_init(&checks->step, loop, step, checks);
	*ret = checks;
	return 0;
}

int checks_begin(struct checks *checks, const struct conf *conf, char *error, size_t size)
{
	int r = 0;

	checks_end(checks);
	if (!conf_bool(conf, CONF_CHECK))
		return 0;
	r = setup_trust(conf, &checks->tls, error, size);
	if (!r)
		r = open_countries(conf, &checks->countries, error, size);
	if (!r && crowd_new(&checks->crowd, checks->loop,
			    (size_t)conf_int(conf, CONF_CHECK_CONCURRENCY))) {
		snprintf(error, size, "out of memory");
		r = -ENOMEM;
	}
	if (r) {
		checks_end(checks);
		return r;
	}
	checks->is_running = true;
	checks->config =
	    (struct schedule_config){.crowd = checks->crowd,
				     .tls = checks->tls,
				     .countries = checks->countries,
				     .allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE),
				     .is_demo = conf_bool(conf, CONF_DEMO)};
	crowd_on_room(checks->crowd, on_room, checks);
	start(checks, &checks->branches[0]);
	for (size_t i = 1; i < checks->count; i++)
		start(checks, &checks->branches[i]);
	checks->next = checks->count - 1;
	alarm_set(&checks->step, clock_ms());
	return 0;
}

void checks_end(struct checks *checks)
{
	if (!checks)
		return;
	checks->is_running = false;
	alarm_off(&checks->step);
	crowd_free(checks->crowd);
	for (size_t i = 0; i < checks->count; i++) {
		schedule_free(checks->branches[i].schedule);
		checks->branches[i].schedule = NULL;
	}
	countries_close(checks->countries);
	tls_free(checks->tls);
	checks->crowd = NULL;
	checks->countries = NULL;
	checks->tls = NULL;
}

void checks_free(struct checks *checks)
{
	if (!checks)
		return;
	alarm_fini(&checks->step);
	for (size_t i = 1; i < checks->count; i++) {
		pool_sweep_free(checks->branches[i].sweep);
		pool_free(checks->branches[i].pool);
	}
	free(checks);
}

int64_t checks_age_ms(const struct checks *checks)
{
	int64_t oldest = 0;

	for (size_t i = 0; i < checks->count; i++) {
		const struct schedule *schedule = checks->branches[i].schedule;
		int64_t age = schedule ? schedule_age_ms(schedule) : -1;

		oldest = age > oldest ? age : oldest;
	}
	return oldest;
}
