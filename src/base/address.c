/* address.c - IP addresses: strict reading, canonical text, special-purpose ranges. */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define IPV4_BYTES ((size_t)4)
#define IPV6_BYTES ((size_t)16)

static size_t address_len(const struct address *a)
{
	return a->family == AF_INET ? IPV4_BYTES : IPV6_BYTES;
}

/* RFC 3986 dec-octet: one to three digits, no leading zero, at most 255. Returns its length, or
 * 0. */
static size_t octet_parse(uint8_t *ret, const char *text, size_t len)
{
	unsigned value = 0;
	size_t n = 0;

	while (n < len && n < 4 && text[n] >= '0' && text[n] <= '9')
		value = value * 10 + (unsigned)(text[n++] - '0');
	if (n == 0 || value > 255 || (n > 1 && text[0] == '0'))
		return 0;
	*ret = (uint8_t)value;
	return n;
}

static int ipv4_parse(struct address *ret, const char *text, size_t len)
{
	struct address a = {.family = AF_INET};
	size_t at = 0, n;

	for (size_t i = 0; i < IPV4_BYTES; i++) {
		if (i > 0 && (at == len || text[at++] != '.'))
			return -EINVAL;
		n = octet_parse(&a.bytes[i], text + at, len - at);
		if (n == 0)
			return -EINVAL;
		at += n;
	}
	if (at != len)
		return -EINVAL;
	*ret = a;
	return 0;
}

static int ipv6_parse(struct address *ret, const char *text, size_t len)
{
	struct address a = {.family = AF_INET6};
	char copy[INET6_ADDRSTRLEN];

	/* A NUL inside would hide what stands behind it from inet_pton(). */
	if (len >= sizeof(copy) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET6, copy, a.bytes) != 1)
		return -EINVAL;
	*ret = a;
	return 0;
}

int address_parse(struct address *ret, const char *text, size_t len)
{
	if (len == 0)
		return -EINVAL;
	return memchr(text, ':', len) ? ipv6_parse(ret, text, len) : ipv4_parse(ret, text, len);
}

int address_from_sockaddr(struct address *ret, const struct sockaddr *sa)
{
	struct address a = {.family = sa->sa_family};

	if (sa->sa_family == AF_INET)
		memcpy(a.bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
		       IPV4_BYTES);
	else if (sa->sa_family == AF_INET6)
		memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		       IPV6_BYTES);
	else
		return -EINVAL;
	*ret = a;
	return 0;
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (a->family == AF_INET) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->bytes, IPV4_BYTES);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, a->bytes, IPV6_BYTES);
	return sizeof(*v6);
}

static unsigned group(const uint8_t *bytes, size_t index)
{
	return (unsigned)bytes[2 * index] << 8 | bytes[2 * index + 1];
}

/* The first of the longest runs of two or more zero groups (RFC 5952 4.2.2, 4.2.3); its length,
 * or 0. */
static size_t zero_run(const uint8_t *bytes, size_t groups, size_t *ret_start)
{
	size_t best = 1, start = 0, n;

	for (size_t i = 0; i < groups; i += n ? n : 1) {
		for (n = 0; i + n < groups && group(bytes, i + n) == 0;)
			n++;
		if (n > best) {
			best = n;
			start = i;
		}
	}
	*ret_start = start;
	return best > 1 ? best : 0;
}

static bool has_prefix(const uint8_t *bytes, const uint8_t *prefix, size_t bits)
{
	size_t whole = bits / 8;
	unsigned rest = (unsigned)(bits % 8);

	if (memcmp(bytes, prefix, whole) != 0)
		return false;
	return rest == 0 || (bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

static const uint8_t mapped_prefix[IPV6_BYTES] = {[10] = 0xff, [11] = 0xff};

/* RFC 5952; the mixed notation of its section 5 for IPv4-mapped addresses only, where the prefix
 * says what is inside. */
static size_t ipv6_print(const uint8_t *b, char *out, size_t size)
{
	bool mixed = has_prefix(b, mapped_prefix, 96);
	size_t groups = mixed ? 6 : 8, start, run = zero_run(b, groups, &start), len = 0;

	for (size_t i = 0; i < groups; i++) {
		if (run && i == start) {
			len += (size_t)snprintf(out + len, size - len, "::");
			i += run - 1;
			continue;
		}
		if (i > 0 && out[len - 1] != ':')
			out[len++] = ':';
		len += (size_t)snprintf(out + len, size - len, "%x", group(b, i));
	}
	if (mixed)
		len += (size_t)snprintf(out + len, size - len, ":%u.%u.%u.%u", b[12], b[13], b[14],
					b[15]);
	return len;
}

/* By hand: a plain request prints several, and printf costs 40 times as much. `out` holds INET_ADDRSTRLEN bytes. */
static void ipv4_print(const uint8_t *bytes, char *out)
{
	for (size_t i = 0; i < IPV4_BYTES; i++) {
		uint8_t byte = bytes[i];

		if (byte >= 100)
			*out++ = (char)('0' + byte / 100);
		if (byte >= 10)
			*out++ = (char)('0' + byte / 10 % 10);
		*out++ = (char)('0' + byte % 10);
		*out++ = i + 1 < IPV4_BYTES ? '.' : '\0';
	}
}

void address_print(const struct address *a, char *buffer, size_t size)
{
	char text[INET6_ADDRSTRLEN + 8] = "";
	size_t len;

	if (a->family == AF_INET)
		ipv4_print(a->bytes, text);
	else
		ipv6_print(a->bytes, text, sizeof(text));
	if (!size)
		return;
	len = strlen(text) < size ? strlen(text) : size - 1;
	memcpy(buffer, text, len);
	buffer[len] = '\0';
}

enum block_kind {
	BLOCK_SPECIAL,
	BLOCK_DOCUMENTATION,
	BLOCK_GLOBAL /* an exception inside a larger special block; stands before it */
};

struct block {
	uint8_t prefix[IPV6_BYTES];
	uint8_t bits;
	enum block_kind kind;
};

/* clang-format off */
/* IANA IPv4 Special-Purpose Address Registry (RFC 6890 and updates), and multicast (RFC 5771). */
static const struct block ipv4_blocks[] = {
	{{0},                8, BLOCK_SPECIAL},       /* RFC 791: this network */
	{{10},               8, BLOCK_SPECIAL},       /* RFC 1918 */
	{{100, 64},         10, BLOCK_SPECIAL},       /* RFC 6598: shared */
	{{127},              8, BLOCK_SPECIAL},       /* RFC 1122: loopback */
	{{169, 254},        16, BLOCK_SPECIAL},       /* RFC 3927: link local */
	{{172, 16},         12, BLOCK_SPECIAL},       /* RFC 1918 */
	{{192, 0, 0, 9},    32, BLOCK_GLOBAL},        /* RFC 7723: PCP anycast */
	{{192, 0, 0, 10},   32, BLOCK_GLOBAL},        /* RFC 8155: TURN anycast */
	{{192, 0, 0},       24, BLOCK_SPECIAL},       /* RFC 6890: protocol assignments */
	{{192, 0, 2},       24, BLOCK_DOCUMENTATION}, /* RFC 5737 */
	{{192, 88, 99},     24, BLOCK_SPECIAL},       /* RFC 7526: 6to4 relays, withdrawn */
	{{192, 168},        16, BLOCK_SPECIAL},       /* RFC 1918 */
	{{198, 18},         15, BLOCK_SPECIAL},       /* RFC 2544: benchmarks */
	{{198, 51, 100},    24, BLOCK_DOCUMENTATION}, /* RFC 5737 */
	{{203, 0, 113},     24, BLOCK_DOCUMENTATION}, /* RFC 5737 */
	{{224},              4, BLOCK_SPECIAL},       /* RFC 5771: multicast */
	{{240},              4, BLOCK_SPECIAL},       /* RFC 1112: reserved, broadcast */
};

/* IANA IPv6 Special-Purpose Address Registry, multicast, and site local (RFC 3879: withdrawn,
 * still in use). */
static const struct block ipv6_blocks[] = {
	{{0},                                128, BLOCK_SPECIAL}, /* unspecified */
	{{[15] = 1},                         128, BLOCK_SPECIAL}, /* loopback */
	{{0x00, 0x64, 0xff, 0x9b, [5] = 1},   48, BLOCK_SPECIAL}, /* RFC 8215 */
	{{0x01, 0x00},                        64, BLOCK_SPECIAL}, /* RFC 6666: discard */
	{{0x01, 0x00, [7] = 1},               64, BLOCK_SPECIAL}, /* RFC 9780: dummy prefix */
	{{0x20, 0x01, 0x00, 0x01, [15] = 1}, 128, BLOCK_GLOBAL},  /* RFC 7723 */
	{{0x20, 0x01, 0x00, 0x01, [15] = 2}, 128, BLOCK_GLOBAL},  /* RFC 8155 */
	{{0x20, 0x01, 0x00, 0x01, [15] = 3}, 128, BLOCK_GLOBAL},  /* RFC 9665 */
	{{0x20, 0x01, 0x00, 0x03},            32, BLOCK_GLOBAL},  /* RFC 7450: AMT */
	{{0x20, 0x01, [3] = 4, 0x01, 0x12},  48, BLOCK_GLOBAL},  /* RFC 7535: AS112 */
	{{0x20, 0x01, 0x00, 0x20},            28, BLOCK_GLOBAL},  /* RFC 7343: ORCHIDv2 */
	{{0x20, 0x01, 0x00, 0x30},            28, BLOCK_GLOBAL},  /* RFC 9374: DETs */
	{{0x20, 0x01},                        23, BLOCK_SPECIAL}, /* RFC 2928, with Teredo */
	{{0x20, 0x01, 0x0d, 0xb8},            32, BLOCK_DOCUMENTATION}, /* RFC 3849 */
	{{0x3f, 0xff},                        20, BLOCK_DOCUMENTATION}, /* RFC 9637 */
	{{0x5f, 0x00},                        16, BLOCK_SPECIAL}, /* RFC 9602: SRv6 */
	{{0xfc},                               7, BLOCK_SPECIAL}, /* RFC 4193: unique local */
	{{0xfe, 0x80},                        10, BLOCK_SPECIAL}, /* RFC 4291: link local */
	{{0xfe, 0xc0},                        10, BLOCK_SPECIAL}, /* RFC 3879: site local */
	{{0xff},                               8, BLOCK_SPECIAL}, /* RFC 4291: multicast */
};

/* Where IPv6 carries an IPv4 address that the packets end up at: byte offset of it behind the
 * prefix. Teredo and RFC 8215 are special as they stand, so nothing needs to be taken out of
 * them. */
static const struct {
	uint8_t prefix[IPV6_BYTES];
	uint8_t bits, offset;
} carriers[] = {
	{{[10] = 0xff, [11] = 0xff},        96, 12}, /* RFC 4291 2.5.5.2: IPv4-mapped */
	{{0x00, 0x64, 0xff, 0x9b},          96, 12}, /* RFC 6052: NAT64 */
	{{0x20, 0x02},                      16, 2},  /* RFC 3056: 6to4 */
	{{0},                               96, 12}, /* RFC 4291 2.5.5.1: IPv4-compatible */
};
/* clang-format on */

static enum block_kind blocks_find(const struct block *blocks, size_t count, const uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++)
		if (has_prefix(bytes, blocks[i].prefix, blocks[i].bits))
			return blocks[i].kind;
	return BLOCK_GLOBAL;
}

static enum block_kind ipv4_kind(const uint8_t *bytes)
{
	return blocks_find(ipv4_blocks, sizeof(ipv4_blocks) / sizeof(*ipv4_blocks), bytes);
}

bool address_unwrap(const struct address *a, struct address *ret)
{
	for (size_t i = 0; a->family == AF_INET6 && i < sizeof(carriers) / sizeof(*carriers); i++) {
		if (!has_prefix(a->bytes, carriers[i].prefix, carriers[i].bits))
			continue;
		*ret = (struct address){.family = AF_INET};
		memcpy(ret->bytes, a->bytes + carriers[i].offset, 4);
		return true;
	}
	return false;
}

static enum block_kind address_kind(const struct address *a)
{
	struct address carried;
	enum block_kind kind;

	if (a->family == AF_INET)
		return ipv4_kind(a->bytes);
	kind = blocks_find(ipv6_blocks, sizeof(ipv6_blocks) / sizeof(*ipv6_blocks), a->bytes);
	if (kind == BLOCK_GLOBAL && address_unwrap(a, &carried))
		return ipv4_kind(carried.bytes);
	return kind;
}

bool address_is_special(const struct address *a)
{
	return address_kind(a) != BLOCK_GLOBAL;
}

bool address_is_bogon(const struct address *a)
{
	return address_kind(a) == BLOCK_SPECIAL;
}

/* One to three digits without a leading zero. */
static int prefix_parse(unsigned *ret, const char *text, size_t len, unsigned max)
{
	unsigned value = 0;

	if (len == 0 || len > 3 || (len > 1 && text[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

int network_parse(struct network *ret, const char *text, size_t len)
{
	const char *slash = memchr(text, '/', len);
	size_t address_text = slash ? (size_t)(slash - text) : len;
	struct network n = {0};
	int r;

	r = address_parse(&n.address, text, address_text);
	if (r)
		return r;
	n.prefix = (unsigned)address_len(&n.address) * 8;
	if (slash) {
		r = prefix_parse(&n.prefix, slash + 1, len - address_text - 1, n.prefix);
		if (r)
			return r;
	}
	*ret = n;
	return 0;
}

bool network_contains(const struct network *n, const struct address *a)
{
	return n->address.family == a->family && has_prefix(a->bytes, n->address.bytes, n->prefix);
}
