/* address.h - IP addresses and host names: strict reading, canonical text, special-purpose ranges. */
#ifndef FAIRLEAD_BASE_ADDRESS_H
#define FAIRLEAD_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/result.h"

struct address {
	int family;        /* AF_INET or AF_INET6 */
	uint8_t bytes[16]; /* network order; IPv4 uses the first four */
};

/* Strict dotted quad (RFC 3986 dec-octet) or RFC 4291 IPv6 without brackets and zone. 0 or -EINVAL. */
MUST_USE int address_parse(struct address *ret, const char *text, size_t len);
MUST_USE int address_from_sockaddr(struct address *ret, const struct sockaddr *sa);

/* Fills `ret` and returns its length. */
socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret);

/* Dotted quad or RFC 5952; `buffer` >= 46 bytes. */
void address_print(const struct address *a, char *buffer, size_t size);

/* In a block that the IANA special-purpose registries do not call globally reachable (loopback, private, link-local,
 * shared, multicast, reserved, benchmarking, documentation ...). IPv4 inside IPv6 (mapped, NAT64 64:ff9b::/96 and
 * 64:ff9b:1::/48, 6to4, Teredo, IPv4-compatible) is unwrapped and judged as well. */
bool address_is_special(const struct address *a);

/* The narrower set that proxy lists refuse (docs/lists.md, rule 4): as above but without the documentation ranges. */
bool address_is_bogon(const struct address *a);

/* The IPv4 address that an IPv6 address carries (mapped, NAT64, 6to4, IPv4-compatible); false: none. */
bool address_unwrap(const struct address *a, struct address *ret);

/* A network in CIDR notation, "10.0.0.0/8" or "::1/128"; without "/n" one address. 0 or -EINVAL. */
struct network {
	struct address address;
	unsigned prefix;
};
MUST_USE int network_parse(struct network *ret, const char *text, size_t len);
bool network_contains(const struct network *n, const struct address *a);

#endif
