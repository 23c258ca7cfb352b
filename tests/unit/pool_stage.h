/* pool_stage.h - a pool named "pool" on a redis-server of the test's own, or on one that the test plays. */
#ifndef FAIRLEAD_TESTS_POOL_STAGE_H
#define FAIRLEAD_TESTS_POOL_STAGE_H

#include "peer.h"
#include "pool/pool.h"
#include "real_redis.h"

struct pool_stage {
	struct stage stage;
	struct real_redis redis;
	struct peer peer; /* of a played server */
	char folder[40];
	struct store *store;
	struct pool *pool;
};

/* A real server. */
void pool_stage_begin(struct pool_stage *p);

/* A played one: the connection is greeted and ready. */
void pool_stage_play(struct pool_stage *p);

/* Accepts the next connection to a played server and makes it ready. */
void pool_stage_greet(struct pool_stage *p);

void pool_stage_end(struct pool_stage *p);

#endif
