/* command_queue_stats.c - fairlead queue stats */
#include <jansson.h>
#include <stdio.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "cli/output.h"
#include "cli/payload.h"
#include "cli/queue_session.h"
#include "queue/view.h"

/* Two views, so long apart, tell rates. */
struct looking {
	struct session session;
	struct alarm alarm;
	int64_t interval_ms; /* 0: one view, and no rates */
	int64_t before_ms;   /* of clock_ms(): when the first came */
	struct queue_view before;
};

/* A second, rounded. */
static int64_t rate(const struct looking *looking, int64_t now, int64_t before)
{
	int64_t ms = clock_ms() - looking->before_ms;

	return ms > 0 ? ((now - before) * 1000 + ms / 2) / ms : 0;
}

static void set_rate(json_t *object, const struct looking *looking, const char *name, int64_t now,
		     int64_t before)
{
	if (object && looking->interval_ms)
		json_object_set_new(object, name, json_integer(rate(looking, now, before)));
}

static json_t *level_json(const struct queue_level_view *level)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:I, s:I, s:I}", "name", level->name, "ready",
			 (json_int_t)level->ready, "returned", (json_int_t)level->returned,
			 "paused", level->is_paused, "stall_ms", (json_int_t)level->stall_ms,
			 "pushed", (json_int_t)level->pushed, "claimed",
			 (json_int_t)level->claimed);
}

static void print_json(const struct looking *looking, const struct queue_view *view)
{
	const struct queue *queue = looking->session.queue;
	const struct queue_view *before = &looking->before;
	json_t *levels = json_array(), *order = json_array(), *object;
	bool has_claims = view->oldest_claim_ms != INT64_MAX;

	for (size_t i = 0; i < view->level_count; i++) {
		json_t *level = level_json(&view->levels[i]);

		set_rate(level, looking, "pushed_per_s", view->levels[i].pushed,
			 before->levels[i].pushed);
		set_rate(level, looking, "claimed_per_s", view->levels[i].claimed,
			 before->levels[i].claimed);
		json_array_append_new(levels, level);
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
	set_rate(object, looking, "acked_per_s", view->acked, before->acked);
	set_rate(object, looking, "failed_per_s", view->failed, before->failed);
	payload_print_json(stdout, object);
}

static void print_levels(const struct looking *looking, const struct queue_view *view)
{
	static const struct column columns[] = {{"level"},   {"ready"},        {"returned"},
						{"paused"},  {"stall_ms"},     {"pushed"},
						{"claimed"}, {"pushed_per_s"}, {"claimed_per_s"}};
	struct output output;

	output_begin(&output, stdout, OUTPUT_TABLE, columns, looking->interval_ms ? 9 : 7);
	for (size_t i = 0; i < view->level_count; i++) {
		const struct queue_level_view *level = &view->levels[i];
		const struct queue_level_view *before = &looking->before.levels[i];

		output_row(
		    &output,
		    (struct cell[]){CELL_TEXT(level->name), CELL_NUMBER(level->ready),
				    CELL_NUMBER(level->returned), CELL_BOOL(level->is_paused),
				    CELL_NUMBER(level->stall_ms), CELL_NUMBER(level->pushed),
				    CELL_NUMBER(level->claimed),
				    CELL_NUMBER(rate(looking, level->pushed, before->pushed)),
				    CELL_NUMBER(rate(looking, level->claimed, before->claimed))});
	}
	output_finish(&output);
	putchar('\n');
}

static void print_sums(const struct looking *looking, const struct queue_view *view)
{
	static const struct column columns[] = {
	    {"queue"},       {"order"},   {"later"},       {"in_flight"},   {"first_claim_ends_ms"},
	    {"dead"},        {"acked"},   {"failed"},      {"lost"},        {"released"},
	    {"became_dead"}, {"dropped"}, {"acked_per_s"}, {"failed_per_s"}};
	const struct queue *queue = looking->session.queue;
	const struct queue_view *before = &looking->before;
	char order[QUEUE_ORDER_SIZE];
	struct output output;

	queue_order(queue, order);
	output_begin(&output, stdout, OUTPUT_RECORD, columns, looking->interval_ms ? 14 : 12);
	output_row(
	    &output,
	    (struct cell[]){
		CELL_TEXT(queue_keys(queue)->name), CELL_TEXT(order), CELL_NUMBER(view->later),
		CELL_NUMBER(view->in_flight),
		view->oldest_claim_ms == INT64_MAX ? CELL_NONE : CELL_NUMBER(view->oldest_claim_ms),
		CELL_NUMBER(view->dead), CELL_NUMBER(view->acked), CELL_NUMBER(view->failed),
		CELL_NUMBER(view->lost), CELL_NUMBER(view->released),
		CELL_NUMBER(view->became_dead), CELL_NUMBER(view->dropped),
		CELL_NUMBER(rate(looking, view->acked, before->acked)),
		CELL_NUMBER(rate(looking, view->failed, before->failed))});
	output_finish(&output);
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct looking *looking = arg;

	if (!result && conf_bool(&looking->session.cli->conf, CONF_JSON)) {
		print_json(looking, view);
	} else if (!result) {
		print_levels(looking, view);
		print_sums(looking, view);
	}
	session_answered(&looking->session, result, error);
}

static void look_again(void *arg)
{
	struct looking *looking = arg;
	int r = queue_view(looking->session.queue, on_view, looking);

	if (r)
		session_answered(&looking->session, r, "");
}

static void on_before(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct looking *looking = arg;

	if (result) {
		session_answered(&looking->session, result, error);
		return;
	}
	looking->before = *view;
	looking->before_ms = clock_ms();
	alarm_set(&looking->alarm, looking->before_ms + looking->interval_ms);
}

int command_queue_stats(struct cli *cli)
{
	struct looking looking = {.interval_ms = conf_ms(&cli->conf, CONF_RATES)};
	struct session *session = &looking.session;
	int r = queue_session_open(session, cli, 0);

	if (!r) {
		alarm_init(&looking.alarm, session->loop, look_again, &looking);
		r = queue_session_finish(
		    session, queue_view(session->queue, looking.interval_ms ? on_before : on_view,
					&looking));
		alarm_fini(&looking.alarm);
	}
	session_close(session);
	return r;
}
