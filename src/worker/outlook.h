/* outlook.h - what the live line shows beside what has been done: once a second queue and pool are asked how much is
 * waiting, and how many are eligible. Only where somebody looks. */
#ifndef FAIRLEAD_WORKER_OUTLOOK_H
#define FAIRLEAD_WORKER_OUTLOOK_H

#include "pool/pool.h"
#include "worker/crew.h"
#include "worker/tally.h"

struct outlook;

struct outlook_config {
	struct loop *loop;
	struct crew *crew;
	struct queue *queue;
	struct pool *pool;
	struct tally *tally;
};

/* 0 or -ENOMEM. */
MUST_USE int outlook_new(struct outlook **ret, const struct outlook_config *config);

/* Before crew and tally are freed. Accepts NULL. */
void outlook_free(struct outlook *outlook);

#endif
