/* view.h - what stands in a queue, read in bounded portions. */
#ifndef FAIRLEAD_QUEUE_VIEW_H
#define FAIRLEAD_QUEUE_VIEW_H

#include "queue/queue.h"

struct queue_level_view {
	const char *name;
	int64_t ready, returned; /* in the list, in its retry list */
	int64_t pushed, claimed; /* by fairlead, ever */
	int64_t
	    stall_ms; /* how long it has been non-empty without a claim from it and without shrinking; 0 if empty */
	bool is_paused;
};

struct queue_view {
	struct queue_level_view levels[QUEUE_LEVELS_MAX]; /* in the order of queue_keys() */
	size_t level_count;
	int64_t later, in_flight, dead;                              /* tasks */
	int64_t acked, failed, lost, released, became_dead, dropped; /* ever */
	int64_t
	    oldest_claim_ms; /* until the first claim ends; < 0: it has ended; INT64_MAX: none */
};

typedef void queue_view_cb(int result, const char *error, const struct queue_view *view, void *arg);

/* 0 if queued, else -errno. */
MUST_USE int queue_view(struct queue *queue, queue_view_cb *cb, void *arg);

/* A task or dead letter as it stands. */
struct queue_entry {
	const char *where; /* "ready", "returned", "later", "claimed", "dead" */
	const char *level;
	const char *id;     /* "" of a raw task in its list */
	const char *reason; /* of a dead letter */
	int64_t failures, lost, released;
	int64_t
	    at_ms; /* later: due; claimed: end of the lease; dead: when; since 1970; 0 otherwise */
	struct word payload;
};

/* Entries one by one in the order in which they would come, then once with NULL. Valid until it returns. */
typedef void queue_entry_cb(int result, const char *error, const struct queue_entry *entry,
			    void *arg);

enum queue_place { QUEUE_READY, QUEUE_IN_LATER, QUEUE_IN_FLIGHT, QUEUE_DEAD_LETTERS };

/* Up to `count` (1..1000) of one place; `level` NULL: of all levels. READY: retry lists before their lists. At most
 * 10,000 entries are looked at for those of a level. 0 if queued, else -errno (-EINVAL: no such level). */
MUST_USE int queue_peek(struct queue *queue, enum queue_place place, const char *level,
			size_t count, queue_entry_cb *cb, void *arg);

/* Moves or drops in portions until done: `moved` is the sum. `level` NULL: all. 0 if queued, else -errno. */
typedef void queue_moved_cb(int result, const char *error, int64_t moved, void *arg);
MUST_USE int queue_dead_retry(struct queue *queue, queue_moved_cb *cb, void *arg);
MUST_USE int queue_dead_purge(struct queue *queue, queue_moved_cb *cb, void *arg);
MUST_USE int queue_retry_public(struct queue *queue, const char *level, queue_moved_cb *cb,
				void *arg);
MUST_USE int queue_purge(struct queue *queue, const char *level, queue_moved_cb *cb,
			 void *arg); /* ready, returned and later; claims and dead letters stay */
MUST_USE int queue_pause(struct queue *queue, const char *level, bool is_paused, queue_cb *cb,
			 void *arg);

#endif
