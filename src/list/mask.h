/* mask.h - an entry's text for messages, without anything that may be a secret. */
#ifndef FAIRLEAD_LIST_MASK_H
#define FAIRLEAD_LIST_MASK_H

#include <stddef.h>

#include "base/verdict.h"

/* An entry that was not understood may hold credentials anywhere. So only this is shown: a
 * scheme, a host with a numeric port behind it, a single word that no grammar takes for
 * credentials; "***" for all else, "..." for what follows the first word. Terminated, printable,
 * at most some 300 bytes. */
void list_mask(const char *text, size_t len, enum verdict verdict, char *buffer, size_t size);

#endif
