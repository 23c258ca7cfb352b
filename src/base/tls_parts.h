/* tls_parts.h - what the context (tls.c) and the streams that use it (stream_tls.c) share; nobody else includes it. */
#ifndef FAIRLEAD_BASE_TLS_PARTS_H
#define FAIRLEAD_BASE_TLS_PARTS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base64.h"
#include "base/endpoint.h"
#include "base/tls.h"

#define PIN_BYTES 32
#define PIN_PLACE_MAX (ENDPOINT_HOST_MAX + sizeof ":65535")

struct pin {
	struct pin *next;
	char place[PIN_PLACE_MAX]; /* "host:port", canonical, IPv6 without brackets */
	char key[BASE64_SIZE(PIN_BYTES)];
};

struct tls {
	SSL_CTX *context;
	bool is_prepared;   /* it has its trust anchors */
	BIO_METHOD *method; /* how OpenSSL reaches the socket of a stream */
	struct pin *pins;
	size_t users; /* whoever made it or took a reference, and each of its streams */
};

/* Sees to the trust anchors, before the first stream. 0 or -ENOMEM. */
MUST_USE int tls_prepare(struct tls *tls);

/* The first pin for host:port, or NULL. */
const struct pin *pin_find(const struct tls *tls, const char *host, uint16_t port);

/* The peer's public key is one of those that stand for the place of `pin`. */
bool pin_is_met(const struct pin *pin, SSL *ssl);

/* NULL: no memory. */
BIO_METHOD *stream_bio_method(void);

#endif
