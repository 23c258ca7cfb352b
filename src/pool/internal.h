/* internal.h - what the files of the pool share; nobody else includes it. */
#ifndef FAIRLEAD_POOL_INTERNAL_H
#define FAIRLEAD_POOL_INTERNAL_H

#include "pool/allocate.h"

TAILQ_HEAD(allocations, allocation);

struct pool {
	struct loop *loop;
	struct store *store;
	struct pool_keys keys;
	struct pool_rules rules;
	struct members *members;
	struct allocations waiting;
	bool is_calling; /* an allocation call is in flight */
	char last_error[200];
	struct turn_hook hook;
};

/* allocate.c: sends the next call. */
void allocate_gather(void *pool);

#endif
