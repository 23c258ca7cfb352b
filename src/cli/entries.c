/* entries.c - tasks and dead letters as they stand. */
#include "cli/entries.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/payload.h"
#include "cli/queue_session.h"

/* Of a payload in a table: enough to know it by. */
#define SHOWN ((size_t)100)

struct showing {
	struct session *session;
	bool is_raw, is_json;
	size_t count;
	struct output output; /* of the table */
};

static const struct column columns[] = {{"where"}, {"level"},  {"id"}, {"failures"},
					{"lost"},  {"reason"}, {"at"}, {"payload"}};

/* As people and programs read it; "" for none. */
static const char *time_text(int64_t ms, char buffer[static 32])
{
	*buffer = '\0';
	if (ms > 0)
		clock_format(ms, buffer, 32);
	return buffer;
}

static void print_json(const struct queue_entry *entry)
{
	char at[32];
	json_t *object =
	    json_pack("{s:s, s:s, s:I, s:I, s:I}", "where", entry->where, "level", entry->level,
		      "failures", (json_int_t)entry->failures, "lost", (json_int_t)entry->lost,
		      "released", (json_int_t)entry->released);
	int r = object ? 0 : -ENOMEM;

	/* A raw task in its list has no name; only a dead letter has a reason. */
	if (!r && *entry->id)
		r = json_object_set_new(object, "id", json_string(entry->id));
	if (!r && *entry->reason)
		r = json_object_set_new(object, "reason", json_string(entry->reason));
	if (!r && entry->at_ms > 0)
		r = json_object_set_new(object, "at", json_string(time_text(entry->at_ms, at)));
	if (!r)
		r = payload_json(object, entry->payload);
	if (r) {
		json_decref(object);
		object = NULL;
	}
	payload_print_json(stdout, object);
}

static struct cell text_or_none(const char *text)
{
	return *text ? CELL_TEXT(text) : CELL_NONE;
}

static void print_row(struct showing *showing, const struct queue_entry *entry)
{
	char *payload = payload_text(entry->payload, SHOWN), at[32];

	if (!payload) {
		output_note_error(-ENOMEM);
		return;
	}
	output_row(&showing->output,
		   (struct cell[]){CELL_TEXT(entry->where), CELL_TEXT(entry->level),
				   text_or_none(entry->id), CELL_NUMBER(entry->failures),
				   CELL_NUMBER(entry->lost), text_or_none(entry->reason),
				   text_or_none(time_text(entry->at_ms, at)), CELL_TEXT(payload)});
	free(payload);
}

static void on_entry(int result, const char *error, const struct queue_entry *entry, void *arg)
{
	struct showing *showing = arg;

	if (!entry) {
		session_answered(showing->session, result, error);
		return;
	}
	showing->count++;
	if (showing->is_raw) {
		fwrite(entry->payload.at, 1, entry->payload.len, stdout);
		putchar('\n');
	} else if (showing->is_json) {
		print_json(entry);
	} else {
		print_row(showing, entry);
	}
}

int entries_show(struct session *session, enum queue_place place, const char *level)
{
	const struct conf *conf = &session->cli->conf;
	struct showing showing = {
	    .session = session,
	    .is_raw = conf_bool(conf, CONF_RAW),
	    .is_json = conf_bool(conf, CONF_JSON),
	};
	bool is_table = !showing.is_raw && !showing.is_json;
	int r;

	if (showing.is_raw && showing.is_json)
		return cli_usage(session->cli, "--raw and --json exclude each other");
	if (is_table)
		output_begin(&showing.output, stdout, OUTPUT_TABLE, columns,
			     sizeof columns / sizeof *columns);
	r = queue_session_finish(session,
				 queue_peek(session->queue, place, level,
					    (size_t)conf_int(conf, CONF_SHOW), on_entry, &showing));
	if (is_table)
		output_finish(&showing.output);
	return r || showing.count ? r : EXIT_NOTHING;
}
