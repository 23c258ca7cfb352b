/* internal.h - what the parts of a fetch share. */
#ifndef FAIRLEAD_FETCH_INTERNAL_H
#define FAIRLEAD_FETCH_INTERNAL_H

#include <curl/curl.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "fetch/fetch.h"

#define FETCH_REDIRECTS_MAX 5

/* Of one fetch, redirects and trailers included. libcurl keeps them all. */
#define FETCH_HEADER_BYTES_MAX (256 * 1024)

/* A descriptor that libcurl wants to be told about. */
struct fetch_watch {
	struct event event;
	struct fetch *fetch;
	LIST_ENTRY(fetch_watch) link;
};

struct fetch {
	struct grave grave;
	struct loop *loop;
	fetch_cb *cb;
	void *arg;
	CURLM *multi; /* its own; NULL: the fetch has ended */
	CURL *easy;
	struct curl_slist *headers;
	struct event timer;
	LIST_HEAD(, fetch_watch) watches;
	bool has_validator;
	size_t max_bytes, header_bytes;
	int result;            /* why we stopped the transfer ourselves; 0: we did not */
	int spool_result;      /* of the temporary file, when that is why */
	char *user, *password; /* of the URL, decoded; NULL: none. Never to be shown */
	char error[CURL_ERROR_SIZE];
	struct fetch_answer answer;
};

/* transfer.c: what libcurl is to do, and what it brings. 0, -EINVAL or -ENOMEM. */
MUST_USE int fetch_prepare(struct fetch *fetch, const struct fetch_request *request);

/* outcome.c: how it ended. Fills fetch->answer and fetch->error, returns the result. */
int fetch_outcome(struct fetch *fetch, CURLcode code);

#endif
