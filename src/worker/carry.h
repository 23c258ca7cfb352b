/* carry.h - one task through the pool until it is answered: a member, a request, what it showed, another member.
 *
 * Each attempt is one allocation, or one lease under least-concurrent, held while it lasts. No request is made
 * without a member. */
#ifndef FAIRLEAD_WORKER_CARRY_H
#define FAIRLEAD_WORKER_CARRY_H

#include "fetch/visit.h"
#include "pool/limit.h"
#include "pool/pool.h"
#include "worker/task.h"

struct carry;

struct carry_config {
	struct loop *loop;
	struct pool *pool;
	struct visits *visits;
	struct limits *limits; /* per target host; NULL: none */
	int tries;             /* members tried at most */
	int64_t timeout_ms, connect_ms, lease_wait_ms;
	size_t max_bytes;
	int redirects_max;
	const char *ca_file;
	bool (*is_admitted)(const struct address *address, uint16_t port, bool is_target,
			    void *arg);
	void *admit_arg;
};

/* What became of a task, for its result. */
struct carried {
	const struct visit_answer *answer; /* of the last attempt; NULL: no request was made */
	int reason;                        /* REASON_OK: answered, whatever the status */
	const char *detail;
	const char *member; /* of the last attempt, without credentials; NULL: none */
	int tries;
	int64_t
	    retry_after_ms; /* 429 and 503 with Retry-After, or a limit: not before; 0: by backoff */
	int64_t began_ms, took_ms; /* wall clock since 1970; duration */
};

/* Valid until the callback returns; the carry ends with it. REASON_POOL_EMPTY, REASON_POOL_FULL, REASON_HOST_*:
 * nothing was attempted. */
typedef void carry_cb(const struct carried *carried, void *arg);

/* `config` and `task` are the caller's until the end. `cb` runs once, never before this returns. 0 or -ENOMEM. */
MUST_USE int carry_start(struct carry **ret, const struct carry_config *config,
			 const struct task *task, carry_cb *cb, void *arg);

/* `cb` will not run; member, lease and tickets are given back. Accepts NULL. */
void carry_cancel(struct carry *carry);

#endif
