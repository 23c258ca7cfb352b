/* url.h - where the store is: redis:// and unix:// URLs. */
#ifndef FAIRLEAD_STORE_URL_H
#define FAIRLEAD_STORE_URL_H

#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct store_url {
	enum { STORE_TCP, STORE_UNIX } kind;
	char host[256]; /* STORE_TCP: name or address, IPv6 without brackets */
	uint16_t port;
	char path[108];                /* STORE_UNIX */
	char user[256], password[512]; /* "" = none; wiped by store_url_wipe() */
	int db;
};

/* Reads redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=n]; user and password are
 * percent-decoded. Returns 0, or -EINVAL with a text in `error` that says what is wrong and never shows the
 * password. Schemes that this version does not speak (rediss, sentinel, cluster) are named as such. */
MUST_USE int store_url_parse(struct store_url *ret, const char *text, char *error,
			     size_t error_size);

/* "redis://host:port/db" or "unix:///path", without user and password. */
void store_url_print(const struct store_url *url, char *buffer, size_t size);

void store_url_wipe(struct store_url *url);

#endif
