/* queues.h - the queue that the settings name: opened, and kept in order by a keeper. */
#ifndef FAIRLEAD_NODE_QUEUES_H
#define FAIRLEAD_NODE_QUEUES_H

#include "base/conf.h"
#include "queue/queue.h"

/* Is the configuration fit for a queue? 0, or -errno with a line in `error`. */
MUST_USE int queues_check(const struct conf *conf, char *error, size_t size);

/* The queue of --queue with --levels or --lists; of the two, the one from the higher place. The store is not asked.
 * 0, or -errno with a line in `error`. */
MUST_USE int queues_open(struct queue **ret, struct loop *loop, struct store *store,
			 const struct conf *conf, char *error, size_t size);

struct queue_care;

/* Sweeps that queue from the time when there is something in it, and tells its depth as metrics. 0, or -errno with a line in
 * `error`. */
MUST_USE int queue_care_new(struct queue_care **ret, struct loop *loop, struct store *store,
			    const struct conf *conf, char *error, size_t size);

/* After store_free(). Accepts NULL. */
void queue_care_free(struct queue_care *care);

#endif
