/* admit.h - may a check connect there? */
#ifndef FAIRLEAD_CHECK_ADMIT_H
#define FAIRLEAD_CHECK_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

/* An address that is special-purpose only if that is allowed, or, for a demonstration, one of its upstreams. A target
 * is what the operator has named in the pool's rules: it may be anywhere. */
bool admit_check(const struct address *address, uint16_t port, bool is_target, bool allow_private,
		 bool is_demo);

#endif
