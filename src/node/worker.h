/* worker.h - what the roles share that carry tasks out: a service, its queue, and the count of what was done. */
#ifndef FAIRLEAD_NODE_WORKER_H
#define FAIRLEAD_NODE_WORKER_H

#include "node/service.h"
#include "queue/wait.h"
#include "worker/shift.h"

struct worker {
	struct service service;
	const char *command; /* "work fetch", for messages */
	struct queue *queue;
	struct waits *waits;
	struct tally *tally;
};

/* The service with the pool's rules, the queue and the tally; `command` and service.stop are set already. When it was
 * told to stop meanwhile, service_run() ends at once. 0, or an exit status > 0 after a line on standard error;
 * worker_close() is due in both cases. */
MUST_USE int worker_open(struct worker *worker, const struct role_context *context);

/* A line on standard error; returns 1. */
int worker_refuse(const struct worker *worker, const char *error);

/* What both kinds of work have. Tasks at a time: --concurrency, or what `descriptors` suffice for when each task
 * takes `each`. When all has ended, so does the service. */
struct shift_config worker_shift(struct worker *worker, long descriptors, long each);

/* What has gathered is sent, and the store goes: after the work has ended, and before those who wait for the store's
 * answers go. */
void worker_close_store(struct worker *worker);

/* After worker_close_store() all else. */
void worker_close(struct worker *worker);

#endif
