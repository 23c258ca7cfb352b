/* limit_parts.h - what the files of the limits share; nobody else includes it. */
#ifndef FAIRLEAD_POOL_LIMIT_PARTS_H
#define FAIRLEAD_POOL_LIMIT_PARTS_H

#include <sys/queue.h>

#include "base/alarm.h"
#include "pool/limit.h"

enum limit_kind { LIMIT_CLIENT, LIMIT_HOST, LIMIT_KINDS };

struct limit {
	int64_t concurrent, rate; /* 0: none */
};

struct subject;
TAILQ_HEAD(subjects, subject);

/* The clients, or the hosts, that this process counts. */
struct local {
	struct subject *index;
	struct subjects idle; /* which hold nothing; the first for the longest time */
};

struct holding;
TAILQ_HEAD(holdings, holding);

/* What this process holds in Redis. */
struct shared {
	char holder[20];  /* what all ids of this process begin with */
	uint64_t holders; /* ids ever made */
	struct holding *index;
	struct holdings order;     /* the first was renewed longest ago */
	struct holdings returning; /* of which something is to be given back */
	struct turn_hook hook;
	struct alarm renewal;
};

struct limits {
	struct loop *loop;
	struct pool *pool;
	struct limit limits[LIMIT_KINDS];
	bool is_shared;
	bool is_over;         /* limits_free() was called: only `tickets` is still true */
	size_t tickets;       /* that hold or ask */
	uint64_t hash_key[2]; /* names come from strangers */
	struct local local[LIMIT_KINDS];
	struct shared shared;
};

bool limit_is_set(const struct limit *limit);

/* The reason of a code of limit.lua: 0 let in; 1 and 2 the client's limit and rate, 3 and 4 the host's. */
int limit_reason(int64_t code);

unsigned limit_hash(const struct limits *limits, const char *name, size_t len);

/* limit_local.c. Fills ticket->client and host; results as of ticket_take(). */
void local_init(struct limits *limits);
void local_fini(struct limits *limits);
MUST_USE int local_take(struct limits *limits, struct ticket *ticket,
			const char *const names[LIMIT_KINDS], int64_t *ret_retry_after_ms);
void local_return(struct limits *limits, struct subject *const held[LIMIT_KINDS]);

/* limit_shared.c. Fills ticket->call. */
MUST_USE int shared_init(struct limits *limits);
void shared_fini(struct limits *limits);
MUST_USE int shared_take(struct limits *limits, struct ticket *ticket,
			 const char *const names[LIMIT_KINDS]);

/* `call`: of a ticket. After shared_fini() it is only freed. */
void shared_return(struct limits *limits, void *call);

/* The ticket got its answer: it holds nothing any more unless `result` is 0. */
void ticket_answer(struct ticket *ticket, int result, int64_t retry_after_ms);

/* limit_shared.c. The two keys of a client or a host; of a long name they hold the digest. 0 or -EIO. */
#define LIMIT_KEY_SIZE (KEY_TEXT_MAX + KEY_PART_SIZE)
MUST_USE int limit_keys(const struct pool_keys *keys, enum limit_kind kind, const char *name,
			char ret_held[static LIMIT_KEY_SIZE], char ret_due[static LIMIT_KEY_SIZE]);

#define LIMIT_RETRY_MS 1000 /* a guess: nobody knows when a request ends */

#endif
