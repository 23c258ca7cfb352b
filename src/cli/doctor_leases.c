/* doctor_leases.c - fairlead doctor: do members count as many live leases as are held? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endpoint.h"
#include "cli/doctor.h"
#include "pool/holders.h"
#include "pool/view.h"

#define DIFFERENCES_MAX ((size_t)32)

/* One look: what `live` says of the pool's members beside what is counted from the leases. */
struct look {
	struct doctor *d;
	struct holder_count *members; /* all of the pool, with their `live` */
	size_t member_count;
	bool is_whole;        /* no lease was left out */
	int64_t leases, gone; /* all; those on members that the pool does not know */
	size_t count;
	struct difference {
		char member[ENDPOINT_ID_MAX];
		int64_t live, held;
	} differences[DIFFERENCES_MAX];
};

/* The texts are taken over. */
static void on_lives(int result, const char *error, struct member_view *views, size_t count,
		     void *arg)
{
	struct look *look = arg;

	look->members = calloc(count + 1, sizeof *look->members);
	for (size_t i = 0; i < count && look->members; i++) {
		look->members[look->member_count++] =
		    (struct holder_count){views[i].id, views[i].id_len, views[i].leases};
		views[i].id = NULL;
	}
	if (look->members)
		qsort(look->members, look->member_count, sizeof *look->members, holder_order);
	else if (!result)
		result = REASON_INTERNAL;
	session_answered(&look->d->session, result, error);
}

static const struct holder_count *find_count(const struct holder_count *member,
					     const struct holder_count *counts, size_t count)
{
	return count ? bsearch(member, counts, count, sizeof *counts, holder_order) : NULL;
}

static void on_holders(int result, const char *error, const struct holder_count *counts,
		       size_t count, bool is_whole, void *arg)
{
	struct look *look = arg;

	look->is_whole = is_whole;
	for (size_t i = 0; i < count; i++) {
		look->leases += counts[i].leases;
		if (!find_count(&counts[i], look->members, look->member_count))
			look->gone += counts[i].leases;
	}
	for (size_t i = 0; i < look->member_count && look->count < DIFFERENCES_MAX; i++) {
		const struct holder_count *member = &look->members[i];
		const struct holder_count *found = find_count(member, counts, count);
		struct difference *difference = &look->differences[look->count];

		*difference =
		    (struct difference){.live = member->leases, .held = found ? found->leases : 0};
		snprintf(difference->member, sizeof difference->member, "%s", member->member);
		look->count += difference->live != difference->held;
	}
	session_answered(&look->d->session, result, error);
}

/* 0, or a reason after a finding. */
static int look_at_leases(struct look *look, struct doctor *d)
{
	int r;

	*look = (struct look){.d = d};
	r = pool_view(d->session.pool, on_lives, look);
	if (!r)
		r = session_wait(&d->session);
	if (!r)
		r = pool_holders(d->session.pool, on_holders, look);
	if (!r)
		r = session_wait(&d->session);
	for (size_t i = 0; i < look->member_count; i++)
		free(look->members[i].member);
	free(look->members);
	if (r)
		doctor_say(d, FINDING_ERROR, "leases", "cannot be read: %s",
			   *d->session.error ? d->session.error : result_word(r));
	return r;
}

/* Somebody may have acquired or released between two questions; what stands as it stood is wrong. */
static bool has_stood(const struct look *before, const struct difference *now)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct difference *then = &before->differences[i];

		if (then->live == now->live && then->held == now->held &&
		    !strcmp(then->member, now->member))
			return true;
	}
	return false;
}

void doctor_leases(struct doctor *d)
{
	static struct look first, second;
	size_t wrong = 0;

	if (look_at_leases(&first, d) || (first.count && look_at_leases(&second, d)))
		return;
	for (size_t i = 0; first.count && first.is_whole && i < second.count; i++) {
		const struct difference *difference = &second.differences[i];

		if (!has_stood(&first, difference))
			continue;
		wrong++;
		doctor_say(d, FINDING_WARNING, "leases",
			   "%s counts %" PRId64 " live leases, but has %" PRId64
			   ": set it (HSET %s MEMBER %" PRId64 "), and the keeper mends the rest",
			   difference->member, difference->live, difference->held,
			   pool_keys(d->session.pool)->text[KEY_LIVE], difference->held);
	}
	if (first.gone)
		doctor_say(d, FINDING_OK, "leases",
			   "%" PRId64 " of members that were removed; they run out by themselves",
			   first.gone);
	if (!first.is_whole)
		doctor_say(d, FINDING_OK, "leases",
			   "too many to be compared with what members count");
	else if (!wrong)
		doctor_say(d, FINDING_OK, "leases", "%" PRId64 " live, and members count as many",
			   first.leases);
}
