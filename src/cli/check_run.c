/* check_run.c - every proxy of a list probed once. */
#include "cli/check_run.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/address.h"
#include "base/alarm.h"
#include "base/clock.h"
#include "check/crowd.h"

#define PROGRESS_MS 200

/* A probe under way. */
struct attempt {
	struct run *run;
	struct endpoint endpoint;
	const char *text; /* in the load */
	size_t len;
	size_t target;
	LIST_ENTRY(attempt) link;
};

/* A failure that is not blamed yet: its target may be bad. There may be as many as the list is long, so it is small. */
struct held {
	const char *text;
	uint16_t len;
	uint8_t target;
	int16_t reason, status;
};

struct run {
	const struct check_request *request;
	struct loop *loop;
	struct crowd *crowd;
	struct load_cursor cursor;
	size_t started;
	bool is_fed, is_stopped;
	int result;
	int64_t started_ms;
	struct check_progress now;
	struct target_record records[TARGETS_MAX];
	LIST_HEAD(, attempt) attempts;
	struct held *held;
	size_t held_count, held_size;
	struct alarm alarm;
	struct event signals[2];
};

/* --- results ------------------------------------------------------------------------------------------------------ */

static void stop(struct run *run, int result)
{
	if (!run->is_stopped)
		run->result = result;
	run->is_stopped = true;
}

static void show(struct run *run, const struct check_result *result)
{
	run->now.done++;
	run->now.passed += result->blame == BLAME_PASS;
	if (!run->request->show(result, run->request->arg))
		stop(run, -EINTR);
}

/* How long ago a proxy reached the target does not matter here. */
static enum blame blame(const struct run *run, size_t target, int reason)
{
	return blame_of(run->request->target_count ? &run->records[target] : NULL, reason,
			clock_ms(), INT64_MAX);
}

static void show_held(struct run *run, const struct held *held)
{
	struct probe_outcome outcome = {.reason = held->reason, .status = held->status};

	show(run, &(struct check_result){.text = held->text,
					 .len = held->len,
					 .blame = blame(run, held->target, held->reason),
					 .outcome = &outcome});
}

/* The failures at `target` can be blamed now; TARGETS_MAX: all that are left. */
static void let_go(struct run *run, size_t target)
{
	size_t kept = 0;

	for (size_t i = 0; i < run->held_count; i++) {
		if (target == TARGETS_MAX || run->held[i].target == target)
			show_held(run, &run->held[i]);
		else
			run->held[kept++] = run->held[i];
	}
	run->held_count = kept;
}

static int hold(struct run *run, const struct attempt *attempt, const struct probe_outcome *outcome)
{
	size_t size = run->held_size ? 2 * run->held_size : 256;
	struct held *held = run->held;

	if (run->held_count == run->held_size) {
		held = realloc(held, size * sizeof *held);
		if (!held)
			return -ENOMEM;
		run->held = held;
		run->held_size = size;
	}
	held[run->held_count++] = (struct held){.text = attempt->text,
						.len = (uint16_t)attempt->len,
						.target = (uint8_t)attempt->target,
						.reason = (int16_t)outcome->reason,
						.status = (int16_t)outcome->status};
	return 0;
}

static void attempt_free(struct attempt *attempt)
{
	LIST_REMOVE(attempt, link);
	endpoint_fini(&attempt->endpoint);
	free(attempt);
}

static void on_outcome(struct probe *probe, const struct probe_outcome *outcome, void *arg)
{
	struct attempt *attempt = arg;
	struct run *run = attempt->run;
	struct target_record *record =
	    run->request->target_count ? &run->records[attempt->target] : NULL;
	bool is_first = record && !record->good_ms && outcome->reason == REASON_OK;
	struct check_result result = {
	    .text = attempt->text, .len = attempt->len, .outcome = outcome};

	(void)probe;
	if (is_first)
		blame_note_pass(record, clock_ms());
	result.blame = blame(run, attempt->target, outcome->reason);
	if (result.blame != BLAME_NOBODY || !record || record->good_ms)
		show(run, &result);
	else if (hold(run, attempt, outcome))
		stop(run, -ENOMEM);
	if (is_first)
		let_go(run, attempt->target);
	attempt_free(attempt);
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	const struct run *run = arg;

	(void)port;
	(void)is_target;
	return run->request->allow_private || !address_is_special(address);
}

/* 0 or -ENOMEM: what a list's reader has printed, it reads. */
static int start(struct run *run, const struct dedupe_item *item)
{
	static const struct endpoint_rules rules = {.allow_private = true,
						    .allow_single_label = true};
	const struct check_request *request = run->request;
	struct attempt *attempt = calloc(1, sizeof *attempt);
	struct probe_request probe = {
	    .expectation = request->expectation,
	    .tls = request->tls,
	    .timeout_ms = request->timeout_ms,
	    .is_admitted = is_admitted,
	    .arg = run,
	};

	if (!attempt)
		return -ENOMEM;
	*attempt = (struct attempt){.run = run, .text = item->text, .len = item->len};
	if (endpoint_parse(&attempt->endpoint, item->text, item->len, &rules)) {
		free(attempt);
		return -ENOMEM;
	}
	if (request->target_count)
		attempt->target = run->started % request->target_count;
	LIST_INSERT_HEAD(&run->attempts, attempt, link);
	probe.proxy = &attempt->endpoint;
	probe.target = request->target_count ? &request->targets[attempt->target] : NULL;
	if (crowd_probe(run->crowd, &probe, on_outcome, attempt)) {
		attempt_free(attempt);
		return -ENOMEM;
	}
	run->started++;
	return 0;
}

static void fill(void *arg)
{
	struct run *run = arg;
	struct dedupe_item item;
	int r = 0;

	while (!r && !run->is_stopped && !run->is_fed && crowd_room(run->crowd)) {
		run->is_fed = !load_next(run->request->load, &run->cursor, &item);
		if (!run->is_fed)
			r = start(run, &item);
	}
	if (r)
		stop(run, r);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

static void tell_progress(struct run *run)
{
	run->now.elapsed_ms = clock_ms() - run->started_ms;
	if (run->request->progress)
		run->request->progress(&run->now, run->request->arg);
}

static void on_alarm(void *arg)
{
	struct run *run = arg;

	tell_progress(run);
	alarm_set(&run->alarm, clock_ms() + PROGRESS_MS);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	stop(arg, -EINTR);
}

static int watch_signals(struct run *run)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	int r = 0;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !r; i++) {
		evsignal_assign(&run->signals[i], loop_base(run->loop), numbers[i], on_signal, run);
		r = evsignal_add(&run->signals[i], NULL) ? -ENOMEM : 0;
	}
	return r;
}

static void fini(struct run *run)
{
	struct attempt *attempt;

	crowd_free(run->crowd);
	while ((attempt = LIST_FIRST(&run->attempts))) {
		/* The one before left the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		attempt_free(attempt);
	}
	for (size_t i = 0; i < sizeof run->signals / sizeof *run->signals; i++)
		if (event_initialized(&run->signals[i]))
			evsignal_del(&run->signals[i]);
	if (run->loop) {
		alarm_fini(&run->alarm);
		loop_turn(run->loop); /* the dead are freed */
	}
	loop_free(run->loop);
	free(run->held);
}

int check_run(const struct check_request *request, struct check_progress *ret)
{
	struct run run = {.request = request, .started_ms = clock_ms()};
	int r;

	LIST_INIT(&run.attempts);
	run.now.total = load_count(request->load);
	r = loop_new(&run.loop);
	if (r)
		goto out;
	alarm_init(&run.alarm, run.loop, on_alarm, &run);
	r = watch_signals(&run);
	if (!r)
		r = crowd_new(&run.crowd, run.loop, request->concurrency);
	if (r)
		goto out;
	crowd_on_room(run.crowd, fill, &run);
	alarm_set(&run.alarm, run.started_ms + PROGRESS_MS);
	fill(&run);
	while (!run.is_stopped && !(run.is_fed && run.now.done + run.held_count == run.started))
		loop_turn(run.loop);
	let_go(&run, TARGETS_MAX);
	tell_progress(&run);
	*ret = run.now;
	r = run.result;
out:
	fini(&run);
	return r;
}
