/* engine.h - libcurl's multi on the loop: one a process, for all of its transfers.
 *
 * It is there from the first engine_ref() to the last engine_unref(). libcurl owns the watches by way of the engine's
 * callbacks. `ended` never runs inside of libcurl, so that any transfer can be removed, added and freed from there. */
#ifndef FAIRLEAD_FETCH_ENGINE_H
#define FAIRLEAD_FETCH_ENGINE_H

#include <curl/curl.h>

#include "base/loop.h"

struct engine;

/* Part of whatever owns the easy handle. */
struct transfer {
	struct engine *engine; /* NULL: not under way */
	CURL *easy;
	void (*ended)(struct transfer *transfer, CURLcode code); /* removed already; once */
};

/* The engine of this process, which has one loop. Behind the last fork; SIGPIPE must be ignored. 0 or -ENOMEM. */
MUST_USE int engine_ref(struct engine **ret, struct loop *loop);
void engine_unref(struct engine *engine);

/* Begins; nothing has happened yet when this returns. 0 or -ENOMEM. */
MUST_USE int engine_add(struct engine *engine, struct transfer *transfer);

/* `ended` will not run; the connection is closed. Does nothing when it is not under way. */
void engine_remove(struct transfer *transfer);

#endif
