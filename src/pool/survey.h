/* survey.h - how many bytes went through a pool, of which clients, and whether its checks are in doubt; for people. */
#ifndef FAIRLEAD_POOL_SURVEY_H
#define FAIRLEAD_POOL_SURVEY_H

#include "pool/pool.h"

#define BUSIEST_MAX 100

struct client_view {
	const char *name;
	size_t name_len;
	int64_t bytes_in, bytes_out;
};

/* Bytes as gateways have reported them: through all members, those that were removed since included, and of each client. */
struct survey {
	int64_t
	    held_ms; /* when so many failed that none was parked, ms since 1970; 0: not lately */
	int64_t bytes_in, bytes_out;
	const struct client_view *busiest; /* at most BUSIEST_MAX, by bytes */
	size_t busiest_count;
	size_t client_count; /* of all */
};

/* Valid until the callback returns. */
typedef void survey_cb(int result, const char *error, const struct survey *view, void *arg);
MUST_USE int pool_survey(struct pool *pool, survey_cb *cb, void *arg);

#endif
