/* detect.h - files that are no list: told from their first bytes, never from their name. */
#ifndef FAIRLEAD_LIST_DETECT_H
#define FAIRLEAD_LIST_DETECT_H

#include <stddef.h>

#include "base/verdict.h"

/* How much of a file decides. */
#define LIST_HEAD_MAX ((size_t)65536)

/* `head`: the first LIST_HEAD_MAX bytes, or the whole file if it is shorter. VERDICT_ACCEPTED:
 * nothing against it; else the reason to refuse the whole file. */
enum verdict list_detect(const char *head, size_t len);

#endif
