/* tally.h - what a worker has done: the live line on a terminal, and the summary at its end. */
#ifndef FAIRLEAD_WORKER_TALLY_H
#define FAIRLEAD_WORKER_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "worker/outcome.h"

struct tally;

/* The live line goes to standard error if that is a terminal and `is_quiet` is false. 0 or -ENOMEM. */
MUST_USE int tally_new(struct tally **ret, struct loop *loop, bool is_quiet);
void tally_free(struct tally *tally);

/* One task has ended; `member` NULL: none was used. */
void tally_add(struct tally *tally, enum outcome outcome, const char *member);

/* What the line also shows; -1: not known. */
void tally_state(struct tally *tally, int64_t in_flight, int64_t waiting, int64_t eligible);

/* The summary: counts, rate, share of each member. */
void tally_print(const struct tally *tally, bool is_json);

#endif
