/* reload.h - the configuration read anew in a running process (SIGHUP). */
#ifndef FAIRLEAD_NODE_RELOAD_H
#define FAIRLEAD_NODE_RELOAD_H

#include "base/conf.h"

/* Judges a configuration before it is used: 0, or -errno with one line in `error`. */
typedef int reload_check(const struct conf *conf, char *error, size_t size);

/* The configuration as it is now, on the heap, with what cannot change while running as in `old`. 0, or -errno after a
 * line in the log; then nothing is to change. `check` may be NULL. */
MUST_USE int reload_read(struct conf **ret, const struct conf *old, reload_check *check,
			 bool is_telling);

/* Accepts NULL. */
void reload_free(struct conf *conf);

#endif
