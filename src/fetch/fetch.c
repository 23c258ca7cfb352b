/* fetch.c - download one http(s) URL on the loop: life cycle. */
#include "fetch/fetch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "fetch/handle.h"
#include "fetch/internal.h"

static void free_fetch(struct grave *grave)
{
	free((char *)grave - offsetof(struct fetch, grave));
}

/* Closes everything but the body's file. */
static void close_all(struct fetch *fetch)
{
	engine_remove(&fetch->transfer);
	curl_easy_cleanup(fetch->transfer.easy);
	fetch->transfer.easy = NULL;
	engine_unref(fetch->engine);
	fetch->engine = NULL;
	curl_slist_free_all(fetch->headers);
	curl_free(fetch->user);
	curl_free(fetch->password);
}

static void on_end(struct transfer *transfer, CURLcode code)
{
	struct fetch *fetch = (void *)((char *)transfer - offsetof(struct fetch, transfer));
	int result = fetch_outcome(fetch, code);

	close_all(fetch);
	fetch->cb(result, result ? fetch->error : NULL, &fetch->answer, fetch->arg);
	loop_bury(fetch->loop, &fetch->grave);
}

void fetch_cancel(struct fetch *fetch)
{
	if (!fetch || !fetch->engine)
		return;
	close_all(fetch);
	if (fetch->answer.fd >= 0)
		close(fetch->answer.fd);
	loop_bury(fetch->loop, &fetch->grave);
}

static int go(struct fetch *fetch, const struct fetch_request *request)
{
	int result = engine_ref(&fetch->engine, fetch->loop);

	if (result)
		return result;
	fetch->transfer.easy = handle_new();
	if (!fetch->transfer.easy)
		return -ENOMEM;
	result = fetch_prepare(fetch, request);
	return result ? result : engine_add(fetch->engine, &fetch->transfer);
}

int fetch_start(struct fetch **ret, struct loop *loop, const struct fetch_request *request,
		fetch_cb *cb, void *arg)
{
	struct fetch *fetch = calloc(1, sizeof(*fetch));
	int result;

	if (!fetch)
		return -ENOMEM;
	fetch->grave.free_object = free_fetch;
	fetch->loop = loop;
	fetch->cb = cb;
	fetch->arg = arg;
	fetch->answer.fd = -1;
	fetch->transfer.ended = on_end;
	result = go(fetch, request);
	if (result) {
		close_all(fetch);
		free(fetch);
		return result;
	}
	*ret = fetch;
	return 0;
}
