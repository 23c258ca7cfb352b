/* tls.h - what a process needs to speak TLS as a client: trust anchors and pins; at least TLS 1.2, every certificate
 * verified (RFC 5280, RFC 9525). One context serves all streams of the process; no session is kept or resumed. */
#ifndef FAIRLEAD_BASE_TLS_H
#define FAIRLEAD_BASE_TLS_H

#include <stddef.h>

#include "base/result.h"

struct tls;

/* `ca_file`: PEM certificates to trust in place of the system's, or "". 0, -ENOMEM, or -EINVAL with a line in `error`
 * that names the file. */
MUST_USE int tls_new(struct tls **ret, const char *ca_file, char *error, size_t error_size);

/* One more user. Accepts and returns NULL. */
struct tls *tls_ref(struct tls *tls);

/* One user less; streams are users. Accepts NULL. */
void tls_free(struct tls *tls);

/* "HOST:PORT=sha256//BASE64": the server there must have this public key (SHA-256 of its SubjectPublicKeyInfo) besides a
 * certificate that verifies. Several for one place: any of them. 0, -ENOMEM, or -EINVAL with a line in `error`. */
MUST_USE int tls_pin(struct tls *tls, const char *text, char *error, size_t error_size);

#endif
