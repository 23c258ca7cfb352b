/* fetch.h - download one http(s) URL on the loop; the only place of libcurl.
 *
 * A fetch is alone: no cookies, no .netrc, no connection kept for the next one. Proxies of the environment are used
 * (http_proxy and so on), here and nowhere else. While a name is looked up there is a second thread, libcurl's. */
#ifndef FAIRLEAD_FETCH_FETCH_H
#define FAIRLEAD_FETCH_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct fetch;

/* All of it is copied. */
struct fetch_request {
	const char *url; /* http:// or https:// only, also after redirects (at most 5) */
	/* Validators of the last good answer, for If-None-Match and If-Modified-Since. "" or NULL: none; so is one that
	 * could not stand in a header. */
	const char *etag, *modified;
	size_t max_bytes;               /* of the decoded body */
	int64_t timeout_ms, connect_ms; /* of the whole, of each connection; > 0 */
};

struct fetch_answer {
	int status;        /* HTTP status; 0: none */
	bool is_unchanged; /* 304 */
	/* The decoded body, in an unlinked temporary file, at its first byte; the callee closes it. -1: none */
	int fd;
	size_t bytes;
	/* Of this answer; "": none, or too long. Content-Type in lower case and without parameters. */
	char etag[256], modified[64], type[128];
};

/* `result`:
 *   0              200 with a whole body, or 304 to a validator
 *   -EREMOTEIO     another status; answer->status tells
 *   -EMSGSIZE      the body is larger than max_bytes
 *   -EPROTO        cut short, bad framing or encoding, headers without end
 *   -EPERM         a redirect to another scheme, or too many of them
 *   -ETIMEDOUT     connection or whole took too long
 *   -ENOENT        the name (or that of the environment's proxy) cannot be looked up
 *   -ECONNREFUSED, -EHOSTUNREACH, -ENOMEM
 *   -EIO           anything else: certificates, TLS, a proxy that refuses, the temporary file
 * `error` (NULL when the result is 0) is one line for people, without credentials of the URL. `answer` is never NULL;
 * both end with the callback, and so does the fetch. */
typedef void fetch_cb(int result, const char *error, const struct fetch_answer *answer, void *arg);

/* Begins; `cb` runs once, never before this returns. 0, -EINVAL (not such a URL), -ENOMEM. Call it behind the last fork;
 * SIGPIPE must be ignored. */
MUST_USE int fetch_start(struct fetch **ret, struct loop *loop, const struct fetch_request *request,
			 fetch_cb *cb, void *arg);

/* `cb` will not run; closes what is open. Does nothing inside of `cb`. Accepts NULL. */
void fetch_cancel(struct fetch *fetch);

#endif
