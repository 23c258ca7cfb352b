/* plain.h - the commonest entry of all, read quickly. */
#ifndef FAIRLEAD_LIST_PLAIN_H
#define FAIRLEAD_LIST_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/endpoint.h"

/* Reads `text` if it is exactly an IPv4 address and a port in canonical form, a supported scheme
 * before it or not, and acceptable; fills `ret`, which owns nothing. False: item.h judges it. Both
 * say the same of what this accepts. */
bool list_plain_read(struct endpoint *ret, const char *text, size_t len,
		     const struct endpoint_rules *rules);

#endif
