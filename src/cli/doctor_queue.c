/* doctor_queue.c - what is wrong with a queue, and what to do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/queue_session.h"
#include "queue/view.h"

/* A level from which nobody has claimed for so long, though there is work. */
#define STALL_MS 60000

static void on_types(int result, const char *error, void *arg)
{
	struct doctor *d = arg;

	session_answered(&d->session, result, error);
}

/* A Redis user who is there for a pool need not see any queue. */
static bool check_types(struct doctor *d)
{
	int r = queue_check_types(d->session.queue, on_types, d);

	if (!r)
		r = session_wait(&d->session);
	if (!r)
		doctor_say(d, FINDING_OK, "queue-keys", "types are right");
	else if (!strncmp(d->session.error, "NOPERM", 6))
		doctor_say(d, FINDING_WARNING, "queue-keys",
			   "this Redis user may not use queue '%s': %s",
			   queue_keys(d->session.queue)->name, d->session.error);
	else
		doctor_say(d, FINDING_ERROR, "queue-keys",
			   "%s: rename it (RENAME), or choose other --queue or --lists",
			   *d->session.error ? d->session.error : result_word(r));
	return !r;
}

/* One that a Cluster would refuse works here: only who moves to one must know. */
static void check_slots(struct doctor *d)
{
	const struct queue_keys *keys = queue_keys(d->session.queue);
	struct word own = queue_key(keys, QUEUE_STATS);
	unsigned slot = key_slot(own.at, own.len), other = slot;
	const char *list = "";

	for (size_t i = 0; i < keys->level_count && other == slot; i++) {
		list = keys->levels[i].list;
		other = key_slot(list, strlen(list));
	}
	if (other == slot)
		doctor_say(d, FINDING_OK, "queue-slots", "all keys are in slot %u", slot);
	else
		doctor_say(
		    d, FINDING_OK, "queue-slots",
		    "the list %.100s is in slot %u, the queue's own keys are in %u: right here, "
		    "refused by a Redis Cluster",
		    list, other, slot);
}

static void judge_level(struct doctor *d, const struct queue_level_view *level)
{
	const char *queue = queue_keys(d->session.queue)->name;

	if (level->is_paused)
		doctor_say(
		    d, FINDING_WARNING, "queue-levels",
		    "level '%s' is paused, with %" PRId64
		    " tasks: nobody claims from it until 'fairlead queue resume --queue %s %s'",
		    level->name, level->ready + level->returned, queue, level->name);
	else if (level->stall_ms >= STALL_MS)
		doctor_say(d, FINDING_WARNING, "queue-levels",
			   "level '%s' has %" PRId64 " tasks and has stood still for %" PRId64
			   " s: start a worker, or let it come to this level (--aging)",
			   level->name, level->ready + level->returned, level->stall_ms / 1000);
}

static void judge_view(struct doctor *d, const struct queue_view *view)
{
	int64_t tasks = 0;
	bool has_finding = false;

	for (size_t i = 0; i < view->level_count; i++) {
		const struct queue_level_view *level = &view->levels[i];

		tasks += level->ready + level->returned;
		has_finding = has_finding || level->is_paused || level->stall_ms >= STALL_MS;
		judge_level(d, level);
	}
	if (!has_finding)
		doctor_say(d, FINDING_OK, "queue-levels", "%" PRId64 " tasks, none stands still",
			   tasks);
	if (view->dropped)
		doctor_say(d, FINDING_WARNING, "queue-dead",
			   "%" PRId64
			   " dead letters were dropped, the oldest first: look at them sooner "
			   "('fairlead queue dead list'), or keep more (--dead-max)",
			   view->dropped);
	else
		doctor_say(d, FINDING_OK, "queue-dead",
			   "%" PRId64 " dead letters, none was dropped", view->dead);
}

static void on_view(int result, const char *error, const struct queue_view *view, void *arg)
{
	struct doctor *d = arg;

	if (!result)
		judge_view(d, view);
	session_answered(&d->session, result, error);
}

static void check_view(struct doctor *d)
{
	int r = queue_view(d->session.queue, on_view, d);

	if (!r)
		r = session_wait(&d->session);
	if (r)
		doctor_say(d, FINDING_ERROR, "queue-levels", "cannot be read: %s",
			   *d->session.error ? d->session.error : result_word(r));
}

void doctor_queue(struct doctor *d)
{
	if (!check_types(d))
		return;
	check_slots(d);
	check_view(d);
	doctor_orphans(d);
}
