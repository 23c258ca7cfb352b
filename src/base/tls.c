/* tls.c - what a process needs to speak TLS as a client. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/tls_parts.h"

/* A chain has its leaf, one to three intermediates and the anchor; its messages seldom pass 8 KiB. */
#define CHAIN_DEPTH_MAX 8
#define CHAIN_BYTES_MAX 65536

static void restrain(SSL_CTX *context)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);

	SSL_CTX_set_options(context,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	/* An idle stream holds no buffer; a caller writes a part, and the rest from wherever it was moved to. */
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(context, 1); /* one recv(2) a record, not two */
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_verify_depth(context, CHAIN_DEPTH_MAX);
	SSL_CTX_set_max_cert_list(context, CHAIN_BYTES_MAX);
	/* RFC 9525 2, 6.3: the subject's common name is no name of a server, and a wildcard is a whole label. */
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
						   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
}

/* The system's certificates are looked up by their hash when a chain needs them. A bundle that the environment names costs
 * 40 ms and a megabyte, so a process without https members does not read it. */
int tls_prepare(struct tls *tls)
{
	if (tls->is_prepared)
		return 0;
	if (!SSL_CTX_set_default_verify_dir(tls->context) ||
	    (getenv(X509_get_default_cert_file_env()) &&
	     !SSL_CTX_set_default_verify_file(tls->context)))
		return -ENOMEM;
	tls->is_prepared = true;
	return 0;
}

/* A file of one's own may name any certificate as an anchor, an intermediate or the proxy's own included. */
static int trust(struct tls *tls, const char *ca_file, char *error, size_t error_size)
{
	const char *why;

	ERR_clear_error();
	if (SSL_CTX_load_verify_file(tls->context, ca_file)) {
		X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(tls->context),
					    X509_V_FLAG_PARTIAL_CHAIN);
		tls->is_prepared = true;
		return 0;
	}
	why = ERR_reason_error_string(ERR_peek_error());
	ERR_clear_error();
	snprintf(error, error_size, "'%s' holds no certificates that can be read: %s", ca_file,
		 why ? why : "unknown error");
	return -EINVAL;
}

int tls_new(struct tls **ret, const char *ca_file, char *error, size_t error_size)
{
	struct tls *tls = calloc(1, sizeof *tls);
	int r = -ENOMEM;

	if (!tls)
		return r;
	tls->users = 1;
	tls->method = stream_bio_method();
	tls->context = SSL_CTX_new(TLS_client_method());
	if (!tls->method || !tls->context ||
	    !SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION))
		goto out;
	restrain(tls->context);
	r = *ca_file ? trust(tls, ca_file, error, error_size) : 0;
out:
	if (r)
		tls_free(tls);
	else
		*ret = tls;
	return r;
}

struct tls *tls_ref(struct tls *tls)
{
	if (tls)
		tls->users++;
	return tls;
}

void tls_free(struct tls *tls)
{
	struct pin *pin;

	if (!tls || --tls->users)
		return;
	while ((pin = tls->pins)) {
		tls->pins = pin->next;
		free(pin);
	}
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls);
}

/* --- pins --------------------------------------------------------------------------------------------------------- */

static void print_place(char place[PIN_PLACE_MAX], const char *host, uint16_t port)
{
	snprintf(place, PIN_PLACE_MAX, "%s:%u", host, port);
}

/* The place of an https member, as the member itself would be named. */
static int read_place(char place[PIN_PLACE_MAX], const char *text, size_t len)
{
	const struct endpoint_rules rules = {.default_scheme = SCHEME_HTTPS,
					     .colon_order = COLON_HOST_FIRST,
					     .allow_private = true,
					     .allow_single_label = true};
	struct endpoint endpoint;
	int r = endpoint_parse(&endpoint, text, len, &rules);

	if (r)
		return r < 0 ? r : -EINVAL;
	if (endpoint.scheme == SCHEME_HTTPS && !endpoint.secret)
		print_place(place, endpoint.host, endpoint.port);
	else
		r = -EINVAL;
	endpoint_fini(&endpoint);
	return r;
}

/* Only the one spelling of a digest is taken, so that digests are compared as text. */
static int read_key(char key[BASE64_SIZE(PIN_BYTES)], const char *text)
{
	char bytes[BASE64_SIZE(PIN_BYTES)];
	size_t len;

	if (strlen(text) != BASE64_SIZE(PIN_BYTES) - 1 ||
	    base64_decode(bytes, &len, text, strlen(text)) || len != PIN_BYTES)
		return -EINVAL;
	base64_encode(key, bytes, len);
	return strcmp(key, text) ? -EINVAL : 0;
}

int tls_pin(struct tls *tls, const char *text, char *error, size_t error_size)
{
	static const char method[] = "=sha256//";
	const char *key = strstr(text, method);
	struct pin *pin = calloc(1, sizeof *pin);
	int r = -EINVAL;

	if (!pin)
		return -ENOMEM;
	if (key)
		r = read_place(pin->place, text, (size_t)(key - text));
	if (!r)
		r = read_key(pin->key, key + sizeof method - 1);
	if (r) {
		snprintf(error, error_size,
			 "'%.300s' is no pin: HOST:PORT=sha256//, then 44 characters of base 64",
			 text);
		free(pin);
		return r;
	}
	pin->next = tls->pins;
	tls->pins = pin;
	return 0;
}

const struct pin *pin_find(const struct tls *tls, const char *host, uint16_t port)
{
	const struct pin *pin = tls->pins;
	char place[PIN_PLACE_MAX];

	print_place(place, host, port);
	while (pin && strcmp(pin->place, place))
		pin = pin->next;
	return pin;
}

bool pin_is_met(const struct pin *pin, SSL *ssl)
{
	X509 *certificate = SSL_get0_peer_certificate(ssl);
	unsigned char *info = NULL, digest[PIN_BYTES];
	const char *place = pin->place;
	char key[BASE64_SIZE(PIN_BYTES)];
	int len = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &info) : -1;

	if (len < 0)
		return false;
	SHA256(info, (size_t)len, digest);
	OPENSSL_free(info);
	base64_encode(key, digest, sizeof digest);
	for (; pin; pin = pin->next)
		if (!strcmp(pin->place, place) && !strcmp(pin->key, key))
			return true;
	return false;
}
