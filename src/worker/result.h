/* result.h - what a task came to, written before the task is acknowledged: it may be there twice, but is never missing. */
#ifndef FAIRLEAD_WORKER_RESULT_H
#define FAIRLEAD_WORKER_RESULT_H

#include "base/loop.h"
#include "queue/claim.h"
#include "store/store.h"
#include "worker/carry.h"
#include "worker/outcome.h"

struct results;

struct results_config {
	const char *path; /* JSON lines are appended; "-": standard output; NULL: nowhere */
	const char *
	    body_dir; /* bodies go to files there, named by their SHA-256, in place of the line; NULL: into the line */
	const char *list; /* key of a list in the store; NULL: none */
	const char *warc; /* WARC 1.1 file, appended; NULL: none */
};

/* 0, or -errno with a line in `error`. */
MUST_USE int results_new(struct results **ret, struct loop *loop, struct store *store,
			 const struct results_config *config, char *error, size_t size);
/* After the last results_add() has been answered; what was not is forgotten. Accepts NULL. */
void results_free(struct results *results);

/* 0: it is written (and, with a list, stored): the task may be acknowledged. -errno or a store's reason: it is not;
 * try again later. */
typedef void results_cb(int result, void *arg);

/* `task` NULL: the payload could not be read. Everything is the caller's and valid until this returns. `cb` runs
 * once, never before this returns. 0 if queued, else -errno. */
MUST_USE int results_add(struct results *results, const struct claim *claim, const char *level,
			 const struct task *task, const struct carried *carried,
			 enum outcome outcome, results_cb *cb, void *arg);

#endif
