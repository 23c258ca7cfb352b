/* internal.h - what the parts of a fetch share. */
#ifndef FAIRLEAD_FETCH_INTERNAL_H
#define FAIRLEAD_FETCH_INTERNAL_H

#include "fetch/engine.h"
#include "fetch/fetch.h"

#define FETCH_REDIRECTS_MAX 5

struct fetch {
	struct grave grave;
	struct loop *loop;
	fetch_cb *cb;
	void *arg;
	struct engine *engine; /* NULL: the fetch has ended */
	struct transfer transfer;
	struct curl_slist *headers;
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
