/* credential.h - members by the identifiers that the store has named, with their credentials: those that this process
 * knows at once, the others when one question for all of them is answered. */
#ifndef FAIRLEAD_POOL_CREDENTIAL_H
#define FAIRLEAD_POOL_CREDENTIAL_H

#include "pool/member.h"
#include "pool/pool.h"

/* `place`: the number that the caller gave the identifier. `result`: 0 or REASON_MEMBER_UNREADABLE with a member,
 * whose reference is the callee's; REASON_INTERNAL, a store's reason or -ECANCELED without one. */
typedef void credential_cb(int result, struct member *member, size_t place, void *arg);

/* Stands inside the call that got the identifiers. */
struct credentials {
	struct pool *pool;
	size_t places; /* how many identifiers may come */
	credential_cb *cb;
	void (*end)(void *arg); /* behind the last `cb`; frees what this stands in */
	void *arg;
	struct missing *missing; /* room for `places`, once there is one */
	size_t count;            /* of them */
};

/* Finds the member of `id`: `cb` runs now, or behind credentials_fetch(). */
void credentials_take(struct credentials *credentials, size_t place, const char *id, size_t len);

/* All identifiers have been taken: fetches what is missing. `end` runs in any case, maybe before this returns. */
void credentials_fetch(struct credentials *credentials);

#endif
