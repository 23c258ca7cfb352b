/* tls_stage.c - certificates made for the test, and a TLS server that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tls_stage.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"

#define DAY_S 86400L

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	assert_non_null(extension);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

void identity_make(struct identity *ret, const struct identity *issuer, const char *names, int days)
{
	static long serial;
	const struct identity *by = issuer ? issuer : ret;
	X509_NAME *name;

	ret->key = EVP_EC_gen("P-256");
	ret->certificate = X509_new();
	assert_non_null(ret->key);
	assert_non_null(ret->certificate);
	X509_set_version(ret->certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(ret->certificate), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(ret->certificate), -1000 * DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(ret->certificate), days * DAY_S);
	X509_set_pubkey(ret->certificate, ret->key);
	name = X509_get_subject_name(ret->certificate);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const unsigned char *)(issuer ? "proxy.test" : "authority"), -1,
				   -1, 0);
	X509_set_issuer_name(ret->certificate, X509_get_subject_name(by->certificate));
	if (!issuer)
		add_extension(ret->certificate, by->certificate, NID_basic_constraints,
			      "critical,CA:TRUE");
	if (names)
		add_extension(ret->certificate, by->certificate, NID_subject_alt_name, names);
	assert_true(X509_sign(ret->certificate, by->key, EVP_sha256()) > 0);
}

void identity_free(struct identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
}

void identity_pin(const struct identity *identity, const char *place, char *buffer, size_t size)
{
	unsigned char *info = NULL, digest[SHA256_DIGEST_LENGTH];
	char text[BASE64_SIZE(sizeof digest)];
	int len = i2d_PUBKEY(identity->key, &info);

	assert_true(len > 0);
	SHA256(info, (size_t)len, digest);
	OPENSSL_free(info);
	base64_encode(text, digest, sizeof digest);
	snprintf(buffer, size, "%s=sha256//%s", place, text);
}

void identity_write(const struct identity *identity, char *path)
{
	FILE *file;

	strcpy(path, "/tmp/fairlead-test-XXXXXX");
	file = fdopen(mkstemp(path), "w");
	assert_non_null(file);
	assert_true(PEM_write_X509(file, identity->certificate));
	fclose(file);
}

void tls_world_init(struct tls_world *world)
{
	identity_make(&world->authority, NULL, NULL, 10);
	identity_make(&world->server, &world->authority, "DNS:proxy.test,IP:127.0.0.1", 10);
	identity_write(&world->authority, world->ca_file);
}

void tls_world_fini(struct tls_world *world)
{
	unlink(world->ca_file);
	identity_free(&world->authority);
	identity_free(&world->server);
}

/* --- the server --------------------------------------------------------------------------------------------------- */

void tls_server_init(struct tls_server *server, struct stage *stage,
		     const struct identity *identity)
{
	*server = (struct tls_server){.stage = stage, .context = SSL_CTX_new(TLS_server_method())};
	assert_non_null(server->context);
	signal(SIGPIPE, SIG_IGN); /* this server writes to its socket with write(2) */
	assert_true(SSL_CTX_use_certificate(server->context, identity->certificate));
	assert_true(SSL_CTX_use_PrivateKey(server->context, identity->key));
}

void tls_server_fini(struct tls_server *server)
{
	SSL_free(server->ssl);
	SSL_CTX_free(server->context);
}

/* 1 done, 0 again, -1 failed. */
static int outcome(struct tls_server *server, int r)
{
	int error = SSL_get_error(server->ssl, r);

	if (r > 0)
		return 1;
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

int tls_server_accept(struct tls_server *server, int fd)
{
	if (!server->ssl) {
		server->ssl = SSL_new(server->context);
		assert_true(SSL_set_fd(server->ssl, fd));
		SSL_set_mode(server->ssl,
			     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	}
	ERR_clear_error();
	return outcome(server, SSL_accept(server->ssl));
}

void tls_server_say(struct tls_server *server, const void *bytes, size_t len)
{
	size_t n;

	ERR_clear_error();
	STAGE_UNTIL(server->stage, SSL_write_ex(server->ssl, bytes, len, &n));
	assert_int_equal(n, len);
}

static bool has_read(struct tls_server *server, char *at, size_t *done, size_t len)
{
	size_t n;

	ERR_clear_error();
	while (*done < len && SSL_read_ex(server->ssl, at + *done, len - *done, &n))
		*done += n;
	return *done == len;
}

void tls_server_expect(struct tls_server *server, const void *bytes, size_t len)
{
	char *heard = malloc(len);
	size_t done = 0;

	assert_non_null(heard);
	STAGE_UNTIL(server->stage, has_read(server, heard, &done, len));
	assert_memory_equal(heard, bytes, len);
	free(heard);
}
