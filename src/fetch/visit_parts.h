/* visit_parts.h - what the parts of a visit share; nobody else includes it. */
#ifndef FAIRLEAD_FETCH_VISIT_PARTS_H
#define FAIRLEAD_FETCH_VISIT_PARTS_H

#include <sys/queue.h>

#include "base/alarm.h"
#include "base/buffer.h"
#include "base/http.h"
#include "base/resolve.h"
#include "fetch/blame.h"
#include "fetch/engine.h"
#include "fetch/handle.h"
#include "fetch/visit.h"

struct visits {
	struct loop *loop;
	struct engine *engine;
	LIST_HEAD(, visit) visits;
};

struct visit {
	struct grave grave;
	struct visits *visits; /* NULL: it has ended */
	LIST_ENTRY(visit) link;
	struct visit_request
	    request; /* of its texts, only the proxy and the body outlive visit_start() */
	visit_cb *cb;
	void *arg;
	struct transfer transfer;
	struct curl_slist *headers;
	CURLSH *share;              /* of a named member: its addresses, in a cache of its own */
	struct curl_slist *resolve; /* the same as libcurl wants to have them told */
	struct resolve *lookup;
	struct alarm alarm;
	int64_t began_us, asked_us, deadline_ms;

	/* where libcurl may connect to; of a direct member: no address, any one that is admitted */
	struct address addresses[RESOLVE_MAX];
	size_t address_count;

	struct address target_address; /* of the URL, */
	bool has_target_address;       /* whose host is no name */
	bool is_plain_socks4;          /* not 4A: names cannot be told */
	bool is_head;                  /* the method is HEAD */

	/* this step: a redirect begins another one */
	enum phase phase;
	bool is_tls;        /* with the target */
	bool has_met_proxy; /* TLS with an https member has begun */
	int fd;             /* the last that was opened; libcurl's */
	int socket_reason;  /* why one was not opened */
	int connect_status;
	struct http_scan scan; /* of an answer to CONNECT */
	struct buffer head;    /* that, or the last response's: */
	size_t fields_at;      /* its first line is shorter than this */

	int reason;          /* why we stopped it ourselves; 0: we did not */
	size_t header_bytes; /* of all steps */
	struct buffer body;
	char words[CURL_ERROR_SIZE];
	char *user, *password; /* of the URL, decoded; NULL: none. Never to be shown */
};

/* visit_setup.c */

/* All that can be said before the member's addresses are known. 0, -ENOMEM, or -EINVAL with a line in `error`. */
MUST_USE int visit_prepare(struct visit *visit, char *error, size_t error_size);

/* Can the member carry this at all? 0 or a reason; before anything is looked up or connected. */
MUST_USE int visit_check(const struct visit *visit);

/* The member, whose addresses are known. 0 or -ENOMEM. */
MUST_USE int visit_set_proxy(struct visit *visit);

/* SOCKS4 without A, and what is visited now is no address. */
bool visit_needs_name(const struct visit *visit);

/* visit_watch.c: libcurl's callbacks. 0 or -ENOMEM. */
MUST_USE int visit_set_watch(struct visit *visit);

/* A request goes to the member as it is, which forwards it. */
bool visit_is_forwarded(const struct visit *visit);

/* The connection of this step stands, as far as TCP is concerned. */
bool visit_is_connected(const struct visit *visit);

/* visit_answer.c: tells the callback. */
void visit_tell(struct visit *visit, CURLcode code);

#endif
