/* hosts.c - lists of targets: names, networks, ports. */
#include "gateway/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/address.h"
#include "base/http.h"
#include "base/secret.h"

#define NAME_SIZE ((size_t)254)

struct host_name {
	UT_hash_handle hh;
	bool has_below; /* all names that end in it are meant, too */
	char text[];
};

/* The key is the whole of `network`; what lies outside of its prefix is zero. */
struct host_network {
	struct network network;
	UT_hash_handle hh;
};

struct hosts {
	struct host_name *names;
	struct host_network *networks;
	bool has_prefix[2][129]; /* of IPv4, of IPv6: lengths in use */
};

static struct network masked(const struct address *address, unsigned prefix)
{
	struct network network = {*address, prefix};
	size_t whole = prefix / 8;

	if (whole < sizeof(network.address.bytes)) {
		network.address.bytes[whole] &= (uint8_t)(0xff00 >> prefix % 8);
		memset(network.address.bytes + whole + 1, 0,
		       sizeof(network.address.bytes) - whole - 1);
	}
	return network;
}

static int add_network(struct hosts *hosts, const struct network *network)
{
	struct host_network *entry = calloc(1, sizeof(*entry)), *other;

	if (!entry)
		return -ENOMEM;
	entry->network = masked(&network->address, network->prefix);
	HASH_FIND(hh, hosts->networks, &entry->network, sizeof(entry->network), other);
	if (other) {
		free(entry);
		return 0;
	}
	HASH_ADD(hh, hosts->networks, network, sizeof(entry->network), entry);
	hosts->has_prefix[network->address.family == AF_INET6][network->prefix] = true;
	return 0;
}

static int add_name(struct hosts *hosts, const char *name, bool has_below)
{
	struct host_name *entry;

	HASH_FIND_STR(hosts->names, name, entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry) + strlen(name) + 1);
		if (!entry)
			return -ENOMEM;
		strcpy(entry->text, name);
		HASH_ADD_KEYPTR(hh, hosts->names, entry->text, (unsigned)strlen(name), entry);
	}
	entry->has_below |= has_below;
	return 0;
}

static int add_text(struct hosts *hosts, const char *text, char *error, size_t error_size)
{
	bool has_below = text[0] == '.';
	struct text host = {text + has_below, strlen(text) - has_below};
	char name[NAME_SIZE], shown[80];
	struct address address;
	struct network network;

	if (network_parse(&network, text, strlen(text)) == 0)
		return add_network(hosts, &network);
	/* ".1.2.3.4" has nothing below it. */
	if (http_canonical_host(host, name, sizeof(name)) == 0 &&
	    address_parse(&address, name, strlen(name)) != 0)
		return add_name(hosts, name, has_below);
	secret_print(text, shown, sizeof(shown));
	snprintf(error, error_size,
		 "'%s' is no target: a name, .NAME for it and all below it, an address, or a "
		 "network such as 203.0.113.0/24",
		 shown);
	return -EINVAL;
}

int hosts_new(struct hosts **ret, const char *const *texts, size_t count, char *error,
	      size_t error_size)
{
	struct hosts *hosts = count > 0 ? calloc(1, sizeof(*hosts)) : NULL;
	int r = count > 0 && !hosts ? -ENOMEM : 0;

	for (size_t i = 0; i < count && !r; i++)
		r = add_text(hosts, texts[i], error, error_size);
	if (r)
		hosts_free(hosts);
	else
		*ret = hosts;
	return r;
}

void hosts_free(struct hosts *hosts)
{
	struct host_name *name, *next_name;
	struct host_network *network, *next_network;

	if (!hosts)
		return;
	name = hosts->names;
	network = hosts->networks;
	HASH_CLEAR(hh, hosts->names);
	HASH_CLEAR(hh, hosts->networks);
	for (; name; name = next_name) {
		next_name = name->hh.next;
		free(name);
	}
	for (; network; network = next_network) {
		next_network = network->hh.next;
		free(network);
	}
	free(hosts);
}

/* Looks once for each length of prefix that the list has. */
static bool contain_address(const struct hosts *hosts, const struct address *address)
{
	bool is_ipv6 = address->family == AF_INET6;
	struct host_network *entry = NULL;
	struct network network;

	for (unsigned prefix = 0; prefix <= (is_ipv6 ? 128 : 32) && !entry; prefix++) {
		if (!hosts->has_prefix[is_ipv6][prefix])
			continue;
		network = masked(address, prefix);
		HASH_FIND(hh, hosts->networks, &network, sizeof(network), entry);
	}
	return entry;
}

/* Packets to an IPv6 address with IPv4 in it end up at the IPv4 address: a list that names that one means both. */
static bool contain_carried(const struct hosts *hosts, const struct address *address)
{
	struct address carried;

	return address_unwrap(address, &carried) && contain_address(hosts, &carried);
}

/* The name itself, then what stands behind each of its dots. */
static bool contain_name(const struct hosts *hosts, const char *name)
{
	struct host_name *entry;

	HASH_FIND_STR(hosts->names, name, entry);
	if (entry)
		return true;
	while ((name = strchr(name, '.'))) {
		name++;
		HASH_FIND_STR(hosts->names, name, entry);
		if (entry && entry->has_below)
			return true;
	}
	return false;
}

bool hosts_contain(const struct hosts *hosts, const char *host)
{
	struct address address;

	if (!hosts)
		return false;
	if (address_parse(&address, host, strlen(host)) == 0)
		return contain_address(hosts, &address) || contain_carried(hosts, &address);
	return contain_name(hosts, host);
}

/* Digits without a leading zero; 0: none. */
static unsigned read_port(const char *text, const char **ret_end)
{
	unsigned port = 0;

	for (; *text >= '0' && *text <= '9' && port <= UINT16_MAX && (port > 0 || *text > '0');
	     text++)
		port = port * 10 + (unsigned)(*text - '0');
	*ret_end = text;
	return port;
}

int ports_add(struct ports *ports, const char *text, char *error, size_t error_size)
{
	const char *end;
	unsigned first = read_port(text, &end), last = first;
	char shown[80];

	if (*end == '-')
		last = read_port(end + 1, &end);
	if (*end || first == 0 || last < first || last > UINT16_MAX) {
		secret_print(text, shown, sizeof(shown));
		snprintf(error, error_size,
			 "'%s' is no port: 1 to 65535, or a range such as 8000-8999", shown);
		return -EINVAL;
	}
	for (unsigned port = first; port <= last; port++)
		ports->bits[port / 8] |= (uint8_t)(1U << port % 8);
	return 0;
}
