/* lease_line.c - who has found all members at their cap waits in line, among those of this process.
 *
 * Who takes anybody waits in strict order of arrival, and only the first asks. Who wants one member, or avoids some,
 * may be served when the others are not and the other way round: they have a line of their own, where whoever has
 * asked in vain goes to the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metric.h"
#include "pool/lease_parts.h"

/* Between two questions, by chance, since other processes ask as well. */
#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 100
/* Each question of the choosy concerns one of them alone: the more wait, the more often one asks. */
#define CHOOSY_MIN_MS 5

static bool is_choosy(const struct lease_request *request)
{
	return request->only || request->avoid_count;
}

static struct lease_line *line_of(const struct lease *lease)
{
	struct leases *leases = lease->pool->leases;

	return is_choosy(&lease->request) ? &leases->choosy : &leases->general;
}

bool line_is_first(const struct lease *lease)
{
	const struct lease_line *line = line_of(lease);

	return is_choosy(&lease->request) || !lease->request.wait_ms || TAILQ_EMPTY(&line->waiters);
}

/* --- when to ask -------------------------------------------------------------------------------------------------- */

static void ring_at(struct lease_line *line, int64_t due_ms)
{
	if (!line->alarm.due_ms || due_ms < line->alarm.due_ms)
		alarm_set(&line->alarm, due_ms);
}

static void ask_now(struct lease_line *line)
{
	line->ask_ms = 0;
	loop_again(line->leases->pool->loop);
}

static int64_t pause_ms(const struct lease_line *line, int64_t expiry_ms)
{
	int64_t pause = PAUSE_MIN_MS + arc4random_uniform(PAUSE_MAX_MS - PAUSE_MIN_MS + 1);

	if (line == &line->leases->choosy && line->count) {
		pause /= (int64_t)line->count;
		pause = pause > CHOOSY_MIN_MS ? pause : CHOOSY_MIN_MS;
	}
	/* A lease has run out when the time is its expiry. */
	return expiry_ms >= 0 && expiry_ms < pause ? expiry_ms : pause;
}

void line_ask(struct lease_line *line)
{
	struct lease *lease = TAILQ_FIRST(&line->waiters);
	int r;

	if (!lease || line->asking || clock_ms() < line->ask_ms)
		return;
	line->asking = lease;
	line->is_stirred = false;
	r = lease_ask(lease);
	if (r)
		lease_fail(lease, r == -EPERM ? REASON_STORE_NEWER : REASON_STORE_NOT_DONE);
}

/* Whoever asks is told by the answer. */
static struct lease *find_overdue(const struct lease_line *line, int64_t now_ms)
{
	struct lease *lease;

	TAILQ_FOREACH (lease, &line->waiters, link)
		if (lease != line->asking && lease->wait_until_ms <= now_ms)
			return lease;
	return NULL;
}

static void on_alarm(void *arg)
{
	struct lease_line *line = arg;
	struct lease *lease;

	while ((lease = find_overdue(line, clock_ms())))
		lease_fail(lease, REASON_POOL_FULL);
	line_ask(line);
	TAILQ_FOREACH (lease, &line->waiters, link)
		if (lease != line->asking)
			ring_at(line, lease->wait_until_ms);
	if (!line->asking && line->count)
		ring_at(line, line->ask_ms);
}

/* --- coming and going --------------------------------------------------------------------------------------------- */

static int64_t arrival_ms(const struct lease *lease)
{
	return lease->wait_until_ms - lease->request.wait_ms;
}

/* Several may have asked while nobody waited yet, and are answered now. */
static void insert(struct lease_line *line, struct lease *lease)
{
	struct lease *before = TAILQ_LAST(&line->waiters, lease_list);

	if (line == &line->leases->general)
		while (before && arrival_ms(before) > arrival_ms(lease))
			before = TAILQ_PREV(before, lease_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&line->waiters, before, lease, link);
	else
		TAILQ_INSERT_HEAD(&line->waiters, lease, link);
}

/* What has ended since it asked may be for it. */
static bool is_stirred_first(const struct lease_line *line, const struct lease *lease)
{
	return line->is_stirred && TAILQ_FIRST(&line->waiters) == lease;
}

void line_join(struct lease *lease, int64_t expiry_ms)
{
	struct lease_line *line = line_of(lease);
	const bool has_asked = line->asking == lease, is_alone = !line->count;
	int64_t ask_ms;

	if (!lease->is_waiting) {
		lease->is_waiting = true;
		line->count++;
		metric_add(METRIC_LEASE_WAITS, 0, 1);
		insert(line, lease);
	} else if (line == &line->leases->choosy && !is_stirred_first(line, lease)) {
		TAILQ_REMOVE(&line->waiters, lease, link);
		TAILQ_INSERT_TAIL(&line->waiters, lease, link);
	}
	ask_ms = clock_ms() + pause_ms(line, expiry_ms);
	/* Newcomers do not put it off. */
	if (has_asked || is_alone || ask_ms < line->ask_ms)
		line->ask_ms = ask_ms;
	if (has_asked) {
		line->asking = NULL;
		if (line->is_stirred)
			ask_now(line);
	}
	ring_at(line, lease->wait_until_ms < ask_ms ? lease->wait_until_ms : ask_ms);
}

void line_leave(struct lease *lease)
{
	struct lease_line *line;

	if (!lease->is_waiting)
		return;
	line = line_of(lease);
	TAILQ_REMOVE(&line->waiters, lease, link);
	lease->is_waiting = false;
	line->count--;
	if (line->asking != lease)
		return;
	line->asking = NULL;
	ask_now(line);
}

static bool can_use(const struct lease_request *request, const struct member *member)
{
	struct word id = {member->id, member->id_len};

	if (request->only)
		return request->only->id_len == id.len && !memcmp(request->only->id, id.at, id.len);
	for (size_t i = 0; i < request->avoid_count; i++)
		if (request->avoid[i]->id_len == id.len &&
		    !memcmp(request->avoid[i]->id, id.at, id.len))
			return false;
	return true;
}

static void stir(struct lease_line *line)
{
	line->is_stirred = true;
	ask_now(line);
}

void line_stir(struct leases *leases, const struct member *member)
{
	struct lease_list *choosy = &leases->choosy.waiters;
	struct lease *lease;

	if (leases->general.count)
		stir(&leases->general);
	TAILQ_FOREACH (lease, choosy, link)
		if (can_use(&lease->request, member))
			break;
	if (!lease)
		return;
	TAILQ_REMOVE(choosy, lease, link);
	TAILQ_INSERT_HEAD(choosy, lease, link);
	stir(&leases->choosy);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void line_init(struct lease_line *line, struct leases *leases)
{
	*line = (struct lease_line){.leases = leases};
	TAILQ_INIT(&line->waiters);
	alarm_init(&line->alarm, leases->pool->loop, on_alarm, line);
}

void line_fini(struct lease_line *line)
{
	struct lease *lease;

	alarm_fini(&line->alarm);
	while ((lease = TAILQ_FIRST(&line->waiters))) {
		TAILQ_REMOVE(&line->waiters, lease, link);
		lease_empty(lease);
	}
}
