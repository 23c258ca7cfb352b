/* push_batch.h - tasks on their way into a queue, in calls of many, in order. */
#ifndef FAIRLEAD_CLI_PUSH_BATCH_H
#define FAIRLEAD_CLI_PUSH_BATCH_H

#include "base/buffer.h"
#include "cli/session.h"
#include "queue/push.h"

/* How a task is pushed; those of one call have it in common. */
struct push_way {
	size_t level;
	bool is_urgent, is_at;
	int64_t when_ms;
};

struct push_slice {
	size_t payload_at, payload_len, key_at, key_len; /* in `bytes` */
};

/* One call is under way at a time: so the order holds whatever happens, and when a call fails, what went in ends
 * before it. */
struct push_batch {
	struct session *session;
	struct push_way way;
	struct buffer bytes;
	struct push_slice slices[PUSH_MAX];
	size_t count;
	const char *unit;          /* what is counted: "line", "argument" */
	uint64_t first, last;      /* numbers of those that wait */
	uint64_t pushed, left_out; /* of all calls */
};

void push_batch_init(struct push_batch *batch, struct session *session, const char *unit);
void push_batch_fini(struct push_batch *batch);

/* Copies a task, `unit` `number` of all; what waits is sent first when it goes another way or is enough for a call.
 * EXIT_FINE, or EXIT_FAILED after a message: nothing more goes in then. */
MUST_USE int push_batch_add(struct push_batch *batch, const struct push_way *way,
			    const struct push_item *item, uint64_t number);

/* Sends what waits. Results as above. */
MUST_USE int push_batch_send(struct push_batch *batch);

#endif
