/* roster.h - the keeper's sources, brought in line with the configuration by difference. */
#ifndef FAIRLEAD_NODE_ROSTER_H
#define FAIRLEAD_NODE_ROSTER_H

#include "node/sources.h"

struct listed; /* a source, and the settings that it was made with */

struct roster {
	struct loop *loop;
	struct store *store;
	struct pool *pool;
	struct listed *list[SOURCES_MAX];
	size_t count;
	source_cb
	    *on_first; /* a file that has joined the roster was tried once; NULL: nobody waits */
	void *arg;
	size_t files_awaited; /* those that were not; the callback counts down */
};

/* Begins what the configuration names and the roster does not, ends what it names no more, and does both where the settings
 * differ; what stays is read again if asked for. What is at work in the store cannot end yet: -EAGAIN, to be called again
 * soon. Else 0, -ENOMEM or -EIO. Not from a callback of a source. */
MUST_USE int roster_follow(struct roster *roster, const struct conf *conf, bool is_refreshing);

/* Of the source that has waited longest for a good reading; 0: there is none. */
int64_t roster_age_ms(const struct roster *roster);

/* After store_free(). */
void roster_fini(struct roster *roster);

#endif
