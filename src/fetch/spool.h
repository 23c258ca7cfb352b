/* spool.h - a temporary file without a name. */
#ifndef FAIRLEAD_FETCH_SPOOL_H
#define FAIRLEAD_FETCH_SPOOL_H

#include <stddef.h>

#include "base/result.h"

/* In $TMPDIR, or /tmp. A descriptor for reading and writing, or -errno. */
MUST_USE int spool_open(void);

/* All of it. 0 or -errno. */
MUST_USE int spool_write(int fd, const char *bytes, size_t len);

#endif
