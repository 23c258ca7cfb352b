/* result.c - results on their way: gathered in a turn, written at its end, pushed to a list, then answered.
 *
 * A group is what was added in one turn. One group is being written at a time; any number may wait for the store. */
#include "worker/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/log.h"
#include "worker/body_file.h"
#include "worker/result_line.h"
#include "worker/sink.h"
#include "worker/warc.h"

/* A line is at most a body (config.def: 1 GiB) in which each byte is escaped by six, and its headers. */
#define GROUP_BYTES_MAX ((size_t)8 << 30)
#define AGAIN_MS 5        /* a slow reader, or another worker that writes */
#define COMPLAIN_MS 10000 /* how long that lasts before it is told */
#define PUSH_LINES ((size_t)1000)
#define PUSH_BYTES ((size_t)8 << 20)

struct added {
	size_t end; /* of its line among the group's */
	results_cb *cb;
	void *arg;
};

struct group {
	struct results *results; /* NULL: they have ended */
	TAILQ_ENTRY(group) link; /* while it waits for the store */
	struct buffer lines, warc;
	struct added *added;
	size_t count, size;
	bool is_warc_done;
	size_t pushes; /* not answered yet */
	int result;
};

struct results {
	struct loop *loop;
	struct store *store;
	struct turn_hook hook;
	struct alarm alarm;
	struct sink lines, warc;
	int body_dir; /* -1: none */
	char *list;   /* NULL: none */
	struct group *gathering, *writing;
	TAILQ_HEAD(, group) pushing;
	int64_t waiting_since_ms; /* 0: writing does not wait */
	bool has_complained;
};

static void group_free(struct group *group)
{
	if (!group)
		return;
	buffer_fini(&group->lines);
	buffer_fini(&group->warc);
	free(group->added);
	free(group);
}

/* The one end of a group. */
static void group_end(struct group *group, int result)
{
	for (size_t i = 0; i < group->count; i++)
		group->added[i].cb(result, group->added[i].arg);
	group_free(group);
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

static void on_pushed(int result, const struct reply *reply, void *arg)
{
	struct group *group = arg;

	if (result > 0 && reply_kind(reply) == REPLY_ERROR && group->results)
		log_warn("results could not be pushed", LOG_TEXT("error", reply_text(reply, NULL)));
	if (result && !group->result)
		group->result = result;
	if (--group->pushes)
		return;
	if (!group->results) {
		group_free(group);
		return;
	}
	TAILQ_REMOVE(&group->results->pushing, group, link);
	group_end(group, group->result);
}

/* A run of lines that begins with the `*from`th, into at most PUSH_LINES words: how many. */
static size_t take_lines(const struct group *group, size_t *from, struct word *words)
{
	size_t begin = *from ? group->added[*from - 1].end : 0, bytes = 0, n = 0;

	for (; n < PUSH_LINES && *from < group->count && bytes < PUSH_BYTES; n++, (*from)++) {
		size_t end = group->added[*from].end;

		words[n] = (struct word){buffer_at(&group->lines) + begin, end - begin - 1};
		bytes += end - begin;
		begin = end;
	}
	return n;
}

/* LPUSH, as everywhere here: whoever takes by BRPOP gets the oldest. Not idempotent: an answer that is lost is told,
 * and the task comes again. */
static int push(struct results *results, struct group *group)
{
	struct word words[PUSH_LINES + 2] = {WORD("LPUSH"), WORD(results->list)};
	size_t from = 0;
	int r = 0;

	while (!r && from < group->count) {
		size_t n = take_lines(group, &from, words + 2);

		r = store_command(results->store, 0, words, n + 2, on_pushed, group);
		group->pushes += !r;
	}
	if (r && !group->pushes)
		return r;
	group->result = r;
	TAILQ_INSERT_TAIL(&results->pushing, group, link);
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static int write_group(struct results *results, struct group *group)
{
	int r = 0;

	if (!group->is_warc_done)
		r = sink_write(&results->warc, buffer_at(&group->warc), buffer_len(&group->warc));
	group->is_warc_done = !r;
	if (!r && buffer_len(&group->lines))
		r = sink_write(&results->lines, buffer_at(&group->lines),
			       buffer_len(&group->lines));
	return r;
}

static void wait_a_little(struct results *results)
{
	int64_t now = clock_ms();

	if (!results->waiting_since_ms)
		results->waiting_since_ms = now;
	if (!results->has_complained && now - results->waiting_since_ms >= COMPLAIN_MS) {
		log_warn("results wait: their file is locked, or nobody reads them");
		results->has_complained = true;
	}
	alarm_set(&results->alarm, now + AGAIN_MS);
}

static void run(void *arg)
{
	struct results *results = arg;
	struct group *group = results->writing;
	int r;

	if (!group) {
		group = results->gathering;
		if (!group || !group->count)
			return;
		results->writing = group;
		results->gathering = NULL;
	}
	r = write_group(results, group);
	if (r == -EAGAIN) {
		wait_a_little(results);
		return;
	}
	results->writing = NULL;
	results->waiting_since_ms = 0;
	results->has_complained = false;
	if (results->gathering)
		loop_again(results->loop);
	if (!r && results->list)
		r = push(results, group);
	if (r || !results->list)
		group_end(group, r);
}

/* --- adding ------------------------------------------------------------------------------------------------------- */

/* Room for one more, so that nothing fails behind it. */
static struct group *gather(struct results *results)
{
	struct group *group = results->gathering;
	struct added *added;
	size_t size;

	if (!group) {
		group = calloc(1, sizeof *group);
		if (!group)
			return NULL;
		group->results = results;
		buffer_init(&group->lines, GROUP_BYTES_MAX);
		buffer_init(&group->warc, GROUP_BYTES_MAX);
		results->gathering = group;
	}
	if (group->count == group->size) {
		size = group->size ? 2 * group->size : 16;
		added = realloc(group->added, size * sizeof *added);
		if (!added)
			return NULL;
		group->added = added;
		group->size = size;
	}
	return group;
}

static bool has_body(const struct carried *carried)
{
	return carried && carried->answer && carried->answer->status;
}

int results_add(struct results *results, const struct claim *claim, const char *level,
		const struct task *task, const struct carried *carried, enum outcome outcome,
		results_cb *cb, void *arg)
{
	struct group *group = gather(results);
	struct result_facts facts = {claim, level, task, carried, outcome, NULL};
	char name[BODY_NAME_SIZE];
	size_t lines, warc;
	int r = group ? 0 : -ENOMEM;

	if (!r && results->body_dir >= 0 && has_body(carried)) {
		r = body_file_write(results->body_dir, carried->answer->body, carried->answer->len,
				    name);
		facts.body_file = name;
	}
	if (r)
		return r;
	lines = group->lines.end;
	warc = group->warc.end;
	r = result_line_add(&group->lines, &facts);
	if (!r && results->warc.fd >= 0 && task && has_body(carried))
		r = warc_add(&group->warc, task, carried);
	if (r) {
		group->lines.end = lines;
		group->warc.end = warc;
		return r;
	}
	group->added[group->count++] = (struct added){buffer_len(&group->lines), cb, arg};
	loop_again(results->loop);
	return 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int fail(int result, const char *what, const char *path, char *error, size_t size)
{
	snprintf(error, size, "%s '%s': %s", what, path, result_word(result));
	return result;
}

static int open_files(struct results *results, const struct results_config *config, char *error,
		      size_t size)
{
	int r = sink_open(&results->lines, config->path);

	if (r)
		return fail(r, "results cannot be written to", config->path, error, size);
	if (config->body_dir)
		results->body_dir = open(config->body_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (config->body_dir && results->body_dir < 0)
		return fail(-errno, "bodies cannot be written to", config->body_dir, error, size);
	if (config->warc)
		r = warc_open(&results->warc, config->warc);
	return r ? fail(r, "the archive cannot be written to", config->warc, error, size) : 0;
}

int results_new(struct results **ret, struct loop *loop, struct store *store,
		const struct results_config *config, char *error, size_t size)
{
	struct results *results = calloc(1, sizeof *results);
	int r = results ? 0 : -ENOMEM;

	if (r)
		return fail(r, "results", "", error, size);
	*results = (struct results){.loop = loop,
				    .store = store,
				    .lines = {.fd = -1},
				    .warc = {.fd = -1},
				    .body_dir = -1,
				    .hook = {run, results, {0}}};
	TAILQ_INIT(&results->pushing);
	alarm_init(&results->alarm, loop, run, results);
	loop_hook(loop, &results->hook);
	r = open_files(results, config, error, size);
	if (!r && config->list) {
		results->list = strdup(config->list);
		r = results->list ? 0 : fail(-ENOMEM, "results", "", error, size);
	}
	if (r)
		results_free(results);
	else
		*ret = results;
	return r;
}

void results_free(struct results *results)
{
	struct group *group;

	if (!results)
		return;
	loop_unhook(results->loop, &results->hook);
	alarm_fini(&results->alarm);
	TAILQ_FOREACH (group, &results->pushing, link)
		group->results = NULL;
	group_free(results->writing);
	group_free(results->gathering);
	sink_close(&results->lines);
	sink_close(&results->warc);
	if (results->body_dir >= 0)
		close(results->body_dir);
	free(results->list);
	free(results);
}
