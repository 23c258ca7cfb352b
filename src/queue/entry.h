/* entry.h - reads packed tasks, "key=value" pairs separated by tabs, the last of which is the payload (docs/wire.md).
 * Pure. */
#ifndef FAIRLEAD_QUEUE_ENTRY_H
#define FAIRLEAD_QUEUE_ENTRY_H

#include "queue/view.h"

/* Where the texts of an entry stand. */
struct entry_texts {
	char level[KEY_PART_MAX + 1], id[32], reason[256];
};

/* What `packed` says; what it does not say is "", 0 or nothing, what is too long is cut. The payload stays where it is. */
void entry_read(struct queue_entry *ret, struct entry_texts *texts, const char *packed, size_t len);

#endif
