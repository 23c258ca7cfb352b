/* push.h - tasks in: at once, urgent, later, once only. */
#ifndef FAIRLEAD_QUEUE_PUSH_H
#define FAIRLEAD_QUEUE_PUSH_H

#include "queue/queue.h"

#define PUSH_MAX ((size_t)128) /* tasks of one call */

struct push {
	const char *level;
	bool is_urgent;
	bool is_at;        /* `when_ms` is a time (ms since 1970), not a delay */
	int64_t when_ms;   /* 0: at once */
	int64_t window_ms; /* of de-duplication keys */
};

struct push_item {
	struct word payload;
	struct word key; /* of de-duplication; len 0: none */
};

/* `pushed[i]`: the item went in; false: its key was there within the window. Valid until the callback returns.
 * REASON_STORE_UNKNOWN: may have been pushed; those with a key may be pushed again. */
typedef void push_cb(int result, const char *error, const bool *pushed, size_t count, void *arg);

/* All of one call or, with a result other than 0, none (REASON_STORE_UNKNOWN: nobody knows). 0 if queued, else
 * -errno: -EINVAL no such level. */
MUST_USE int queue_push(struct queue *queue, const struct push *push, const struct push_item *items,
			size_t count, push_cb *cb, void *arg);

#endif
