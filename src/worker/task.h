/* task.h - a payload as a request to be made: a URL, or a JSON object; one declared mode a queue (docs/worker.md). Pure. */
#ifndef FAIRLEAD_WORKER_TASK_H
#define FAIRLEAD_WORKER_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

enum task_mode { TASK_URL, TASK_JSON };

struct task_header {
	char *name, *value;
};

/* All strings are the task's own. */
struct task {
	char *url;    /* as it is sent: http or https, bytes outside ASCII encoded, no fragment */
	char *shown;  /* the same without credentials, for logs and results */
	char *host;   /* canonical, for limits and cooldown */
	char *method; /* "GET" ... */
	char *id;     /* of the producer, or NULL */
	char *meta;   /* JSON text of the producer's own, for the result, or NULL */
	struct task_header *headers;
	size_t header_count;
	char *body; /* NULL: none */
	size_t body_len;
	int64_t timeout_ms; /* 0: the worker's */
};

#define TASK_ERROR_MAX 160

/* Reads a payload. URL mode: surrounding blanks, a BOM in front and a CR behind are taken off; nothing is guessed:
 * without a scheme it is refused. JSON mode: {"url", "method", "headers", "body" | "body_base64", "id", "timeout_ms",
 * "meta"}, and "priority", which is left to the queue's levels; another key is refused by name. 0; -ENOMEM; or
 * REASON_TASK_INVALID with a line in `error` that says what is wrong and what it should be: it can never work. */
MUST_USE int task_read(struct task *ret, enum task_mode mode, const char *payload, size_t len,
		       char error[static TASK_ERROR_MAX]);

/* Accepts one that is all zero. */
void task_fini(struct task *task);

#endif
