/* lease_parts.h - what the files of the leases share; nobody else includes it.
 *
 * A lease stands in `held` from the grant to its release, or in one of the lines while it waits; while neither, its question
 * (lease.c) is under way. `lease->call` is that question, or the renewal that it is part of. */
#ifndef FAIRLEAD_POOL_LEASE_PARTS_H
#define FAIRLEAD_POOL_LEASE_PARTS_H

#include "base/alarm.h"
#include "pool/internal.h"
#include "pool/lease.h"

#define LEASE_PAIRS_MAX ((size_t)128) /* of one call of lua/renew.lua or lua/release.lua */

TAILQ_HEAD(lease_list, lease);

/* Those who wait, in order of arrival; one of them asks at a time. */
struct lease_line {
	struct leases *leases;
	struct lease_list waiters;
	size_t count;
	struct lease *asking; /* NULL: nobody */
	bool is_stirred;      /* since `asking` has asked */
	int64_t ask_ms;       /* when the first may ask again */
	struct alarm alarm;
};

/* What is to be said at the end of the turn. */
struct lease_name {
	char id[LEASE_ID_MAX + 1], token[LEASE_TOKEN_MAX + 1];
};

struct leases {
	struct pool *pool;
	struct lease_list held;
	size_t held_count;         /* but those that are lost */
	struct lease *next;        /* where a walk over `held` goes on */
	struct alarm renewal;      /* of all that are held */
	int64_t retry_ms;          /* no renewal before: one has failed */
	struct lease_line general; /* who takes anybody */
	struct lease_line choosy;  /* who wants one member, or avoids some */
	size_t ending_count;
	struct lease_name ending[LEASE_PAIRS_MAX];
	struct turn_hook hook;
};

/* lease.c. Asks for a lease that stands in no line, or at the head of one. 0 or -errno. */
MUST_USE int lease_ask(struct lease *lease);

/* Ends the asking: the lease is empty when its callback runs. */
void lease_fail(struct lease *lease, int result);

/* Gives back its references; all zero then. */
void lease_empty(struct lease *lease);

/* lease_keep.c. */
void keep_init(struct leases *leases);
void keep_fini(struct leases *leases);
void keep_add(struct leases *leases, struct lease *lease);
void keep_remove(struct leases *leases, struct lease *lease);

/* lease_line.c. */
void line_init(struct lease_line *line, struct leases *leases);
void line_fini(struct lease_line *line);

/* Whoever begins may ask, not only wait: nobody of its line waits, or it is not served in order. */
bool line_is_first(const struct lease *lease);

/* All were at their cap: waits from now on, or still. The earliest lease runs out in `expiry_ms` (negative: unknown). */
void line_join(struct lease *lease, int64_t expiry_ms);

/* Has an answer, or has gone: the next asks at once. Accepts one that does not wait. */
void line_leave(struct lease *lease);

/* A lease of `member` ends: who can use that asks at once. */
void line_stir(struct leases *leases, const struct member *member);

/* At the end of a turn. */
void line_ask(struct lease_line *line);

/* lease_end.c. Releases at the end of the turn; nobody waits. */
void end_add(struct leases *leases, const char *id, const char *token);
void end_send(struct leases *leases);

#endif
