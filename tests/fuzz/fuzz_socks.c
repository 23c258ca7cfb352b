/* fuzz_socks.c - what SOCKS clients say: a cut changes no verdict, what is read is in range, and reads the same again. */
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "gateway/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

/* VER, NMETHODS, 255 methods; VER, two texts; header, USERID, name. */
#define LONGEST (8 + 256 + 256)

typedef long reader(void *ret, const char *bytes, size_t len);

static long read_greeting(void *ret, const char *bytes, size_t len)
{
	return socks5_read_greeting(ret, bytes, len);
}

static long read_login(void *ret, const char *bytes, size_t len)
{
	return socks5_read_login(ret, bytes, len);
}

static long read_socks5(void *ret, const char *bytes, size_t len)
{
	return socks5_read_request(ret, bytes, len);
}

static long read_socks4(void *ret, const char *bytes, size_t len)
{
	return socks4_read_request(ret, bytes, len);
}

/* Reads a part in a block of its own size, so that the address sanitizer sees each byte behind it. */
static long read_part(reader *read, void *ret, const char *bytes, size_t len)
{
	char *copy = malloc(len ? len : 1);
	long result;

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	result = read(ret, copy, len);
	free(copy);
	return result;
}

/* Nothing before the verdict, the same behind it. Returns the verdict. */
static long check_split(reader *read, void *ret, const char *bytes, size_t len)
{
	long whole = read_part(read, ret, bytes, len), part, before = 0;

	CHECK(whole <= (long)len && whole > -REASON_COUNT);
	for (size_t cut = 0; cut < len && cut <= LONGEST; cut++) {
		part = read_part(read, ret, bytes, cut);
		CHECK(part == 0 || part == whole);
		CHECK(part != 0 || before == 0);
		CHECK(whole <= 0 || (part != 0) == (cut >= (size_t)whole));
		before = part;
	}
	CHECK(whole != 0 || len <= LONGEST);
	CHECK(read_part(read, ret, bytes, len) == whole);
	return whole;
}

static void check_canonical(const struct socks_request *request)
{
	char again[ENDPOINT_HOST_MAX + 1];
	size_t len = strnlen(request->host, sizeof(request->host));

	CHECK(len > 0 && len <= ENDPOINT_HOST_MAX && request->port > 0);
	CHECK(strnlen(request->user, sizeof(request->user)) <= SOCKS_USER_MAX);
	CHECK(!http_canonical_host((struct text){request->host, len}, again, sizeof(again)));
	CHECK(strcmp(request->host, again) == 0);
}

/* The request that names the same target as text. */
static void check_round_trip(const struct socks_request *request)
{
	size_t host_len = strlen(request->host), user_len = strlen(request->user);
	struct socks_request again;
	char bytes[LONGEST] = {5, 1, 0, 3, (char)host_len};

	memcpy(bytes + 5, request->host, host_len);
	bytes[5 + host_len] = (char)(request->port >> 8);
	bytes[6 + host_len] = (char)request->port;
	CHECK(socks5_read_request(&again, bytes, 7 + host_len) == (long)(7 + host_len));
	CHECK(!strcmp(again.host, request->host) && again.port == request->port);
	memcpy(bytes, (char[]){4, 1, (char)(request->port >> 8), (char)request->port, 0, 0, 0, 1},
	       8);
	memcpy(bytes + 8, request->user, user_len + 1);
	memcpy(bytes + 9 + user_len, request->host, host_len + 1);
	CHECK(socks4_read_request(&again, bytes, 10 + user_len + host_len) ==
	      (long)(10 + user_len + host_len));
	CHECK(!strcmp(again.host, request->host) && again.port == request->port);
	CHECK(!strcmp(again.user, request->user));
}

static void check_request(reader *read, const char *bytes, size_t len)
{
	struct socks_request request;

	if (check_split(read, &request, bytes, len) <= 0)
		return;
	check_canonical(&request);
	check_round_trip(&request);
}

/* Only what was offered may be chosen. */
static void check_greeting(const char *bytes, size_t len)
{
	struct socks_greeting greeting;
	long used = check_split(read_greeting, &greeting, bytes, len);

	if (used <= 0)
		return;
	CHECK(greeting.offers_none == !!memchr(bytes + 2, 0, (size_t)used - 2));
	CHECK(greeting.offers_password == !!memchr(bytes + 2, 2, (size_t)used - 2));
}

static void check_login(const char *bytes, size_t len)
{
	struct socks_login login;
	long used = check_split(read_login, &login, bytes, len);

	if (used <= 0)
		return;
	CHECK(socks5_read_login(&login, bytes, len) == used);
	CHECK(login.user == bytes + 2 && login.user_len > 0 && login.user_len <= 255);
	CHECK(login.password == login.user + login.user_len + 1);
	CHECK(login.password + login.password_len == bytes + used);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *bytes = (const char *)input;

	check_greeting(bytes, size);
	check_login(bytes, size);
	check_request(read_socks5, bytes, size);
	check_request(read_socks4, bytes, size);
	return 0;
}
