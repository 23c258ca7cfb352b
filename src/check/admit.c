/* admit.c - may a check connect there? */
#include "check/admit.h"

#include "base/demo.h"

bool admit_check(const struct address *address, uint16_t port, bool is_target, bool allow_private,
		 bool is_demo)
{
	return is_target || allow_private || !address_is_special(address) ||
	       (is_demo && demo_is_upstream(address, port));
}
