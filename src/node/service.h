/* service.h - what every long-running process of fairlead has: a loop, the store, a pool, signals, a heartbeat.
 *
 * Nothing of it exists before the fork. */
#ifndef FAIRLEAD_NODE_SERVICE_H
#define FAIRLEAD_NODE_SERVICE_H

#include <event2/event_struct.h>

#include "base/alarm.h"
#include "base/conf.h"
#include "node/reload.h"
#include "node/role.h"
#include "pool/pool.h"
#include "store/private.h"

#define SERVICE_SIGNALS 4
#define SERVICE_STOP_MS 1000
/* A process whose supervisor is gone ends soon: somebody may be starting a new node. */
#define SERVICE_ORPHAN_MS 1000

struct service {
	const struct conf
	    *conf; /* in force; replaced by SIGHUP, and the old one is freed behind reload() */
	struct conf *own_conf; /* the same, if it was read here */
	struct loop *loop;
	struct store *store;
	struct pool *pool;
	struct private_server *private; /* NULL: the store is named by --redis */
	const char *role, *name;        /* "gateway", "gateway.1" */
	int exit_status;
	bool is_stopping;
	bool is_orphan;   /* the supervisor is gone */
	bool is_handover; /* a successor runs already: what both share is its own now */
	/* SIGTERM, SIGINT, SIGUSR2: ends by service_done(). A second time when SIGTERM cuts a handover short. */
	void (*stop)(struct service *service);
	reload_check *check; /* of a configuration that SIGHUP brings; NULL: none of its own */
	void (*reload)(
	    struct service *service); /* SIGHUP has brought `conf`; NULL: nothing to do */
	void (*rules_read)(struct service *service); /* they were read anew; NULL: nobody cares */
	struct event signals[SERVICE_SIGNALS];
	pid_t parent;
	struct alarm heartbeat, rules, reread;
	char id[128];
	bool has_rules; /* they were read once */
};

/* Makes the loop and, unless `has_store` is false, the store's connection and the pool. 0, or an exit status > 0
 * after a line on standard error. */
MUST_USE int service_start(struct service *service, const struct role_context *context,
			   const char *role, bool has_store);

/* Holds back the signals that service_start() begins to heed, so that one that comes early is not lost and does not kill. */
void service_hold_signals(void);

/* How long a stop may take, by its cause. */
int64_t service_drain_ms(const struct service *service);

/* Runs until service_done(). Returns the exit status. */
int service_run(struct service *service);
void service_done(struct service *service, int exit_status);

/* Says goodbye to the store and ends what is under way there: before what waits for it is freed. */
void service_end_store(struct service *service);

/* Says goodbye to the store and releases everything but the private server. */
void service_fini(struct service *service);

/* Where the store is: --redis with the password of --redis-password-file, or the private server's socket. 0, or an exit
 * status > 0 after a line on standard error. */
MUST_USE int service_store_config(const struct conf *conf, const struct private_server *private,
				  struct store_config *ret);

#endif
