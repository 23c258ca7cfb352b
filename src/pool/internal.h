/* internal.h - what the files of the pool share; nobody else includes it. */
#ifndef FAIRLEAD_POOL_INTERNAL_H
#define FAIRLEAD_POOL_INTERNAL_H

#include "pool/allocate.h"

TAILQ_HEAD(allocations, allocation);

struct traffic;
struct reports;
struct mending;
struct cooldown;
struct leases;

struct pool {
	struct loop *loop;
	struct store *store;
	struct pool_keys keys;
	struct pool_rules rules;
	struct members *members;
	struct allocations waiting;
	bool is_calling; /* an allocation call is in flight */
	char last_error[200];
	struct traffic *traffic;   /* NULL: nothing was added yet */
	struct reports *reports;   /* likewise */
	struct mending *mending;   /* the walk of pool_due_mend(); NULL: none was begun */
	struct cooldown *cooldown; /* NULL: nobody has asked yet */
	struct leases *leases;     /* likewise */
	struct turn_hook hook;
};

/* allocate.c: sends the next call. */
void allocate_gather(void *pool);

/* traffic.c: what has not been sent is lost. Accepts NULL. */
void traffic_free(struct traffic *traffic);

/* report_passive.c: likewise. */
void reports_free(struct reports *reports);

/* due_mend.c. Accepts NULL. */
void mending_free(struct mending *mending);

/* cooldown.c: the copy, and what has not been sent. Accepts NULL. */
void cooldown_free(struct cooldown *cooldown);

/* lease.c: those that are held or waited for are empty then. Accepts NULL. */
void leases_free(struct leases *leases);

#endif
