/* visit.c - one http(s) request through one member: life cycle, the member's name, time. */
#include "fetch/visit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fetch/visit_parts.h"

/* --- end ---------------------------------------------------------------------------------------------------------- */

static void free_visit(struct grave *grave)
{
	struct visit *visit = (struct visit *)grave;

	buffer_fini(&visit->head);
	buffer_fini(&visit->body);
	curl_free(visit->user);
	curl_free(visit->password);
	free(visit);
}

/* Nothing calls back any more. The handle, whose answer may be wanted, is left. */
static void stop(struct visit *visit)
{
	visit->visits = NULL;
	LIST_REMOVE(visit, link);
	alarm_fini(&visit->alarm);
	resolve_cancel(visit->lookup);
	engine_remove(&visit->transfer);
}

static void release(struct visit *visit)
{
	curl_easy_cleanup(visit->transfer.easy);
	curl_share_cleanup(visit->share);
	curl_slist_free_all(visit->headers);
	curl_slist_free_all(visit->resolve);
	visit->grave.free_object = free_visit;
}

static void finish(struct visit *visit, CURLcode code)
{
	struct loop *loop = visit->visits->loop;

	stop(visit);
	visit_tell(visit, code);
	release(visit);
	loop_bury(loop, &visit->grave);
}

void visit_cancel(struct visit *visit)
{
	struct loop *loop;

	if (!visit || !visit->visits)
		return;
	loop = visit->visits->loop;
	stop(visit);
	release(visit);
	loop_bury(loop, &visit->grave);
}

static void on_end(struct transfer *transfer, CURLcode code)
{
	finish((void *)((char *)transfer - offsetof(struct visit, transfer)), code);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/* Answers that led on and on have taken the time: that is the target's, wherever the last step stood. */
static bool is_led_astray(const struct visit *visit)
{
	long redirects = 0;

	curl_easy_getinfo(visit->transfer.easy, CURLINFO_REDIRECT_COUNT, &redirects);
	return redirects > 0 && clock_ms() >= visit->deadline_ms;
}

/* Also brings what is known before the first step to the callback. */
static void on_alarm(void *arg)
{
	struct visit *visit = arg;

	if (!visit->reason && is_led_astray(visit))
		visit->reason = REASON_RESPONSE_TIMEOUT;

	if (visit->reason) {
		finish(visit, CURLE_ABORTED_BY_CALLBACK);
		return;
	}
	if (visit->phase == PHASE_CONNECT && visit_is_connected(visit))
		visit->phase = PHASE_HANDSHAKE;
	finish(visit, CURLE_OPERATION_TIMEDOUT);
}

/* --- the member's address ----------------------------------------------------------------------------------------- */

static bool is_admitted(const struct visit *visit, const struct address *address)
{
	const struct visit_request *request = &visit->request;

	if (!request->is_admitted)
		return !address_is_special(address);
	return request->is_admitted(address, request->proxy->port, false, request->admit_arg);
}

/* Only admitted addresses are told to libcurl. */
static int admit(struct visit *visit, const struct address *addresses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_admitted(visit, &addresses[i]))
			visit->addresses[visit->address_count++] = addresses[i];
	return visit->address_count ? 0 : REASON_PROXY_PROHIBITED;
}

static void go(struct visit *visit)
{
	visit->asked_us = clock_us();
	if (visit_set_proxy(visit) || engine_add(visit->visits->engine, &visit->transfer))
		visit->reason = REASON_INTERNAL;
}

static void on_resolved(int result, const struct address *addresses, size_t count, void *arg)
{
	struct visit *visit = arg;

	visit->lookup = NULL;
	visit->reason = result ? REASON_PROXY_NAME : admit(visit, addresses, count);
	if (!visit->reason)
		go(visit);
	if (visit->reason)
		finish(visit, CURLE_ABORTED_BY_CALLBACK);
}

/* What fails at once is told from the loop. */
static void first_step(struct visit *visit)
{
	const struct endpoint *proxy = visit->request.proxy;
	struct address address;

	visit->reason = visit_check(visit);
	if (visit->reason)
		return;
	if (proxy->scheme == SCHEME_DIRECT) {
		go(visit);
	} else if (!address_parse(&address, proxy->host, strlen(proxy->host))) {
		visit->reason = admit(visit, &address, 1);
		if (!visit->reason)
			go(visit);
	} else if (resolve_start(&visit->lookup, visit->visits->loop, proxy->host, on_resolved,
				 visit)) {
		visit->reason = REASON_INTERNAL;
	}
}

/* --- begin -------------------------------------------------------------------------------------------------------- */

static void begin(struct visit *visit)
{
	const struct visit_request *request = &visit->request;
	int64_t now = clock_ms();
	int64_t first_ms = now + request->connect_ms;

	visit->deadline_ms = now + request->timeout_ms;
	first_step(visit);
	if (visit->reason)
		first_ms = now;
	alarm_set(&visit->alarm, first_ms < visit->deadline_ms ? first_ms : visit->deadline_ms);
}

int visit_start(struct visit **ret, struct visits *visits, const struct visit_request *request,
		visit_cb *cb, void *arg, char *error, size_t error_size)
{
	struct visit *visit = calloc(1, sizeof *visit);
	int result;

	if (!visit)
		return -ENOMEM;
	visit->request = *request;
	visit->cb = cb;
	visit->arg = arg;
	visit->fd = -1;
	visit->began_us = visit->asked_us = clock_us();
	buffer_init(&visit->head, HANDLE_HEADER_BYTES_MAX);
	buffer_init(&visit->body, request->max_bytes + 1); /* and a NUL */
	visit->transfer.ended = on_end;
	result = visit_prepare(visit, error, error_size);
	if (!result)
		result = visit_set_watch(visit);
	if (result) {
		release(visit);
		free_visit(&visit->grave);
		return result;
	}
	visit->visits = visits;
	LIST_INSERT_HEAD(&visits->visits, visit, link);
	alarm_init(&visit->alarm, visits->loop, on_alarm, visit);
	begin(visit);
	*ret = visit;
	return 0;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

int visits_new(struct visits **ret, struct loop *loop)
{
	struct visits *visits = calloc(1, sizeof *visits);

	if (!visits || engine_ref(&visits->engine, loop)) {
		free(visits);
		return -ENOMEM;
	}
	visits->loop = loop;
	LIST_INIT(&visits->visits);
	*ret = visits;
	return 0;
}

void visits_free(struct visits *visits)
{
	if (!visits)
		return;
	while (!LIST_EMPTY(&visits->visits))
		visit_cancel(LIST_FIRST(&visits->visits));
	engine_unref(visits->engine);
	free(visits);
}
