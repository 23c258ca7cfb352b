/* blame.h - why a visit ended, in the words of tables/reason.def: the same as dial's for the same fault. Pure.
 *
 * libcurl tells less than dial sees; what is lost is listed in docs/decisions.md. */
#ifndef FAIRLEAD_FETCH_BLAME_H
#define FAIRLEAD_FETCH_BLAME_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/endpoint.h"
#include "base/result.h"

/* How far a visit has come, anew for each redirect. */
enum phase {
	PHASE_NAME,       /* the member's name is looked up; of a direct member the target's */
	PHASE_CONNECT,    /* TCP */
	PHASE_HANDSHAKE,  /* TLS with the member, CONNECT, SOCKS */
	PHASE_TARGET_TLS, /* through the tunnel */
	PHASE_REQUEST,    /* under way, or waiting for the head of the response */
	PHASE_BODY,       /* the head is there */
	PHASE_COUNT
};

struct blame {
	enum scheme scheme; /* of the member */
	enum phase phase;
	bool is_tls;       /* with the target: what is said there is not the member's */
	enum reason known; /* what we stopped it for; REASON_OK: we did not, see the rest */
	CURLcode code;
	CURLproxycode proxy_code;
	int os_error;
	const char *words; /* libcurl's, for the error number of OpenSSL in them */
};

/* It failed. Never REASON_OK. */
enum reason blame_reason(const struct blame *blame);

/* What an answer to CONNECT says; REASON_OK for 2xx. */
enum reason blame_connect_status(int status);

#endif
