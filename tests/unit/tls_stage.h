/* tls_stage.h - certificates made for the test, and a TLS server that the test plays. */
#ifndef FAIRLEAD_TESTS_TLS_STAGE_H
#define FAIRLEAD_TESTS_TLS_STAGE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "stage.h"

/* A key and its certificate. */
struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

/* Self-signed when `issuer` is NULL, and then an authority. `names`: "DNS:proxy.test,IP:127.0.0.1", or NULL: none but a common
 * name. `days`: valid until then; a negative number is in the past. */
void identity_make(struct identity *ret, const struct identity *issuer, const char *names,
		   int days);
void identity_free(struct identity *identity);

/* "HOST:PORT=sha256//..." for its key. */
void identity_pin(const struct identity *identity, const char *place, char *buffer, size_t size);

/* Writes the certificate to a new file below /tmp, whose path goes to `path`, at least 32 bytes. The test unlinks it. */
void identity_write(const struct identity *identity, char *path);

/* What every server here may be: an authority and a server with the names proxy.test and 127.0.0.1. */
struct tls_world {
	struct identity authority, server;
	char ca_file[32];
};

void tls_world_init(struct tls_world *world);
void tls_world_fini(struct tls_world *world);

/* A server on a connected socket. It reads and writes only inside its functions, each of which waits until it is done. */
struct tls_server {
	struct stage *stage;
	SSL_CTX *context;
	SSL *ssl;
	int fd;
};

/* The context can be changed before tls_server_accept(). */
void tls_server_init(struct tls_server *server, struct stage *stage,
		     const struct identity *identity);
void tls_server_fini(struct tls_server *server);

/* One step of the handshake on `fd`, which stays the caller's: 1 done, 0 goes on, -1 failed. */
int tls_server_accept(struct tls_server *server, int fd);

void tls_server_say(struct tls_server *server, const void *bytes, size_t len);
void tls_server_expect(struct tls_server *server, const void *bytes, size_t len);

#endif
