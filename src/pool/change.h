/* change.h - add, remove, pause, restore ...: each edits its own field of a member, then place.lua decides where it
 * stands.
 *
 * Every step is idempotent: who dies in the middle leaves a member that the same change, or the next one, puts right. */
#ifndef FAIRLEAD_POOL_CHANGE_H
#define FAIRLEAD_POOL_CHANGE_H

#include "pool/pool.h"

/* Half of what place.lua admits: its worst case, all joining, stays well below 5 ms. */
#define CHANGE_MAX ((size_t)128)

enum change {
	CHANGE_ADD,       /* named by `source`, and eligible at once, whatever was known of it */
	CHANGE_CANDIDATE, /* named by `source`; a new one is parked until it is judged */
	CHANGE_SHELVE, /* the same, and whoever is not eligible then is paused: no check admits it */
	CHANGE_SUPPLY,  /* named by `source`; a new one is eligible, a known one stays as it is */
	CHANGE_LEAVE,   /* `source` names it no more; without any source it is parked */
	CHANGE_PAUSE,   /* by the operator; keeps its count. One that is disabled stays so */
	CHANGE_RESUME,  /* paused no more; what else keeps it out does so still */
	CHANGE_DISABLE, /* out until it is enabled; a resume does not do it */
	CHANGE_ENABLE,  /* neither paused nor disabled */
	CHANGE_RESTORE, /* enabled and up whatever was known of it, joining by the pool's rule */
	CHANGE_EXPIRE,  /* expires at the time that `source` names, in ms since 1970 */
	CHANGE_CAP, /* at most as many leases at a time as `source` says; NULL: as the pool's rule says */
	CHANGE_PLACE,  /* nothing: put where its fields say that it belongs */
	CHANGE_REMOVE, /* member, credentials and count are forgotten */
	CHANGE_COUNT
};

/* Where a member stands after a change; the codes of place.lua. */
enum placed {
	PLACED_UNKNOWN,
	PLACED_ELIGIBLE, /* it was before */
	PLACED_JOINED,
	PLACED_PARKED, /* it was before */
	PLACED_LEFT,
	PLACED_CANDIDATE,
	PLACED_REMOVED, /* CHANGE_REMOVE only */
};

struct change_item {
	const char *id;
	const char
	    *secret;      /* "user:password" percent-encoded, or NULL; of the first four changes */
	const char *tags; /* packed "key=value" pairs of a newcomer, or NULL; likewise */
};

/* `result`: 0 and where each of `count` members stands now, or a store's reason with its error text. */
typedef void change_cb(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg);

/* Changes up to CHANGE_MAX members; the items are copied. `source`: who names them (letters, digits and . _ : / -),
 * NULL where the change has none. Newcomers are due for a check, a hundred of them within a second. 0 if queued, else
 * -errno (-EPERM: a newer node has written the pool). */
MUST_USE int pool_change(struct pool *pool, enum change change, const char *source,
			 const struct change_item *items, size_t count, change_cb *cb, void *arg);

#endif
