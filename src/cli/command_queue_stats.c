/* command_queue_stats.c - fairlead queue stats */
#include <jansson.h>
#include <stdio.h>

#include "cli/output.h"
#include "cli/payload.h"
#include "cli/queue_session.h"
#include "queue/view.h"

static json_t *level_json(const struct queue_level_view *level)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:I, s:I, s:I}", "name", level->name, "ready",
			 (json_int_t)level->ready, "returned", (json_int_t)level->returned,
			 "paused", level->is_paused, "stall_ms", (json_int_t)level->stall_ms,
			 "pushed", (json_int_t)level->pushed, "claimed",
			 (json_int_t)level->claimed);
}

static void print_json(const struct queue *queue, const struct queue_view *view)
{
	json_t *levels = json_array(), *order = json_array(), *object;
	bool has_claims = view->oldest_claim_ms != INT64_MAX;

	for (size_t i = 0; i < view->level_count; i++) {
		json_array_append_new(levels, level_json(&view->levels[i]));
		json_array_append_new(order, json_string(view->levels[i].name));
	}
	object = json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "queue",
			   queue_keys(queue)->name, "order", order, "levels", levels, "later",
			   (json_int_t)view->later, "in_flight", (json_int_t)view->in_flight,
			   "dead", (json_int_t)view->dead, "acked", (json_int_t)view->acked,
			   "failed", (json_int_t)view->failed, "lost", (json_int_t)view->lost,
			   "released", (json_int_t)view->released, "became_dead",
			   (json_int_t)view->became_dead, "dropped", (json_int_t)view->dropped);
	if (object)
		json_object_set_new(object, "first_claim_ends_ms",
				    has_claims ? json_integer(view->oldest_claim_ms) : json_null());
	payload_print_json(stdout, object);
}

static void print_levels(const struct queue_view *view)
{
	static const struct column columns[] = {{"level"},    {"ready"},  {"returned"}, {"paused"},
						{"stall_ms"}, {"pushed"}, {"claimed"}};
	struct output output;

	output_begin(&output, stdout, OUTPUT_TABLE, columns, 7);
	for (size_t i = 0; i < view->level_count; i++) {
		const struct queue_level_view *level = &view->levels[i];

		output_row(&output, (struct cell[]){
					CELL_TEXT(level->name), CELL_NUMBER(level->ready),
					CELL_NUMBER(level->returned), CELL_BOOL(level->is_paused),
					CELL_NUMBER(level->stall_ms), CELL_NUMBER(level->pushed),
					CELL_NUMBER(level->claimed)});
	}
	output_finish(&output);
	putchar('\n');
}

static void print_sums(const struct queue *queue, const struct queue_view *view)
{
	static const struct column columns[] = {
	    {"queue"}, {"order"},  {"later"}, {"in_flight"}, {"first_claim_ends_ms"}, {"dead"},
	    {"acked"}, {"failed"}, {"lost"},  {"released"},  {"became_dead"},         {"dropped"}};
	char order[QUEUE_ORDER_SIZE];
	struct output output;

	queue_order(queue, order);
	output_begin(&output, stdout, OUTPUT_RECORD, columns, 12);
	output_row(
	    &output,
	    (struct cell[]){
		CELL_TEXT(queue_keys(queue)->name), CELL_TEXT(order), CELL_NUMBER(view->later),
		CELL_NUMBER(view->in_flight),
		view->oldest_claim_ms == INT64_MAX ? CELL_NONE : CELL_NUMBER(view->oldest_claim_ms),
		CELL_NUMBER(view->dead), CELL_NUMBER(view->acked), CELL_NUMBER(view->failed),
		CELL_NUMBER(view->lost), CELL_NUMBER(view->released),
		CELL_NUMBER(view->became_dead), CELL_NUMBER(view->dropped)});
	output_finish(&output);
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct session *session = arg;

	if (!result && conf_bool(&session->cli->conf, CONF_JSON)) {
		print_json(session->queue, view);
	} else if (!result) {
		print_levels(view);
		print_sums(session->queue, view);
	}
	session_answered(session, result, error);
}

int command_queue_stats(struct cli *cli)
{
	struct session session;
	int r = queue_session_open(&session, cli, 0);

	if (!r)
		r = queue_session_finish(&session, queue_view(session.queue, on_view, &session));
	session_close(&session);
	return r;
}
