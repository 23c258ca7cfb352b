/* internal.h - what the files of the pool share; nobody else includes it. */
#ifndef FAIRLEAD_POOL_INTERNAL_H
#define FAIRLEAD_POOL_INTERNAL_H

#include "pool/allocate.h"

TAILQ_HEAD(allocations, allocation);

struct traffic;

struct pool {
	struct loop *loop;
	struct store *store;
	struct pool_keys keys;
	struct pool_rules rules;
	struct members *members;
	struct allocations waiting;
	bool is_calling; /* an allocation call is in flight */
	char last_error[200];
	struct traffic *traffic; /* NULL: nothing was added yet */
	struct turn_hook hook;
};

/* allocate.c: sends the next call. */
void allocate_gather(void *pool);

/* traffic.c: what has not been sent is lost. Accepts NULL. */
void traffic_free(struct traffic *traffic);

#endif
