/* outcome.h - what happens to a task after an attempt: done, again later, or dead; one rule for all workers. Pure. */
#ifndef FAIRLEAD_WORKER_OUTCOME_H
#define FAIRLEAD_WORKER_OUTCOME_H

#include <stdint.h>

enum outcome {
	OUTCOME_DONE,    /* ack: there is a result, and it is final */
	OUTCOME_RETRY,   /* nack: by backoff, or not before `delay_ms` */
	OUTCOME_RELEASE, /* give back without counting a failure: nothing was attempted */
	OUTCOME_DEAD,    /* can never work */
};

/* `reason`, `status`: of struct carried; `retry_after_ms`: 0 none. A status of 408, 425, 429, 500, 502, 503, 504 is
 * tried again, any other is an answer. */
enum outcome outcome_of(int reason, int status, int64_t retry_after_ms, int64_t *ret_delay_ms);

/* "done", "retry", "release", "dead"; static storage. */
const char *outcome_word(enum outcome outcome);

#endif
