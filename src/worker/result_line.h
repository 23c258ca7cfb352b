/* result_line.h - a result as a line of JSON (docs/worker.md, "Results"). Pure. */
#ifndef FAIRLEAD_WORKER_RESULT_LINE_H
#define FAIRLEAD_WORKER_RESULT_LINE_H

#include "base/buffer.h"
#include "queue/claim.h"
#include "worker/carry.h"
#include "worker/outcome.h"

struct result_facts {
	const struct claim *claim;
	const char *level;
	const struct task *task;       /* NULL: the payload could not be read */
	const struct carried *carried; /* NULL: nothing was attempted */
	enum outcome outcome;
	const char *body_file; /* that holds the body; NULL: it goes into the line */
};

/* Appends the line with its line feed, or nothing. 0, -EMSGSIZE or -ENOMEM. */
MUST_USE int result_line_add(struct buffer *to, const struct result_facts *facts);

#endif
