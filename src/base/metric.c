/* metric.c - counters in shared memory, a slot a process. */
#include "base/metric.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

enum { LABELS_NONE = 1, LABELS_REASON = REASON_COUNT };

/* Where each metric's values begin: the sizes of all before it. A struct does the sum. */
struct layout {
#define METRIC(name, word, kind, labels, help) _Atomic int64_t name[LABELS_##labels];
#include "tables/metric.def"
#undef METRIC
};

static const struct metric_row rows[METRIC_COUNT] = {
#define METRIC(name, word, kind, labels, help)                                                     \
	[METRIC_##name] = {word, METRIC_KIND_##kind, LABELS_##labels, help},
#include "tables/metric.def"
#undef METRIC
};

static const size_t offsets[METRIC_COUNT] = {
#define METRIC(name, word, kind, labels, help) [METRIC_##name] = offsetof(struct layout, name),
#include "tables/metric.def"
#undef METRIC
};

static struct layout private_slot;
static struct layout *slots = &private_slot;
static int own_slot;

const struct metric_row *metric_row(enum metric metric)
{
	return &rows[metric];
}

int metric_map(int count)
{
	void *memory = mmap(NULL, (size_t)count * sizeof *slots, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	slots = memory;
	own_slot = 0;
	return 0;
}

static _Atomic int64_t *value(int slot, enum metric metric, int label)
{
	return (_Atomic int64_t *)((char *)&slots[slot] + offsets[metric]) + label;
}

void metric_use(int slot)
{
	own_slot = slot;
	for (int m = 0; m < METRIC_COUNT; m++)
		if (rows[m].kind == METRIC_KIND_GAUGE)
			atomic_store_explicit(value(slot, (enum metric)m, 0), 0,
					      memory_order_relaxed);
}

void metric_add(enum metric metric, int label, int64_t n)
{
	atomic_fetch_add_explicit(value(own_slot, metric, label), n, memory_order_relaxed);
}

void metric_set(enum metric metric, int64_t n)
{
	atomic_store_explicit(value(own_slot, metric, 0), n, memory_order_relaxed);
}

int64_t metric_get(int slot, enum metric metric, int label)
{
	return atomic_load_explicit(value(slot, metric, label), memory_order_relaxed);
}

int64_t metric_own(enum metric metric)
{
	int64_t sum = 0;

	for (int label = 0; label < rows[metric].labels; label++)
		sum += metric_get(own_slot, metric, label);
	return sum;
}
