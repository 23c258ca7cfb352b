/* item.h - one item of a list: an endpoint with what may stand behind it, columns, or a
 * proxychains line. */
#ifndef FAIRLEAD_LIST_ITEM_H
#define FAIRLEAD_LIST_ITEM_H

#include <stddef.h>

#include "base/endpoint_parts.h"

/* `text`: no line ends, no white space around it, neither comment marks nor quotes. Returns 0
 * and fills `ret`, whose parts stand in `text`, or an `enum verdict`. */
MUST_USE int list_item_split(struct endpoint_parts *ret, const char *text, size_t len,
			     const struct endpoint_rules *rules);

#endif
