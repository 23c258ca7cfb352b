/* task_parts.h - what the readers of tasks share; nobody else includes it. */
#ifndef FAIRLEAD_WORKER_TASK_PARTS_H
#define FAIRLEAD_WORKER_TASK_PARTS_H

#include "base/http.h"
#include "worker/task.h"

#define TASK_URL_MAX ((size_t)65536)             /* bytes of a URL, as it comes */
#define TASK_JSON_MAX ((size_t)32 * 1024 * 1024) /* bytes of an object */
#define TASK_HEADERS_MAX ((size_t)64)
#define TASK_HEADER_BYTES_MAX ((size_t)32768) /* of all names and values */
#define TASK_METHOD_MAX ((size_t)32)
#define TASK_ID_MAX ((size_t)256)

/* Writes the sentence; returns REASON_TASK_INVALID. */
int task_refuse(char error[static TASK_ERROR_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets url, shown and host. 0, -ENOMEM or REASON_TASK_INVALID. */
MUST_USE int task_read_url(struct task *task, const char *bytes, size_t len,
			   char error[static TASK_ERROR_MAX]);

/* Sets everything. 0, -ENOMEM or REASON_TASK_INVALID; the task is task_fini()'s in all cases. */
MUST_USE int task_read_json(struct task *task, struct text payload,
			    char error[static TASK_ERROR_MAX]);

/* RFC 9110 5.6.2; not empty. */
bool task_is_token(struct text text);

#endif
