/* tally_text.h - a worker's live line as text. Pure. */
#ifndef FAIRLEAD_WORKER_TALLY_TEXT_H
#define FAIRLEAD_WORKER_TALLY_TEXT_H

#include <stdint.h>

#include "worker/outcome.h"

#define TALLY_LINE_SIZE 256

struct tally_view {
	uint64_t done, failed, retried;
	double rate;                          /* final results a second */
	int64_t in_flight, waiting, eligible; /* -1: not known */
};

void tally_line(const struct tally_view *view, char line[static TALLY_LINE_SIZE]);

/* "done", "failed", "retried", "given_back". */
const char *tally_name(enum outcome outcome);

#endif
