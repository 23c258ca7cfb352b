/* socks.c - the server's side of SOCKS5 and SOCKS4/4a.
 *
 * Each reader looks at a prefix of what the client sends, from its first byte on, and stops at the first byte that is
 * missing or wrong. So more bytes never change a verdict, and nothing is kept between calls. */
#include "gateway/socks.h"

#include <string.h>

#include "base/address.h"
#include "base/http.h"

enum {
	SOCKS5_VERSION = 5,
	LOGIN_VERSION = 1, /* RFC 1929 2 */
	SOCKS4_VERSION = 4,
	COMMAND_CONNECT = 1,
	TYPE_IPV4 = 1, /* RFC 1928 5 */
	TYPE_NAME = 3,
	TYPE_IPV6 = 4,
};

/* A name of ENDPOINT_HOST_MAX bytes with the dot of the root. */
#define HOST_TEXT_MAX ((size_t)ENDPOINT_HOST_MAX + 1)

long socks5_read_greeting(struct socks_greeting *ret, const char *bytes, size_t len)
{
	struct socks_greeting greeting = {0};
	size_t count;

	if (len >= 1 && bytes[0] != SOCKS5_VERSION)
		return -REASON_REQUEST_SYNTAX;
	if (len < 2)
		return 0;
	count = (uint8_t)bytes[1];
	if (count == 0)
		return -REASON_REQUEST_SYNTAX;
	if (len < 2 + count)
		return 0;
	greeting.offers_none = memchr(bytes + 2, SOCKS_NO_PASSWORD, count);
	greeting.offers_password = memchr(bytes + 2, SOCKS_PASSWORD, count);
	*ret = greeting;
	return (long)(2 + count);
}

long socks5_read_login(struct socks_login *ret, const char *bytes, size_t len)
{
	struct socks_login login = {0};

	if (len >= 1 && bytes[0] != LOGIN_VERSION)
		return -REASON_REQUEST_SYNTAX;
	if (len < 2)
		return 0;
	login.user_len = (uint8_t)bytes[1];
	if (login.user_len == 0)
		return -REASON_REQUEST_SYNTAX;
	if (len < 3 + login.user_len)
		return 0;
	login.user = bytes + 2;
	/* RFC 1929 has no empty password, but clients whose user name is all that counts send one. */
	login.password_len = (uint8_t)login.user[login.user_len];
	login.password = login.user + login.user_len + 1;
	if (len < 3 + login.user_len + login.password_len)
		return 0;
	*ret = login;
	return (long)(3 + login.user_len + login.password_len);
}

static void print_address(struct socks_request *request, int family, const char *bytes)
{
	struct address address = {.family = family};

	memcpy(address.bytes, bytes, family == AF_INET ? 4 : 16);
	address_print(&address, request->host, sizeof(request->host));
}

static uint16_t port_at(const char *bytes)
{
	return (uint16_t)((uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]);
}

/* Can `len` bytes begin a name or the text of an address? What they are is judged when all are there. */
static bool is_host_text(const char *bytes, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_:";

	for (size_t i = 0; i < len; i++)
		if (!bytes[i] || !strchr(allowed, bytes[i]))
			return false;
	return true;
}

/* The target's host as RFC 1928 5 has it: type and address. Like a reader. */
static long read_host(struct socks_request *request, const char *bytes, size_t len)
{
	size_t name_len;

	if (len < 1)
		return 0;
	if (bytes[0] == TYPE_IPV4 || bytes[0] == TYPE_IPV6) {
		bool is_ipv4 = bytes[0] == TYPE_IPV4;
		size_t need = is_ipv4 ? 5 : 17;

		if (len < need)
			return 0;
		print_address(request, is_ipv4 ? AF_INET : AF_INET6, bytes + 1);
		return (long)need;
	}
	if (bytes[0] != TYPE_NAME)
		return -REASON_SOCKS_ADDRESS;
	if (len < 2)
		return 0;
	name_len = (uint8_t)bytes[1];
	if (name_len == 0 || name_len > HOST_TEXT_MAX)
		return -REASON_SOCKS_ADDRESS;
	if (!is_host_text(bytes + 2, len - 2 < name_len ? len - 2 : name_len))
		return -REASON_SOCKS_ADDRESS;
	if (len < 2 + name_len)
		return 0;
	if (http_canonical_host((struct text){bytes + 2, name_len}, request->host,
				sizeof(request->host)))
		return -REASON_SOCKS_ADDRESS;
	return (long)(2 + name_len);
}

long socks5_read_request(struct socks_request *ret, const char *bytes, size_t len)
{
	struct socks_request request = {0};
	long host_len;
	size_t used;

	if (len >= 1 && bytes[0] != SOCKS5_VERSION)
		return -REASON_REQUEST_SYNTAX;
	if (len >= 2 && bytes[1] != COMMAND_CONNECT)
		return -REASON_SOCKS_COMMAND;
	if (len >= 3 && bytes[2] != 0)
		return -REASON_REQUEST_SYNTAX;
	if (len < 4)
		return 0;
	host_len = read_host(&request, bytes + 3, len - 3);
	if (host_len <= 0)
		return host_len;
	used = 3 + (size_t)host_len;
	if (len < used + 2)
		return 0;
	request.port = port_at(bytes + used);
	if (request.port == 0)
		return -REASON_REQUEST_SYNTAX;
	*ret = request;
	return (long)(used + 2);
}

/* A text that ends with NUL after at most `max` bytes. Its length with the NUL, 0: more bytes are needed, -1: too long. */
static long text_end(const char *bytes, size_t len, size_t max)
{
	const char *end = len > 0 ? memchr(bytes, '\0', len) : NULL;
	size_t text_len = end ? (size_t)(end - bytes) : len;

	if (text_len > max)
		return -1;
	return end ? (long)text_len + 1 : 0;
}

/* The name of SOCKS4a, behind the USERID. Like a reader. */
static long read_socks4_name(struct socks_request *request, const char *bytes, size_t len)
{
	long used = text_end(bytes, len, HOST_TEXT_MAX);

	if (used < 0 || !is_host_text(bytes, used > 0 ? (size_t)used - 1 : len))
		return -REASON_SOCKS_ADDRESS;
	if (used == 0)
		return 0;
	if (http_canonical_host((struct text){bytes, (size_t)used - 1}, request->host,
				sizeof(request->host)))
		return -REASON_SOCKS_ADDRESS;
	return used;
}

/* VN, CD, DSTPORT, DSTIP, USERID, NUL, and in SOCKS4a behind 0.0.0.x a name and NUL. */
long socks4_read_request(struct socks_request *ret, const char *bytes, size_t len)
{
	static const char unnamed[3];
	struct socks_request request = {0};
	long user_len, name_len = 0;

	if (len >= 1 && bytes[0] != SOCKS4_VERSION)
		return -REASON_REQUEST_SYNTAX;
	if (len >= 2 && bytes[1] != COMMAND_CONNECT)
		return -REASON_SOCKS_COMMAND;
	if (len >= 4 && port_at(bytes + 2) == 0)
		return -REASON_REQUEST_SYNTAX;
	if (len < 8)
		return 0;
	request.port = port_at(bytes + 2);
	user_len = text_end(bytes + 8, len - 8, SOCKS_USER_MAX);
	if (user_len < 0)
		return -REASON_REQUEST_SYNTAX;
	if (user_len == 0)
		return 0;
	memcpy(request.user, bytes + 8, (size_t)user_len);
	if (memcmp(bytes + 4, unnamed, sizeof(unnamed)) == 0 && bytes[7] != 0) {
		name_len =
		    read_socks4_name(&request, bytes + 8 + user_len, len - 8 - (size_t)user_len);
		if (name_len <= 0)
			return name_len;
	} else {
		print_address(&request, AF_INET, bytes + 4);
	}
	*ret = request;
	return 8 + user_len + name_len;
}

size_t socks5_write_method(char *buffer, enum socks_method method)
{
	buffer[0] = SOCKS5_VERSION;
	buffer[1] = (char)method;
	return 2;
}

size_t socks5_write_login(char *buffer, bool is_granted)
{
	buffer[0] = LOGIN_VERSION;
	buffer[1] = is_granted ? 0 : 1;
	return 2;
}

size_t socks5_write_reply(char *buffer, int reply)
{
	const char bytes[10] = {SOCKS5_VERSION, (char)reply, 0, TYPE_IPV4};

	memcpy(buffer, bytes, sizeof(bytes));
	return sizeof(bytes);
}

size_t socks4_write_reply(char *buffer, bool is_granted)
{
	const char bytes[8] = {0, is_granted ? 90 : 91};

	memcpy(buffer, bytes, sizeof(bytes));
	return sizeof(bytes);
}
