/* fetch_work.h - tasks that are requests: each claimed one is read, carried through the pool, its result written,
 * then settled. */
#ifndef FAIRLEAD_WORKER_FETCH_WORK_H
#define FAIRLEAD_WORKER_FETCH_WORK_H

#include "worker/carry.h"
#include "worker/result.h"
#include "worker/shift.h"

struct fetch_work;

struct fetch_work_config {
	struct shift_config shift;
	struct carry_config carry; /* its texts outlive the work */
	struct results *results;
	enum task_mode mode;
};

/* 0 or -ENOMEM. */
MUST_USE int fetch_work_new(struct fetch_work **ret, const struct fetch_work_config *config);

/* Claims no more, ends what is under way within the grace period, then runs `ended`. */
void fetch_work_stop(struct fetch_work *work);

/* Gives up and releases what is under way. Before store_free(), and with turns of the loop until
 * fetch_work_is_writing() is over. */
void fetch_work_end(struct fetch_work *work);
bool fetch_work_is_writing(const struct fetch_work *work);

/* After fetch_work_end(), and after store_free() and results_free(). Accepts NULL. */
void fetch_work_free(struct fetch_work *work);

#endif
