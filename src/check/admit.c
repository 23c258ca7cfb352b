/* admit.c - may a check connect there? */
#include "check/admit.h"

#include <string.h>

#include "base/demo.h"

static bool is_demo_upstream(const struct address *address, uint16_t port)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;
	char text[46];

	address_print(address, text, sizeof text);
	for (int i = 0; i < DEMO_UPSTREAMS; i++)
		if (port == DEMO_UPSTREAM_PORT && !strcmp(text, hosts[i]))
			return true;
	return false;
}

bool admit_check(const struct address *address, uint16_t port, bool is_target, bool allow_private,
		 bool is_demo)
{
	return is_target || allow_private || !address_is_special(address) ||
	       (is_demo && is_demo_upstream(address, port));
}
