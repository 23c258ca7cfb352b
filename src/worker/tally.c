/* tally.c - what a worker has done, on a terminal and at its end. */
#include "worker/tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "worker/json_text.h"
#include "worker/tally_text.h"

#define TICK_MS 200
/* Members that are counted by name; those that come later are one number. */
#define MEMBERS_MAX 4096
#define MEMBERS_SHOWN 20
/* The rate is of the last ten seconds, or so many as there were. */
#define RATE_SLOTS 50

struct tally_member {
	UT_hash_handle hh;
	uint64_t count;
	char name[];
};

struct tally {
	struct alarm alarm;
	bool is_live;
	int64_t began_ms;
	uint64_t outcomes[OUTCOME_DEAD + 1];
	struct tally_member *members;
	uint64_t others;
	int64_t in_flight, waiting, eligible;
	uint64_t slots[RATE_SLOTS]; /* what was final at each of the last ticks */
	size_t ticks;
};

static uint64_t finals(const struct tally *tally)
{
	return tally->outcomes[OUTCOME_DONE] + tally->outcomes[OUTCOME_DEAD];
}

/* Final results a second. */
static double recent_rate(const struct tally *tally)
{
	size_t count = tally->ticks < RATE_SLOTS ? tally->ticks : RATE_SLOTS;
	uint64_t before = tally->ticks < RATE_SLOTS ? 0 : tally->slots[tally->ticks % RATE_SLOTS];

	return count ? (double)(finals(tally) - before) * 1000 / (double)(count * TICK_MS) : 0;
}

static void draw(const struct tally *tally)
{
	struct tally_view view = {
	    .done = tally->outcomes[OUTCOME_DONE],
	    .failed = tally->outcomes[OUTCOME_DEAD],
	    .retried = tally->outcomes[OUTCOME_RETRY],
	    .rate = recent_rate(tally),
	    .in_flight = tally->in_flight,
	    .waiting = tally->waiting,
	    .eligible = tally->eligible,
	};
	char line[TALLY_LINE_SIZE];

	tally_line(&view, line);
	fprintf(stderr, "\r%s\033[K", line);
}

static void on_tick(void *arg)
{
	struct tally *tally = arg;

	draw(tally);
	tally->slots[tally->ticks++ % RATE_SLOTS] = finals(tally);
	alarm_set(&tally->alarm, clock_ms() + TICK_MS);
}

int tally_new(struct tally **ret, struct loop *loop, bool is_quiet)
{
	struct tally *tally = calloc(1, sizeof *tally);

	if (!tally)
		return -ENOMEM;
	tally->began_ms = clock_ms();
	tally->in_flight = tally->waiting = tally->eligible = -1;
	tally->is_live = !is_quiet && isatty(STDERR_FILENO);
	alarm_init(&tally->alarm, loop, on_tick, tally);
	if (tally->is_live)
		alarm_set(&tally->alarm, tally->began_ms + TICK_MS);
	*ret = tally;
	return 0;
}

void tally_free(struct tally *tally)
{
	struct tally_member *member, *next;

	if (!tally)
		return;
	alarm_fini(&tally->alarm);
	member = tally->members;
	HASH_CLEAR(hh, tally->members);
	for (; member; member = next) {
		next = member->hh.next;
		free(member);
	}
	free(tally);
}

static struct tally_member *member_of(struct tally *tally, const char *name)
{
	size_t len = strlen(name);
	struct tally_member *member;

	HASH_FIND(hh, tally->members, name, len, member);
	if (member || HASH_COUNT(tally->members) >= MEMBERS_MAX)
		return member;
	member = calloc(1, sizeof *member + len + 1);
	if (!member)
		return NULL;
	memcpy(member->name, name, len + 1);
	HASH_ADD_KEYPTR(hh, tally->members, member->name, len, member);
	return member;
}

void tally_add(struct tally *tally, enum outcome outcome, const char *member)
{
	struct tally_member *counted = member ? member_of(tally, member) : NULL;

	tally->outcomes[outcome]++;
	if (counted)
		counted->count++;
	else if (member)
		tally->others++;
}

void tally_state(struct tally *tally, int64_t in_flight, int64_t waiting, int64_t eligible)
{
	tally->in_flight = in_flight;
	tally->waiting = waiting;
	tally->eligible = eligible;
}

/* --- the summary -------------------------------------------------------------------------------------------------- */

/* Those with most first. */
static int compare(const void *a, const void *b)
{
	const struct tally_member *left = *(const struct tally_member *const *)a,
				  *right = *(const struct tally_member *const *)b;

	if (left->count != right->count)
		return left->count > right->count ? -1 : 1;
	return strcmp(left->name, right->name);
}

static const struct tally_member **sorted(const struct tally *tally, size_t count)
{
	const struct tally_member **list = calloc(count + 1, sizeof(struct tally_member *)),
				  *member;
	size_t n = 0;

	if (!list)
		return NULL;
	for (member = tally->members; member; member = member->hh.next)
		list[n++] = member;
	qsort(list, n, sizeof(struct tally_member *), compare);
	return list;
}

static uint64_t uses(const struct tally *tally, const struct tally_member *const *list,
		     size_t count)
{
	uint64_t sum = tally->others;

	for (size_t i = 0; i < count; i++)
		sum += list[i]->count;
	return sum;
}

static double whole_rate(const struct tally *tally)
{
	int64_t ms = clock_ms() - tally->began_ms;

	return ms > 0 ? (double)finals(tally) * 1000 / (double)ms : 0;
}

static void print_text(const struct tally *tally, const struct tally_member *const *list,
		       size_t count)
{
	uint64_t all = uses(tally, list, count), rest = tally->others;

	fprintf(stderr, "%llu done, %llu failed, %llu retried, %llu given back; %.1f/s\n",
		(unsigned long long)tally->outcomes[OUTCOME_DONE],
		(unsigned long long)tally->outcomes[OUTCOME_DEAD],
		(unsigned long long)tally->outcomes[OUTCOME_RETRY],
		(unsigned long long)tally->outcomes[OUTCOME_RELEASE], whole_rate(tally));
	for (size_t i = 0; i < count && i < MEMBERS_SHOWN; i++)
		fprintf(stderr, "%7.2f%% %10llu  %s\n",
			100.0 * (double)list[i]->count / (double)all,
			(unsigned long long)list[i]->count, list[i]->name);
	for (size_t i = MEMBERS_SHOWN; i < count; i++)
		rest += list[i]->count;
	if (rest)
		fprintf(stderr, "%7.2f%% %10llu  others\n", 100.0 * (double)rest / (double)all,
			(unsigned long long)rest);
}

static int add_members(struct buffer *line, const struct tally_member *const *list, size_t count)
{
	int r = buffer_add_text(line, ",\"members\":{");

	for (size_t i = 0; i < count && !r; i++) {
		if (i)
			r = buffer_add(line, ",", 1);
		if (!r)
			r = json_add_text(line, list[i]->name, strlen(list[i]->name));
		if (!r)
			r = buffer_printf(line, ":%llu", (unsigned long long)list[i]->count);
	}
	return r ? r : buffer_add(line, "}", 1);
}

static void print_json(const struct tally *tally, const struct tally_member *const *list,
		       size_t count)
{
	int64_t ms = clock_ms() - tally->began_ms;
	struct buffer line;
	int r = 0;

	buffer_init(&line, (size_t)8 << 20);
	for (int i = 0; i <= OUTCOME_DEAD && !r; i++)
		r = buffer_printf(&line, "%c\"%s\":%llu", i ? ',' : '{',
				  tally_name((enum outcome)i),
				  (unsigned long long)tally->outcomes[i]);
	if (!r)
		r = buffer_printf(&line, ",\"took_ms\":%lld", (long long)ms);
	if (!r)
		r = add_members(&line, list, count);
	if (!r)
		r = buffer_printf(&line, ",\"other_members\":%llu}\n",
				  (unsigned long long)tally->others);
	if (!r)
		fwrite(buffer_at(&line), 1, buffer_len(&line), stderr);
	buffer_fini(&line);
}

void tally_print(const struct tally *tally, bool is_json)
{
	size_t count = HASH_COUNT(tally->members);
	const struct tally_member **list = sorted(tally, count);

	if (tally->is_live)
		fprintf(stderr, "\r\033[K");
	if (list)
		(is_json ? print_json : print_text)(tally, list, count);
	free(list);
}
