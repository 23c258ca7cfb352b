/* schedule.h - keeps the promise of a pool: takes who is due, probes, reports; any number of checkers share the work.
 *
 * Who is due stands in the store, and whoever is taken has a lease there: what this process loses, a member, a
 * report, its own life, costs the time until the lease ends, and no more. */
#ifndef FAIRLEAD_CHECK_SCHEDULE_H
#define FAIRLEAD_CHECK_SCHEDULE_H

#include "check/country.h"
#include "check/crowd.h"
#include "pool/pool.h"

struct schedule;

struct schedule_config {
	struct crowd *crowd; /* shared by the schedules of a process */
	struct tls *tls;
	const struct countries *countries; /* NULL: none */
	bool allow_private;                /* whatever the pool's rule says */
	bool is_demo;                      /* the demonstration's own addresses are exempt */
};

/* Begins; the pool's rules are followed as they change, but read by others. 0 or -ENOMEM. */
MUST_USE int schedule_new(struct schedule **ret, struct loop *loop, struct pool *pool,
			  const struct schedule_config *config);

/* Ends, after crowd_free() and before store_free(): members that were taken and not judged are given back if the store is
 * there. Accepts NULL. */
void schedule_free(struct schedule *schedule);

/* The crowd has room again. */
void schedule_wake(struct schedule *schedule);

/* Milliseconds since the last verdict; -1: there was none yet, or there is nobody to be judged. */
int64_t schedule_age_ms(const struct schedule *schedule);

#endif
