/* check.c - one member under check: its probe, whose failure it is, its report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "check/admit.h"
#include "check/internal.h"
#include "pool/change.h"
#include "pool/report.h"

static void check_free(struct check *check)
{
	if (check->member)
		member_unref(check->member);
	plan_unref(check->plan);
	free(check);
}

void check_end_list(struct checks *list)
{
	struct check *check;

	while ((check = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, check, link);
		check_free(check);
	}
}

static struct plan_target *target_of(const struct check *check)
{
	return check->target < 0 ? NULL : &check->plan->targets[check->target];
}

/* How long a pass speaks for the target: until the next one of the same member, be it the only one, must have come. */
static int64_t window_ms(const struct schedule *schedule)
{
	return 2 * schedule_rule(schedule, RULE_CHECK_INTERVAL);
}

static enum blame blame_if(const struct schedule *schedule, const struct check *check,
			   int64_t good_ms)
{
	struct target_record record = {.good_ms = good_ms};

	return blame_of(&record, check->outcome.reason, clock_ms(), window_ms(schedule));
}

/* Without a target all is between the proxy and us. */
static enum blame blame_for(const struct schedule *schedule, const struct check *check)
{
	const struct plan_target *target = target_of(check);

	return blame_if(schedule, check, target ? target->record.good_ms : clock_ms());
}

/* It would be the proxy's failure if the target were known to be good. */
static bool is_in_doubt(const struct schedule *schedule, const struct check *check)
{
	return blame_for(schedule, check) == BLAME_NOBODY &&
	       blame_if(schedule, check, clock_ms()) == BLAME_PROXY;
}

static void on_probed(struct probe *probe, const struct probe_outcome *outcome, void *arg);

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	const struct schedule *schedule = arg;
	bool allows = schedule->config.allow_private ||
		      rules_flag(pool_rules(schedule->pool), RULE_ALLOW_PRIVATE);

	return admit_check(address, port, is_target, allows, schedule->config.is_demo);
}

/* 0, -EAGAIN or -ENOMEM. */
static int start_probe(struct check *check, const struct endpoint *proxy)
{
	static const struct endpoint direct = {.scheme = SCHEME_DIRECT};
	struct schedule *schedule = check->schedule;
	const struct plan_target *target = target_of(check);
	const struct probe_request request = {
	    .proxy = proxy ? proxy : &direct,
	    .target = target ? &target->target : NULL,
	    .expectation = target ? &check->plan->expectation : NULL,
	    .tls = schedule->config.tls,
	    .timeout_ms = schedule_rule(schedule, RULE_CHECK_TIMEOUT),
	    .is_admitted = is_admitted,
	    .arg = schedule,
	};
	int r = crowd_probe(schedule->config.crowd, &request, on_probed, check);

	if (!r) {
		TAILQ_INSERT_TAIL(&schedule->running, check, link);
		metric_add(METRIC_CHECKS_UNDER_WAY, 0, 1);
	}
	return r;
}

static struct check *check_new(struct schedule *schedule, struct plan *plan, int target)
{
	struct check *check = calloc(1, sizeof *check);

	if (!check)
		return NULL;
	check->schedule = schedule;
	check->plan = plan;
	check->target = target;
	check->began_ms = clock_ms();
	plan->references++;
	return check;
}

int check_start(struct schedule *schedule, struct member *member)
{
	struct plan *plan = schedule->plan;
	int target = plan->count ? (int)(schedule->turn++ % plan->count) : -1;
	struct check *check = check_new(schedule, plan, target);
	int r;

	if (!check)
		return -ENOMEM;
	r = start_probe(check, &member->endpoint);
	if (r)
		check_free(check);
	else
		check->member = member;
	return r;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

static void count_places(struct schedule *schedule, const struct report_result *results,
			 size_t count)
{
	bool is_held = false;

	for (size_t i = 0; i < count; i++) {
		is_held = is_held || results[i].is_held;
		metric_add(METRIC_PARKED, 0, results[i].placed == PLACED_LEFT);
		metric_add(METRIC_ADMITTED, 0, results[i].placed == PLACED_JOINED);
		metric_add(METRIC_HELD, 0, results[i].is_held);
	}
	if (is_held && schedule_may_tell(schedule, &schedule->told_held_ms))
		log_warn(
		    "more members fail than max_parked_percent: none is parked",
		    LOG_TEXT("pool", pool_name(schedule->pool)),
		    LOG_NUMBER("max_parked_percent", schedule_rule(schedule, RULE_MAX_PARKED)));
}

static bool is_idle(const struct schedule *schedule)
{
	return !schedule->idle_count && TAILQ_EMPTY(&schedule->running);
}

/* A report that is lost is no loss: the lease of its members ends, and they are probed again. */
static void on_reported(int result, const char *error, const struct report_result *results,
			size_t count, void *arg)
{
	struct schedule *schedule = arg;

	schedule->calls--;
	if (!schedule->has_ended && !result) {
		schedule->verdict_ms = clock_ms();
		schedule->expected_ms = is_idle(schedule) ? 0 : clock_ms();
		count_places(schedule, results, count);
	} else if (!schedule->has_ended && result != REASON_STORE_NOT_DONE &&
		   schedule_may_tell(schedule, &schedule->told_due_ms)) {
		log_warn("what checks have found cannot be written",
			 LOG_TEXT("pool", pool_name(schedule->pool)),
			 LOG_TEXT("reason", result_word(result)), LOG_TEXT("error", error));
	}
	schedule_release(schedule);
}

/* No member has reached it for as long as a pass speaks for it: it is the target that has changed, or we. */
static void tell_unreached(struct schedule *schedule, const struct check *check)
{
	struct plan_target *target = target_of(check);
	int64_t good_ms = target->record.good_ms ? target->record.good_ms : check->plan->begun_ms;

	if (clock_ms() - good_ms > window_ms(schedule) &&
	    schedule_may_tell(schedule, &target->told_ms))
		log_warn("no member reaches a check target: what fails there is nobody's fault",
			 LOG_TEXT("pool", pool_name(schedule->pool)),
			 LOG_TEXT("host", target->target.host),
			 LOG_NUMBER("port", target->target.port),
			 LOG_TEXT("last", result_word(check->outcome.reason)));
}

static void print_facts(const struct schedule *schedule, const struct probe_outcome *outcome,
			char buffer[REPORT_FACTS_MAX])
{
	char country[3] = "";
	int at = 0;

	if (*outcome->exit_address) {
		countries_find(schedule->config.countries, outcome->exit_address, country);
		at = snprintf(buffer, REPORT_FACTS_MAX, "exit=%s", outcome->exit_address);
	}
	if (outcome->anonymity != ANONYMITY_UNKNOWN)
		at += snprintf(buffer + at, REPORT_FACTS_MAX - (size_t)at, "%sanonymity=%s",
			       at ? "\t" : "", anonymity_word(outcome->anonymity));
	snprintf(buffer + at, REPORT_FACTS_MAX - (size_t)at, "%s%s", *country ? "\tcountry=" : "",
		 country);
}

static struct probe_report judge(struct schedule *schedule, const struct check *check, char *facts)
{
	const struct probe_outcome *outcome = &check->outcome;
	bool is_inconclusive = blame_for(schedule, check) == BLAME_NOBODY;

	if (is_in_doubt(schedule, check))
		tell_unreached(schedule, check);
	print_facts(schedule, outcome, facts);
	metric_add(METRIC_CHECKS, outcome->reason, 1);
	metric_add(METRIC_INCONCLUSIVE, 0, is_inconclusive);
	return (struct probe_report){.member = check->member->id,
				     .reason = outcome->reason,
				     .is_inconclusive = is_inconclusive,
				     .age_ms = clock_ms() - check->began_ms,
				     .latency_ms = outcome->latency_ms,
				     .facts = facts};
}

void check_report(void *arg)
{
	struct schedule *schedule = arg;
	struct probe_report reports[REPORT_MAX];
	char facts[REPORT_MAX][REPORT_FACTS_MAX];
	struct checks told = TAILQ_HEAD_INITIALIZER(told);
	struct check *check;
	size_t count = 0;

	while (count < REPORT_MAX && (check = TAILQ_FIRST(&schedule->ended))) {
		TAILQ_REMOVE(&schedule->ended, check, link);
		TAILQ_INSERT_TAIL(&told, check, link);
		reports[count] = judge(schedule, check, facts[count]);
		count++;
	}
	schedule->ended_count -= count;
	schedule->idle_count -= count;
	if (count && !pool_report_probes(schedule->pool, reports, count, on_reported, schedule))
		schedule->calls++;
	check_end_list(&told);
	if (schedule->has_ended)
		return;
	if (schedule->ended_count)
		alarm_set(&schedule->flush, clock_ms());
	schedule_wake(schedule);
}

static void enlist_ended(struct check *check)
{
	struct schedule *schedule = check->schedule;

	TAILQ_INSERT_TAIL(&schedule->ended, check, link);
	if (++schedule->ended_count == 1)
		alarm_set(&schedule->flush, clock_ms() + GATHER_MS);
	else if (schedule->ended_count == REPORT_MAX)
		check_report(schedule);
}

/* --- the end of a probe ------------------------------------------------------------------------------------------- */

/* check_control=direct: one request of our own, for each target and window, tells whether it is good. True: one is under
 * way. */
static bool ask_directly(struct schedule *schedule, const struct check *doubtful)
{
	struct plan_target *target = target_of(doubtful);
	struct check *control;

	if (!schedule_is_controlled(schedule) || target->is_control_under_way)
		return target->is_control_under_way;
	if (target->control_ms && clock_ms() - target->control_ms < window_ms(schedule))
		return false;
	control = check_new(schedule, doubtful->plan, doubtful->target);
	if (control && start_probe(control, NULL)) {
		check_free(control);
		control = NULL;
	}
	target->is_control_under_way = control;
	if (control)
		target->control_ms = clock_ms();
	return control;
}

static void take_control(struct check *control)
{
	struct schedule *schedule = control->schedule;
	struct check *check, *next;

	target_of(control)->is_control_under_way = false;
	for (check = TAILQ_FIRST(&schedule->waiting); check; check = next) {
		next = TAILQ_NEXT(check, link);
		if (target_of(check) != target_of(control))
			continue;
		TAILQ_REMOVE(&schedule->waiting, check, link);
		enlist_ended(check);
	}
	check_free(control);
}

static void on_probed(struct probe *probe, const struct probe_outcome *outcome, void *arg)
{
	struct check *check = arg;
	struct schedule *schedule = check->schedule;

	(void)probe;
	TAILQ_REMOVE(&schedule->running, check, link);
	metric_add(METRIC_CHECKS_UNDER_WAY, 0, -1);
	check->outcome = *outcome;
	if (outcome->reason == REASON_OK && check->target >= 0)
		blame_note_pass(&target_of(check)->record, clock_ms());
	if (!check->member) {
		take_control(check);
		return;
	}
	schedule->idle_count++;
	if (is_in_doubt(schedule, check) && ask_directly(schedule, check))
		TAILQ_INSERT_TAIL(&schedule->waiting, check, link);
	else
		enlist_ended(check);
}
