/* demo.h - the addresses of the demonstration: loopback, fixed, and the only private ones that it admits. */
#ifndef FAIRLEAD_BASE_DEMO_H
#define FAIRLEAD_BASE_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

#define DEMO_UPSTREAMS 3
#define DEMO_UPSTREAM_PORT 8901
#define DEMO_UPSTREAM_HOSTS                                                                        \
	{                                                                                          \
		"127.0.0.11", "127.0.0.12", "127.0.0.13"                                           \
	}
#define DEMO_ORIGIN_HOST "127.0.0.1"
#define DEMO_ORIGIN_PORT 8889

bool demo_is_upstream(const struct address *address, uint16_t port);
bool demo_is_origin(const struct address *address, uint16_t port);

#endif
