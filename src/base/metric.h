/* metric.h - counters in shared memory, a slot a process.
 *
 * The slots are mapped before the fork and outlive a child, so that its successor counts on. A slot has one writer; anybody
 * may read. Labels come from fixed tables, so the number of series never grows. */
#ifndef FAIRLEAD_BASE_METRIC_H
#define FAIRLEAD_BASE_METRIC_H

#include <stdint.h>

#include "base/result.h"

enum metric {
#define METRIC(name, word, kind, labels, help) METRIC_##name,
#include "tables/metric.def"
#undef METRIC
	METRIC_COUNT
};

enum metric_kind { METRIC_KIND_COUNTER, METRIC_KIND_GAUGE };

struct metric_row {
	const char *word;
	enum metric_kind kind;
	int labels; /* how many values: 1, or REASON_COUNT */
	const char *help;
};

const struct metric_row *metric_row(enum metric metric);

/* Maps `slots` slots of zeros, shared with the children to come. 0 or -errno. Without it there is one private slot. */
MUST_USE int metric_map(int slots);

/* This process writes slot `slot` from now on; its gauges start at zero. */
void metric_use(int slot);

/* `label`: 0 where the metric has none, else an enum reason. */
void metric_add(enum metric metric, int label, int64_t n);
/* Of a gauge. */
void metric_set(enum metric metric, int64_t value);
int64_t metric_get(int slot, enum metric metric, int label);

/* The value in the slot of this process, over all labels. */
int64_t metric_own(enum metric metric);

#endif
