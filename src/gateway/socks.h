/* socks.h - the server's side of SOCKS5 (RFC 1928, RFC 1929) and SOCKS4/4a: bytes in, requests out; replies. Pure.
 *
 * Readers return the length of what they read (> 0), 0 when more bytes are needed, or the negative of an `enum
 * reason`. A verdict falls with the byte that decides it, however the bytes arrive. */
#ifndef FAIRLEAD_GATEWAY_SOCKS_H
#define FAIRLEAD_GATEWAY_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"

#define SOCKS_USER_MAX 255

enum socks_method { SOCKS_NO_PASSWORD = 0, SOCKS_PASSWORD = 2, SOCKS_NO_METHOD = 0xff };

struct socks_greeting {
	bool offers_none, offers_password;
};

/* Text of the client, not terminated: may hold any byte. Points into the bytes. */
struct socks_login {
	const char *user, *password;
	size_t user_len, password_len;
};

struct socks_request {
	char host[ENDPOINT_HOST_MAX + 1]; /* canonical, as http_canonical_host() */
	uint16_t port;
	char user[SOCKS_USER_MAX + 1]; /* SOCKS4 only: USERID */
};

/* -REASON_REQUEST_SYNTAX: another version, no method at all. */
long socks5_read_greeting(struct socks_greeting *ret, const char *bytes, size_t len);

/* -REASON_REQUEST_SYNTAX: another version, an empty name. */
long socks5_read_login(struct socks_login *ret, const char *bytes, size_t len);

/* -REASON_SOCKS_COMMAND (all but CONNECT), -REASON_SOCKS_ADDRESS (an address type or host that cannot be),
 * -REASON_REQUEST_SYNTAX (version, reserved byte, port 0). */
long socks5_read_request(struct socks_request *ret, const char *bytes, size_t len);

/* Likewise. 0.0.0.x with x > 0 announces a name (4a); USERID and name are bounded and end with NUL. */
long socks4_read_request(struct socks_request *ret, const char *bytes, size_t len);

/* Replies, into a buffer of at least 10 bytes; their length. `reply` of SOCKS5 as in reason.def, and 0.0.0.0:0 as the bound
 * address; SOCKS4: granted or rejected. */
size_t socks5_write_method(char *buffer, enum socks_method method);
size_t socks5_write_login(char *buffer, bool is_granted);
size_t socks5_write_reply(char *buffer, int reply);
size_t socks4_write_reply(char *buffer, bool is_granted);

#endif
