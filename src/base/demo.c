/* demo.c - which addresses are the demonstration's own. */
#include "base/demo.h"

#include <string.h>

static bool is_text(const struct address *address, const char *text)
{
	struct address other;

	return !address_parse(&other, text, strlen(text)) && other.family == address->family &&
	       !memcmp(other.bytes, address->bytes, address->family == AF_INET ? 4 : 16);
}

bool demo_is_upstream(const struct address *address, uint16_t port)
{
	static const char *const hosts[DEMO_UPSTREAMS] = DEMO_UPSTREAM_HOSTS;

	for (int i = 0; i < DEMO_UPSTREAMS; i++)
		if (port == DEMO_UPSTREAM_PORT && is_text(address, hosts[i]))
			return true;
	return false;
}

bool demo_is_origin(const struct address *address, uint16_t port)
{
	return port == DEMO_ORIGIN_PORT && is_text(address, DEMO_ORIGIN_HOST);
}
