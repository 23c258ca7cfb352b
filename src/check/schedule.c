/* schedule.c - who is due, and when to look again. */
#include "check/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "check/internal.h"
#include "pool/due.h"

/* What a lease lasts beyond the deadline of a check: for the report, and for a store that is slow. */
#define LEASE_MARGIN_MS 5000
/* What others have made due is found by looking: so often while there is work, more and more seldom while there is none. */
#define SLEEP_MIN_MS 1000
#define SLEEP_MAX_MS 4000
#define MEND_MS 60000
#define SLICE_MS 20
#define STUCK_INTERVALS 3

int64_t schedule_rule(const struct schedule *schedule, enum rule rule)
{
	return rules_number(pool_rules(schedule->pool), rule);
}

bool schedule_is_controlled(const struct schedule *schedule)
{
	return !strcmp(pool_rules(schedule->pool)->value[RULE_CHECK_CONTROL], "direct");
}

bool schedule_may_tell(const struct schedule *schedule, int64_t *told_ms)
{
	int64_t now = clock_ms();

	if (*told_ms && now - *told_ms < schedule_rule(schedule, RULE_CHECK_INTERVAL))
		return false;
	*told_ms = now;
	return true;
}

void schedule_release(struct schedule *schedule)
{
	if (schedule->has_ended && !schedule->calls)
		free(schedule);
}

/* --- who is due --------------------------------------------------------------------------------------------------- */

/* Keeps the plan in line with the rules. False: they ask for something that cannot be done, and nobody is judged by
 * something else. */
static bool follow_rules(struct schedule *schedule)
{
	const struct pool_rules *rules = pool_rules(schedule->pool);
	char error[200] = "out of memory";

	if (schedule->plan && plan_is_of(schedule->plan, rules))
		return true;
	plan_unref(schedule->plan);
	schedule->plan = NULL;
	if (!plan_new(&schedule->plan, rules, error, sizeof error))
		return true;
	if (schedule_may_tell(schedule, &schedule->told_plan_ms))
		log_error("the rules of a pool about checks cannot be followed; nobody is checked",
			  LOG_TEXT("pool", pool_name(schedule->pool)), LOG_TEXT("error", error));
	return false;
}

/* Members that were taken and hold no place in the crowd count, too: what is taken stays bounded. */
static size_t room_of(const struct schedule *schedule)
{
	size_t room = crowd_room(schedule->config.crowd);

	room = room > schedule->idle_count ? room - schedule->idle_count : 0;
	return room < DUE_MAX ? room : DUE_MAX;
}

/* A waiting check may need the time of a direct request as well. */
static int64_t lease_ms(const struct schedule *schedule)
{
	int64_t timeout = schedule_rule(schedule, RULE_CHECK_TIMEOUT);

	return (schedule_is_controlled(schedule) ? 2 * timeout : timeout) + LEASE_MARGIN_MS;
}

static void give_back(struct schedule *schedule, struct member **members, size_t count)
{
	if (count)
		pool_due_return(schedule->pool, members, count);
	for (size_t i = 0; i < count; i++)
		member_unref(members[i]);
}

static void look_in(struct schedule *schedule, int64_t wait_ms)
{
	alarm_set(&schedule->look, clock_ms() + wait_ms);
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Whoever is under way will be due again some four fifths of an interval after its report. */
static int64_t sleep_min(const struct schedule *schedule)
{
	return within(schedule_rule(schedule, RULE_CHECK_INTERVAL) / 5, GATHER_MS, SLEEP_MIN_MS);
}

/* Until the next one is due, but never so long that others would wait; a little by chance, since more than one looks. */
static void sleep_until_due(struct schedule *schedule, int64_t next_ms)
{
	int64_t interval = schedule_rule(schedule, RULE_CHECK_INTERVAL);
	int64_t wait =
	    next_ms < 0 ? schedule->sleep_ms : within(next_ms, GATHER_MS, schedule->sleep_ms);

	look_in(schedule, wait + arc4random_uniform((uint32_t)wait / 10 + 1));
	schedule->sleep_ms =
	    within(2 * schedule->sleep_ms, GATHER_MS, within(interval, GATHER_MS, SLEEP_MAX_MS));
}

/* Starts what there is room for; true: all. */
static bool start_all(struct schedule *schedule, struct member **members, size_t count)
{
	size_t started = 0;

	while (started < count && !check_start(schedule, members[started]))
		started++;
	if (started && !schedule->expected_ms)
		schedule->expected_ms = clock_ms();
	give_back(schedule, members + started, count - started);
	return started == count;
}

static void on_taken(int result, struct member **members, size_t count, int64_t next_ms, void *arg)
{
	struct schedule *schedule = arg;
	bool is_all = count == schedule->asked;

	schedule->calls--;
	schedule->asked = 0;
	if (schedule->has_ended) {
		give_back(schedule, members, count);
		schedule_release(schedule);
		return;
	}
	if (result && result != REASON_STORE_NOT_DONE &&
	    schedule_may_tell(schedule, &schedule->told_due_ms))
		log_warn("who is to be checked cannot be read",
			 LOG_TEXT("pool", pool_name(schedule->pool)),
			 LOG_TEXT("reason", result_word(result)));
	if (count)
		schedule->sleep_ms = sleep_min(schedule);
	schedule->is_full = !start_all(schedule, members, count);
	if (!count && !result && next_ms < 0 && !schedule->expected_ms)
		schedule->verdict_ms = 0;
	if (schedule->is_full)
		look_in(schedule, SLEEP_MIN_MS); /* the crowd calls before, if it can */
	else if (!result && is_all)
		look_in(schedule, 0);
	else
		sleep_until_due(schedule, result ? -1 : next_ms);
}

/* Each probe has a deadline, and each report an answer: this is for what nobody has thought of. */
static void watch(struct schedule *schedule)
{
	int64_t interval = schedule_rule(schedule, RULE_CHECK_INTERVAL);
	int64_t age = schedule->expected_ms ? clock_ms() - schedule->expected_ms : 0;

	if (age > STUCK_INTERVALS * interval && age > lease_ms(schedule) &&
	    schedule_may_tell(schedule, &schedule->told_stuck_ms))
		log_warn("members are due, and no check has ended for long",
			 LOG_TEXT("pool", pool_name(schedule->pool)), LOG_NUMBER("age_ms", age));
}

static void look(void *arg)
{
	struct schedule *schedule = arg;
	size_t room = room_of(schedule);

	watch(schedule);
	if (schedule->asked)
		return;
	schedule->is_full = !room;
	if (!follow_rules(schedule) || !room ||
	    pool_due_take(schedule->pool, room, lease_ms(schedule), on_taken, schedule)) {
		look_in(schedule, SLEEP_MIN_MS);
		return;
	}
	schedule->asked = room;
	schedule->calls++;
}

void schedule_wake(struct schedule *schedule)
{
	int64_t soon = clock_ms() + GATHER_MS;

	if (schedule->is_full && schedule->look.due_ms > soon)
		alarm_set(&schedule->look, soon);
}

/* --- mending ------------------------------------------------------------------------------------------------------ */

static void on_mended(int result, bool is_complete, void *arg)
{
	struct schedule *schedule = arg;

	schedule->calls--;
	if (!schedule->has_ended)
		alarm_set(&schedule->mend, clock_ms() + (result        ? SLEEP_MAX_MS
							 : is_complete ? MEND_MS
								       : SLICE_MS));
	schedule_release(schedule);
}

static void mend(void *arg)
{
	struct schedule *schedule = arg;

	if (pool_due_mend(schedule->pool, schedule_rule(schedule, RULE_CHECK_INTERVAL), on_mended,
			  schedule))
		alarm_set(&schedule->mend, clock_ms() + MEND_MS);
	else
		schedule->calls++;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int schedule_new(struct schedule **ret, struct loop *loop, struct pool *pool,
		 const struct schedule_config *config)
{
	struct schedule *schedule = calloc(1, sizeof *schedule);

	if (!schedule)
		return -ENOMEM;
	schedule->loop = loop;
	schedule->pool = pool;
	schedule->config = *config;
	schedule->sleep_ms = sleep_min(schedule);
	TAILQ_INIT(&schedule->running);
	TAILQ_INIT(&schedule->waiting);
	TAILQ_INIT(&schedule->ended);
	alarm_init(&schedule->look, loop, look, schedule);
	alarm_init(&schedule->flush, loop, check_report, schedule);
	alarm_init(&schedule->mend, loop, mend, schedule);
	alarm_set(&schedule->mend, clock_ms());
	alarm_set(&schedule->look, clock_ms());
	*ret = schedule;
	return 0;
}

/* Takes the members of a list away from their checks. */
static void give_back_list(struct schedule *schedule, struct checks *list)
{
	struct member *members[DUE_MAX];
	struct check *check;
	size_t count = 0;

	TAILQ_FOREACH (check, list, link) {
		if (!check->member)
			continue;
		members[count++] = check->member;
		check->member = NULL;
		if (count == DUE_MAX) {
			give_back(schedule, members, count);
			count = 0;
		}
	}
	give_back(schedule, members, count);
	check_end_list(list);
}

/* What has ended is still reported; the store sends it before it goes. */
void schedule_free(struct schedule *schedule)
{
	struct check *check;

	if (!schedule)
		return;
	schedule->has_ended = true;
	alarm_fini(&schedule->look);
	alarm_fini(&schedule->flush);
	alarm_fini(&schedule->mend);
	while (schedule->ended_count)
		check_report(schedule);
	TAILQ_FOREACH (check, &schedule->running, link)
		metric_add(METRIC_CHECKS_UNDER_WAY, 0, -1);
	give_back_list(schedule, &schedule->running);
	give_back_list(schedule, &schedule->waiting);
	plan_unref(schedule->plan);
	schedule_release(schedule);
}

int64_t schedule_age_ms(const struct schedule *schedule)
{
	return schedule->verdict_ms ? clock_ms() - schedule->verdict_ms : -1;
}
