/* fetch.c - download one http(s) URL on the loop: life cycle, and libcurl's descriptors and timer as plain events.
 *
 * libcurl owns the watches by way of our callbacks; the list is there for what it would leave behind. The user's callback
 * never runs inside of libcurl, so that everything can be closed from there. */
#include "fetch/fetch.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "fetch/internal.h"

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void watch_free(struct fetch_watch *watch)
{
	event_del(&watch->event);
	LIST_REMOVE(watch, link);
	free(watch);
}

static void free_watches(struct fetch *fetch)
{
	struct fetch_watch *next;

	for (struct fetch_watch *watch = LIST_FIRST(&fetch->watches); watch; watch = next) {
		next = LIST_NEXT(watch, link);
		event_del(&watch->event);
		free(watch);
	}
	LIST_INIT(&fetch->watches);
}

static void free_fetch(struct grave *grave)
{
	free((char *)grave - offsetof(struct fetch, grave));
}

/* Closes everything but the body's file. */
static void close_all(struct fetch *fetch)
{
	if (fetch->multi && fetch->easy)
		curl_multi_remove_handle(fetch->multi, fetch->easy);
	curl_easy_cleanup(fetch->easy);
	curl_multi_cleanup(fetch->multi);
	fetch->easy = NULL;
	fetch->multi = NULL;
	curl_slist_free_all(fetch->headers);
	curl_free(fetch->user);
	curl_free(fetch->password);
	free_watches(fetch);
	event_del(&fetch->timer);
}

static void fetch_end(struct fetch *fetch, CURLcode code)
{
	int result = fetch_outcome(fetch, code);

	close_all(fetch);
	fetch->cb(result, result ? fetch->error : NULL, &fetch->answer, fetch->arg);
	loop_bury(fetch->loop, &fetch->grave);
}

void fetch_cancel(struct fetch *fetch)
{
	if (!fetch || !fetch->multi)
		return;
	close_all(fetch);
	if (fetch->answer.fd >= 0)
		close(fetch->answer.fd);
	loop_bury(fetch->loop, &fetch->grave);
}

/* --- libcurl on the loop ------------------------------------------------------------------------------------------ */

/* An error here means that a callback of ours had no memory. */
static void advance(struct fetch *fetch, curl_socket_t fd, int what)
{
	int running, left;
	CURLMcode failed = curl_multi_socket_action(fetch->multi, fd, what, &running);
	const CURLMsg *message = curl_multi_info_read(fetch->multi, &left);

	if (message)
		fetch_end(fetch, message->data.result);
	else if (failed)
		fetch_end(fetch, CURLE_OUT_OF_MEMORY);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	const struct fetch_watch *watch = arg;

	advance(watch->fetch, fd,
		(what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	advance(arg, CURL_SOCKET_TIMEOUT, 0);
}

static struct fetch_watch *watch_new(struct fetch *fetch, curl_socket_t fd)
{
	struct fetch_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->fetch = fetch;
	event_assign(&watch->event, loop_base(fetch->loop), fd, 0, on_ready, watch);
	LIST_INSERT_HEAD(&fetch->watches, watch, link);
	curl_multi_assign(fetch->multi, fd, watch);
	return watch;
}

/* CURLMOPT_SOCKETFUNCTION: -1 gives the transfer up. */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct fetch *fetch = arg;
	struct fetch_watch *watch = known;
	short events = EV_PERSIST;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watch)
			watch_free(watch);
		return 0;
	}
	if (!watch)
		watch = watch_new(fetch, fd);
	if (!watch)
		return -1;
	events |= what & CURL_POLL_IN ? EV_READ : 0;
	events |= what & CURL_POLL_OUT ? EV_WRITE : 0;
	event_del(&watch->event);
	event_assign(&watch->event, loop_base(fetch->loop), fd, events, on_ready, watch);
	return event_add(&watch->event, NULL);
}

/* CURLMOPT_TIMERFUNCTION. */
static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct fetch *fetch = arg;
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	(void)multi;
	return timeout_ms < 0 ? event_del(&fetch->timer) : event_add(&fetch->timer, &tv);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

/* Not before the first fetch: nothing of it must exist when the supervisor forks. */
static int init_curl(void)
{
	static bool is_ready;

	if (!is_ready)
		is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
	return is_ready ? 0 : -ENOMEM;
}

/* `multi` is only there for this one. The timer that it asks for at once makes the first turn of the transfer. */
static int go(struct fetch *fetch)
{
	CURLM *multi = fetch->multi;
	CURLMcode code = CURLM_OK;

	code = code ?: curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, fetch);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_TIMERDATA, fetch);
	code = code ?: curl_multi_add_handle(multi, fetch->easy);
	return code ? -ENOMEM : 0;
}

int fetch_start(struct fetch **ret, struct loop *loop, const struct fetch_request *request,
		fetch_cb *cb, void *arg)
{
	struct fetch *fetch = calloc(1, sizeof(*fetch));
	int result = -ENOMEM;

	if (!fetch)
		return -ENOMEM;
	fetch->grave.free_object = free_fetch;
	fetch->loop = loop;
	fetch->cb = cb;
	fetch->arg = arg;
	fetch->answer.fd = -1;
	LIST_INIT(&fetch->watches);
	evtimer_assign(&fetch->timer, loop_base(loop), on_time, fetch);
	if (init_curl())
		goto out;
	fetch->multi = curl_multi_init();
	fetch->easy = curl_easy_init();
	if (!fetch->multi || !fetch->easy)
		goto out;
	result = fetch_prepare(fetch, request);
	result = result ?: go(fetch);
out:
	if (result) {
		close_all(fetch);
		free(fetch);
		return result;
	}
	*ret = fetch;
	return 0;
}
