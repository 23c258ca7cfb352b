/* hosts.h - lists of targets: names with or without all below them, networks, ports. Pure. */
#ifndef FAIRLEAD_GATEWAY_HOSTS_H
#define FAIRLEAD_GATEWAY_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct hosts;

/* "example.com" (itself), ".example.com" (itself and all below), "203.0.113.0/24", "2001:db8::1". 0, -ENOMEM, or
 * -EINVAL with a line in `error`. An empty list (count 0) gives NULL. */
MUST_USE int hosts_new(struct hosts **ret, const char *const *texts, size_t count, char *error,
		       size_t error_size);
void hosts_free(struct hosts *hosts);

/* Is `host` (canonical) in the list? Asking costs the labels of the name, not the length of the list. NULL holds nothing. */
bool hosts_contain(const struct hosts *hosts, const char *host);

/* A set of ports, a bit each. */
struct ports {
	uint8_t bits[8192];
};

/* Adds "443" or "8000-8999". 0, or -EINVAL with a line in `error`. */
MUST_USE int ports_add(struct ports *ports, const char *text, char *error, size_t error_size);

static inline bool ports_contain(const struct ports *ports, uint16_t port)
{
	return ports->bits[port / 8] >> port % 8 & 1;
}

#endif
