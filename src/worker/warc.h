/* warc.h - answers as records of a WARC 1.1 file (ISO 28500:2017). */
#ifndef FAIRLEAD_WORKER_WARC_H
#define FAIRLEAD_WORKER_WARC_H

#include "base/buffer.h"
#include "worker/carry.h"
#include "worker/sink.h"

/* Opens the file for appending; an empty one gets its warcinfo. 0 or -errno. */
MUST_USE int warc_open(struct sink *ret, const char *path);

/* The record that says who writes. 0 or -errno. */
MUST_USE int warc_add_info(struct buffer *to);

/* The response that `carried` has and, unless it was redirected, the request that led to it. 0 or -errno; after one,
 * what was added in part is the caller's to drop. */
MUST_USE int warc_add(struct buffer *to, const struct task *task, const struct carried *carried);

#endif
