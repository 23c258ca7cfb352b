/* view.h - what a pool holds, for people: every member with its state and counts, and the whole story of one.
 *
 * Reading goes page by page beside everything else that happens; a member that moves meanwhile may be seen before or after
 * its move, but is listed once. */
#ifndef FAIRLEAD_POOL_VIEW_H
#define FAIRLEAD_POOL_VIEW_H

#include "pool/pool.h"

enum view_health { VIEW_UNJUDGED, VIEW_UP, VIEW_DOWN };

struct member_view {
	char *id;
	size_t id_len;
	bool is_eligible;   /* stands in the sorted set; otherwise parked */
	double score;       /* the count that decides */
	double allocations; /* ever: score - offset */
	enum view_health health;
	int reason;     /* of the last verdict that counted; -1: none */
	int64_t leases; /* that are live */
};

/* `result`: 0 with `count` views, sorted as the store would hand them out (eligible first, then by score and bytes), valid
 * until the callback returns (an `id` that is set to NULL is the callee's to free); else a store's reason with its error. */
typedef void view_cb(int result, const char *error, struct member_view *views, size_t count,
		     void *arg);
MUST_USE int pool_view(struct pool *pool, view_cb *cb, void *arg);

#define COOLDOWNS_TOLD ((size_t)32)

/* All that is known of one member. `proxies`, `admin`, `health`: the packed values as stored ("" = none). */
struct member_story {
	bool is_known;
	struct member_view view;
	bool has_score;
	const char *proxies, *admin, *health;
	bool has_secret;
	int64_t bytes_in, bytes_out; /* relayed through it, as gateways have reported */
	int64_t now_ms;              /* by the clock of the store, since 1970, as all times here */
	int64_t streak;              /* passes in a row; failures in a row below 0 */
	int64_t due_ms;              /* of its next check; -1: none */
	size_t cooldown_count;       /* hosts for which it is avoided */
	struct {
		const char *host;
		int64_t until_ms;
	} cooldowns[COOLDOWNS_TOLD];
};

typedef void story_cb(int result, const char *error, const struct member_story *story, void *arg);
MUST_USE int pool_story(struct pool *pool, const char *id, story_cb *cb, void *arg);

#endif
