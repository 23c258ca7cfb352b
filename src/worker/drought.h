/* drought.h - the pool has nothing to give, or nothing that can be reached: no request is made, the tasks stay in the
 * queue, and the crew waits until there is somebody again. Said once. */
#ifndef FAIRLEAD_WORKER_DROUGHT_H
#define FAIRLEAD_WORKER_DROUGHT_H

#include "base/alarm.h"
#include "pool/pool.h"
#include "worker/crew.h"

struct drought_look;

/* Stands inside a worker. */
struct drought {
	struct crew *crew; /* set by the owner when it is made */
	struct pool *pool;
	struct alarm alarm;
	struct drought_look *looking; /* how many are eligible is being asked; NULL: not now */
	int64_t pause_ms;             /* the last; 0: there is no drought */
	int64_t eligible;             /* when last asked; -1: not known */
	int misses;                   /* tasks in a row that met nobody who could be reached */
	bool is_pausing, is_said;
};

void drought_init(struct drought *drought, struct loop *loop, struct pool *pool);
void drought_fini(struct drought *drought);

/* For `reason` no member could be used for a task, which is to be released. The crew (for proxies that cannot be
 * reached: when several tasks in a row have met nobody else) claims nothing for a while that doubles with each time,
 * up to 5 s, and on as long as the pool is empty. */
void drought_note(struct drought *drought, int reason);

/* A member has worked. */
void drought_over(struct drought *drought);

#endif
