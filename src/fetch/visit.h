/* visit.h - one http(s) request through one member, by libcurl on the loop.
 *
 * A fresh handle for each (task, member): no cookies, no .netrc, no connection kept, nothing of the environment.
 * Every socket is opened to the member's own address, which was looked up and admitted before; any other is refused
 * in code (a direct:// member: to an admitted address of the target). Names of targets are resolved by the member. */
#ifndef FAIRLEAD_FETCH_VISIT_H
#define FAIRLEAD_FETCH_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/endpoint.h"
#include "base/loop.h"

struct visits; /* one a process: libcurl's multi on the loop, shared by all visits */
struct visit;

/* 0 or -ENOMEM. */
MUST_USE int visits_new(struct visits **ret, struct loop *loop);
/* Ends what is under way without its callbacks. Accepts NULL. */
void visits_free(struct visits *visits);

struct visit_header {
	const char *name, *value;
};

/* All of it is copied, but `proxy` and `body`, which are the caller's until the end. */
struct visit_request {
	const char *url;    /* http or https, also after redirects */
	const char *method; /* "GET" ... */
	const struct visit_header *headers;
	size_t header_count;
	const void *body; /* NULL: none */
	size_t body_len;
	const struct endpoint *proxy;
	const char *ca_file; /* for https targets and members; NULL: the system's */
	size_t max_bytes;    /* of the decoded body */
	int redirects_max;
	int64_t timeout_ms, connect_ms;
	/* May this address be dialled? `is_target`: of a direct member. As of dial_request. */
	bool (*is_admitted)(const struct address *address, uint16_t port, bool is_target,
			    void *arg);
	void *admit_arg;
};

struct visit_answer {
	int status;            /* HTTP status; 0: none */
	int connect_status;    /* of the member's answer to CONNECT; 0: none */
	const char *final_url; /* without credentials */
	int redirects;
	const struct visit_header *headers; /* of the last response, in order */
	size_t header_count;
	const char *http_version; /* "1.1", "2" */
	const char *body;         /* decoded; NUL-terminated behind `len` */
	size_t len;
	int64_t retry_after_ms;       /* -1: none, or unreadable */
	uint64_t bytes_out, bytes_in; /* of requests and answers, as they went over the wire */
	int64_t name_us, connect_us, tls_us, first_byte_us, total_us; /* since the start */
};

/* `reason`: an enum reason: REASON_OK when a whole response came, whatever its status; else why not, by the one table
 * of src/fetch/blame.c that maps (CURLcode, CURLINFO_PROXY_ERROR, CONNECT status): the same words as dial's for the
 * same fault. `detail`: a line for people without credentials, "" if the reason says all. Valid until the callback
 * returns; the visit ends with it. */
typedef void visit_cb(int reason, const char *detail, const struct visit_answer *answer, void *arg);

/* Begins; `cb` runs once, never before this returns. 0, -ENOMEM, or -EINVAL: the URL, method or a header cannot be
 * sent (a line in `error`). */
MUST_USE int visit_start(struct visit **ret, struct visits *visits,
			 const struct visit_request *request, visit_cb *cb, void *arg, char *error,
			 size_t error_size);

/* `cb` will not run. Accepts NULL. */
void visit_cancel(struct visit *visit);

#endif
