/* queue.h - one queue of tasks in the store: its levels, and how it is used (docs/wire.md, "The queue").
 *
 * `struct queue` belongs to one process and one loop. */
#ifndef FAIRLEAD_QUEUE_QUEUE_H
#define FAIRLEAD_QUEUE_QUEUE_H

#include "store/keys.h"
#include "store/store.h"

struct queue;

struct queue_config {
	const char *name;
	const char *const *levels; /* the most urgent first */
	size_t level_count;
	bool are_lists; /* `levels` are keys of lists */
	int64_t lease_ms;
	int64_t failures_max, lost_max; /* 0: none */
	int64_t dead_max;
	int64_t backoff_ms, backoff_max_ms;
	int64_t aging; /* every so manieth claim from the bottom; 0: strict order */
};

/* `config` is copied; nothing is asked of the store yet. 0, -ENOMEM, or -EINVAL with a line in `error`. */
MUST_USE int queue_new(struct queue **ret, struct loop *loop, struct store *store,
		       const struct queue_config *config, char *error, size_t error_size);

/* After store_free(), which ends what is under way. Accepts NULL. */
void queue_free(struct queue *queue);

const struct queue_config *queue_config(const struct queue *queue);
const struct queue_keys *queue_keys(const struct queue *queue);
struct store *queue_store(const struct queue *queue);

/* 0, or a store's reason with its error in `error` ("" if it gave none). */
typedef void queue_cb(int result, const char *error, void *arg);

/* Looks whether each key of the queue, if it exists, has the type that it should have, and (in Cluster mode) whether
 * all are in one slot. A wrong one: REASON_STORE_REFUSED with a line that names key and type, or both slots. 0 if
 * queued, else -errno. */
MUST_USE int queue_check_types(struct queue *queue, queue_cb *cb, void *arg);

#endif
