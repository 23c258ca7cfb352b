/* source.c - a list that keeps a pool supplied: when it is read, and what a reading is worth. */
#include "source/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "source/internal.h"

#define WATCH_MS 1000
#define RETRY_MS 5000
#define CONNECT_MS 10000

bool source_is_url(const char *place)
{
	return !strncasecmp(place, "http://", 7) || !strncasecmp(place, "https://", 8);
}

int64_t source_age_ms(const struct source *source)
{
	return clock_ms() - source->good_ms;
}

/* --- the end of an attempt ---------------------------------------------------------------------------------------- */

static void schedule(struct source *source)
{
	int64_t wait = WATCH_MS, fifth = source->config.interval_ms / 5;

	if (source_is_url(source->config.place))
		wait = source->config.interval_ms - fifth +
		       (int64_t)arc4random_uniform(
			   (uint32_t)(fifth < INT32_MAX / 2 ? 2 * fifth : INT32_MAX) + 1);
	alarm_set(&source->next, clock_ms() + wait);
}

static void set_grace(struct source *source)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < source->branch_count; i++) {
		int64_t own = supply_due_ms(source->branches[i], source->config.grace_ms);

		due = own < due ? own : due;
	}
	if (due != INT64_MAX)
		alarm_set(&source->grace, due > clock_ms() ? due : clock_ms() + WATCH_MS);
}

static void attempt(struct source *source);

void source_end_attempt(struct source *source)
{
	source_cb *cb = source->cb;

	load_free(source->load);
	source->load = NULL;
	source->is_busy = false;
	source->cb = NULL;
	source->is_first = false;
	schedule(source);
	set_grace(source);
	if (source->is_wanted_again)
		attempt(source);
	if (cb)
		cb(source, source->arg);
}

/* What is wrong is wrong until the place changes. */
void source_fail(struct source *source, const char *why)
{
	source->loaded = source->seen;
	source->is_good = false;
	log_warn("a source cannot be used; the pool stays as it is",
		 LOG_TEXT("source", source->config.name), LOG_TEXT("place", source->shown),
		 LOG_TEXT("error", why), LOG_NUMBER("age_ms", source_age_ms(source)));
	source_end_attempt(source);
}

/* The store's trouble is not the list's: it is read again soon. */
void source_fail_store(struct source *source, int result, const char *error)
{
	source_fail(source, *error ? error : result_word(result));
	source->loaded = (struct file_state){0};
	source->etag[0] = source->modified[0] = '\0';
	alarm_set(&source->next, clock_ms() + RETRY_MS);
}

/* One line for each reason. */
static void report(const struct source *source)
{
	const struct load_summary *summary = load_summary(source->load);

	for (int verdict = VERDICT_HEADER + 1; verdict < VERDICT_COUNT; verdict++) {
		const char *text = summary->first[verdict].text;

		if (summary->counts[verdict])
			log_warn("entries rejected", LOG_TEXT("source", source->config.name),
				 LOG_TEXT("place", source->shown),
				 LOG_TEXT("reason", verdict_word(verdict)),
				 LOG_NUMBER("count", (int64_t)summary->counts[verdict]),
				 LOG_NUMBER("first_line", (int64_t)summary->first[verdict].line),
				 LOG_TEXT("first", text ? text : ""),
				 LOG_TEXT("hint", verdict_hint(verdict)));
	}
}

/* What was read, `r` as load_read() gave it. */
static void take_load(struct source *source, int r)
{
	if (r) {
		source_fail(source, load_error(r));
		return;
	}
	report(source);
	if (source->config.is_strict && load_rejected(source->load)) {
		source_fail(source, "entries were rejected, and on_reject is fail");
		return;
	}
	if (load_count(source->load) == 0) {
		source_fail(source, "there is no usable entry in it");
		return;
	}
	spread_begin(source);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void read_file(struct source *source)
{
	file_look(source->config.place, &source->seen);
	take_load(source,
		  load_read_file(source->load, source->config.place, source->config.max_bytes));
}

/* A file that is being written is read when it has stood still between two looks. One that failed is tried when it
 * changes, one that has gone is told once. */
static void watch_file(struct source *source)
{
	struct file_state now;
	bool is_there = file_look(source->config.place, &now);
	bool has_gone = !is_there && source->seen.inode;

	if (has_gone || (is_there && file_is_same(&now, &source->seen) &&
			 !file_is_same(&now, &source->loaded))) {
		attempt(source);
		return;
	}
	if (is_there && source->is_good && file_is_same(&now, &source->loaded))
		source->good_ms = clock_ms(); /* what was read is what stands there */
	source->seen = now;
	schedule(source);
}

/* --- URLs --------------------------------------------------------------------------------------------------------- */

static void on_fetched(int result, const char *error, const struct fetch_answer *answer, void *arg)
{
	struct source *source = arg;

	source->fetch = NULL;
	if (result) {
		source_fail(source, error);
	} else if (answer->is_unchanged) {
		log_debug("source unchanged", LOG_TEXT("source", source->config.name));
		source->good_ms = clock_ms();
		source_end_attempt(source);
	} else {
		snprintf(source->new_etag, sizeof source->new_etag, "%s", answer->etag);
		snprintf(source->new_modified, sizeof source->new_modified, "%s", answer->modified);
		take_load(source, load_read_answer(source->load, answer, source->config.max_bytes));
	}
	if (answer && answer->fd >= 0)
		close(answer->fd);
}

static void fetch_url(struct source *source)
{
	struct fetch_request request = {
	    .url = source->config.place,
	    .etag = source->etag,
	    .modified = source->modified,
	    .max_bytes = source->config.max_bytes,
	    .timeout_ms = source->config.timeout_ms,
	    .connect_ms = CONNECT_MS,
	};

	if (fetch_start(&source->fetch, source->loop, &request, on_fetched, source))
		source_fail(source, "out of memory");
}

/* --- schedule ----------------------------------------------------------------------------------------------------- */

static void attempt(struct source *source)
{
	source->is_wanted_again = source->is_busy;
	if (source->is_busy)
		return;
	alarm_off(&source->next);
	source->is_busy = true;
	if (load_new(&source->load, &source->config.rules, source->config.format))
		source_fail(source, "out of memory");
	else if (source_is_url(source->config.place))
		fetch_url(source);
	else
		read_file(source);
}

void source_refresh(struct source *source)
{
	source->etag[0] = source->modified[0] = '\0';
	attempt(source);
}

static void on_next(void *arg)
{
	struct source *source = arg;

	if (source->is_busy)
		schedule(source);
	else if (source->is_first || source_is_url(source->config.place))
		attempt(source);
	else
		watch_file(source);
}

static void release_branch(struct source *source);

static void on_released(int result, const char *error, const struct supply_result *done, void *arg)
{
	struct source *source = arg;

	if (result)
		log_warn("members that are gone from a source could not be let go",
			 LOG_TEXT("source", source->config.name),
			 LOG_TEXT("error", *error ? error : result_word(result)));
	else
		log_info("members that are gone have left", LOG_TEXT("source", source->config.name),
			 LOG_TEXT("pool", pool_name(supply_pool(source->branches[source->branch]))),
			 LOG_NUMBER("left", (int64_t)done->left));
	source->branch++;
	release_branch(source);
}

/* One branch after the other, from the one that is next. */
static void release_branch(struct source *source)
{
	while (source->branch < source->branch_count) {
		if (!supply_release(source->branches[source->branch], source->config.grace_ms,
				    on_released, source))
			return;
		source->branch++;
	}
	source_end_attempt(source);
}

static void on_grace(void *arg)
{
	struct source *source = arg;

	if (source->is_busy) {
		alarm_set(&source->grace, clock_ms() + WATCH_MS);
		return;
	}
	source->is_busy = true;
	source->branch = 0;
	release_branch(source);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int source_new(struct source **ret, struct loop *loop, struct store *store, struct pool *pool,
	       const struct source_config *config, source_cb *cb, void *arg)
{
	struct source *source = calloc(1, sizeof *source);

	if (!source)
		return -ENOMEM;
	source->loop = loop;
	source->store = store;
	source->pool = pool;
	source->config = *config;
	source->config.name = strdup(config->name);
	source->config.place = strdup(config->place);
	source->cb = cb;
	source->arg = arg;
	source->is_first = true;
	source->good_ms = clock_ms();
	alarm_init(&source->next, loop, on_next, source);
	alarm_init(&source->grace, loop, on_grace, source);
	if (!source->config.name || !source->config.place ||
	    supply_new(&source->branches[0], loop, pool, config->name, APPLY_COUNTRY, NULL)) {
		source_free(source);
		return -ENOMEM;
	}
	source->branch_count = 1;
	secret_print(source->config.place, source->shown, sizeof source->shown);
	alarm_set(&source->next, clock_ms());
	*ret = source;
	return 0;
}

bool source_end(struct source *source)
{
	if (source->is_busy && !source->fetch)
		return false;
	source_free(source);
	return true;
}

void source_free(struct source *source)
{
	if (!source)
		return;
	fetch_cancel(source->fetch);
	alarm_fini(&source->next);
	alarm_fini(&source->grace);
	for (size_t i = 0; i < source->branch_count; i++) {
		struct pool *pool = supply_pool(source->branches[i]);

		supply_free(source->branches[i]);
		if (pool != source->pool)
			pool_free(pool);
	}
	load_free(source->load);
	free((char *)source->config.name);
	free((char *)source->config.place);
	free(source);
}
