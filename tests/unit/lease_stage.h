/* lease_stage.h - what tests of leases share: who asks, the passing of time, and what must hold in the store. */
#ifndef FAIRLEAD_TESTS_LEASE_STAGE_H
#define FAIRLEAD_TESTS_LEASE_STAGE_H

#include "pool/lease.h"
#include "pool_stage.h"

/* Somebody who asks for a lease. */
struct asker {
	struct lease lease;
	int ends, result, losses;
};

/* What lua/acquire.lua answers: a lease with 60 seconds to go; all at their cap, the first runs out in a second. */
#define PLAYED_MEMBER "192.0.2.1:1"
#define PLAYED_TOKEN "7-0123456789abcdef"
#define PLAYED_GRANT                                                                               \
	"*5\r\n:0\r\n$11\r\n" PLAYED_MEMBER "\r\n$18\r\n" PLAYED_TOKEN "\r\n:60000\r\n:0\r\n"
#define PLAYED_FULL "*5\r\n:2\r\n$0\r\n\r\n$0\r\n\r\n:1000\r\n:0\r\n"
#define PLAYED_SECRET_ID "http://192.0.2.9:80#0123456789abcdef"
#define PLAYED_SECRET_GRANT                                                                        \
	"*5\r\n:0\r\n$36\r\n" PLAYED_SECRET_ID "\r\n$18\r\n" PLAYED_TOKEN "\r\n:60000\r\n:0\r\n"

/* Asks; cb and arg of `request` are set here. */
void asker_begin(struct pool_stage *p, struct asker *asker, struct lease_request request);

/* Asks, waits, and expects that result. */
void asker_expect(struct pool_stage *p, struct asker *asker, struct lease_request request,
		  int result);

/* Waits until the store has answered all. */
void lease_stage_settle(struct pool_stage *p);

/* The clock, which the caller has stopped, goes on; what is due then happens. `begin` does not wait for answers. */
void lease_stage_begin_to_pass(struct pool_stage *p, int64_t ms);
void lease_stage_pass(struct pool_stage *p, int64_t ms);

/* docs/wire.md: live = holders of each member = live part of its busy score; `count` leases in all. */
void lease_stage_check(struct pool_stage *p, int count);

#endif
