/* view.h - what a pool holds, for people: every member with its state and counts, and the whole story of one.
 *
 * Reading goes page by page beside everything else that happens; a member that moves meanwhile may be seen before or after
 * its move, but is listed once. */
#ifndef FAIRLEAD_POOL_VIEW_H
#define FAIRLEAD_POOL_VIEW_H

#include "pool/pool.h"

struct member_view {
	char *id;
	size_t id_len;
	bool is_eligible;   /* stands in the sorted set; otherwise parked */
	double score;       /* the count that decides */
	double allocations; /* ever: score - offset */
};

/* `result`: 0 with `count` views, sorted as the store would hand them out (eligible first, then by score and bytes), valid
 * until the callback returns (an `id` that is set to NULL is the callee's to free); else a store's reason with its error. */
typedef void view_cb(int result, const char *error, struct member_view *views, size_t count,
		     void *arg);
MUST_USE int pool_view(struct pool *pool, view_cb *cb, void *arg);

/* All fields about one member. `fields` are the packed values as stored ("" = none). */
struct member_story {
	bool is_known;
	struct member_view view;
	bool has_score;
	const char *proxies, *admin, *health;
	bool has_secret;
	int64_t bytes_in, bytes_out; /* relayed through it, as gateways have reported */
};

typedef void story_cb(int result, const char *error, const struct member_story *story, void *arg);
MUST_USE int pool_story(struct pool *pool, const char *id, story_cb *cb, void *arg);

#endif
