/* probe.c - one attempt through one proxy. */
#include "check/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/stream.h"
#include "check/judge.h"
#include "check/page.h"
#include "dial/dial.h"
#include "dial/head.h"

#define READ_SIZE 4096

enum probe_state {
	PROBE_NOTHING, /* a direct member without a target: there is nothing to try */
	PROBE_DIAL,
	PROBE_TLS,  /* with the target */
	PROBE_PAGE, /* the request is on its way, or its answer */
	PROBE_ENDED
};

struct probe {
	struct grave grave;
	struct loop *loop;
	struct probe_request request;
	probe_cb *cb;
	void *arg;
	enum probe_state state;
	int64_t started_ms;
	struct alarm
	    alarm; /* of what comes after the dial, which has its own for the same moment */
	struct dial *dial;
	struct stream stream;
	struct buffer out;
	struct page page;
	bool has_heard; /* a byte behind the dial */
	struct probe_outcome outcome;
};

const char *anonymity_word(enum anonymity anonymity)
{
	switch (anonymity) {
	case ANONYMITY_UNKNOWN:
		break;
	case ANONYMITY_TRANSPARENT:
		return "transparent";
	case ANONYMITY_ANONYMOUS:
		return "anonymous";
	case ANONYMITY_ELITE:
		return "elite";
	}
	return "";
}

/* --- end ---------------------------------------------------------------------------------------------------------- */

static void free_probe(struct grave *grave)
{
	struct probe *probe = (struct probe *)grave;

	buffer_fini(&probe->out);
	page_fini(&probe->page);
	free(probe);
}

static void release(struct probe *probe)
{
	probe->state = PROBE_ENDED;
	alarm_fini(&probe->alarm);
	dial_cancel(probe->dial);
	stream_close(&probe->stream);
	probe->grave.free_object = free_probe;
	loop_bury(probe->loop, &probe->grave);
}

static void note_latency(struct probe *probe)
{
	probe->outcome.latency_ms = clock_ms() - probe->started_ms;
}

static void finish(struct probe *probe, int reason)
{
	probe->state = PROBE_ENDED;
	probe->outcome.reason = reason;
	probe->cb(probe, &probe->outcome, probe->arg);
	release(probe);
}

void probe_cancel(struct probe *probe)
{
	if (probe && probe->state != PROBE_ENDED)
		release(probe);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static bool is_forwarded(const struct probe *probe)
{
	return dial_forwards(probe->request.proxy);
}

/* A head is enough to refuse the answer. 0 or a reason. */
static int judge_head(struct probe *probe)
{
	const struct expectation *expectation = probe->request.expectation;

	probe->outcome.status = probe->page.status;
	/* Behind a tunnel a 407 is the target's, which says nothing of the member. */
	if (probe->page.status == 407 && is_forwarded(probe))
		return REASON_PROXY_AUTH;
	if (expectation && !expectation_allows(expectation, probe->page.status))
		return REASON_CHECK_STATUS;
	return 0;
}

static void take_whole(struct probe *probe)
{
	struct probe_outcome *outcome = &probe->outcome;
	struct page *page = &probe->page;

	if (page->is_judge && judge_read(buffer_at(&page->kept), buffer_len(&page->kept),
					 outcome->exit_address, &outcome->anonymity))
		outcome->exit_address[0] = '\0';
	finish(probe, page->has_text ? REASON_OK : REASON_CHECK_TEXT);
}

/* `r` as page_feed() and page_end() say. */
static void take_result(struct probe *probe, int r)
{
	bool is_head_new = probe->page.has_head && !probe->outcome.status;
	int refused = is_head_new ? judge_head(probe) : 0;

	if (is_head_new)
		note_latency(probe);
	if (refused)
		finish(probe, refused);
	else if (!r)
		take_whole(probe);
	else if (r == REASON_RESPONSE_SYNTAX && is_forwarded(probe))
		finish(probe, REASON_PROXY_GARBAGE); /* it is the proxy that speaks HTTP with us */
	else if (r != -EAGAIN)
		finish(probe, r);
}

/* The stream ended, or broke with an error. */
static void take_end(struct probe *probe, bool is_broken)
{
	int r = page_end(&probe->page);

	if (!r && (is_broken || stream_is_truncated(&probe->stream)))
		r = REASON_RESPONSE_INCOMPLETE;
	take_result(probe, r);
}

static void on_readable(struct probe *probe)
{
	char bytes[READ_SIZE] NOT_ZEROED;
	ssize_t n = stream_read(&probe->stream, bytes, sizeof bytes);

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		take_end(probe, n < 0);
		return;
	}
	probe->has_heard = true;
	take_result(probe, page_feed(&probe->page, bytes, (size_t)n));
}

/* --- the request -------------------------------------------------------------------------------------------------- */

/* A broken connection may have brought an answer first: reading tells. */
static void flush(struct probe *probe)
{
	ssize_t n = 0;

	while (buffer_len(&probe->out) && n >= 0) {
		n = stream_write(&probe->stream, buffer_at(&probe->out), buffer_len(&probe->out));
		if (n > 0)
			buffer_consume(&probe->out, (size_t)n);
		else if (n != -EAGAIN)
			buffer_fini(&probe->out);
	}
	stream_want(&probe->stream, STREAM_READ | (buffer_len(&probe->out) ? STREAM_WRITE : 0));
}

/* As the gateway would write it for a client that sends these fields. */
static int write_request(struct probe *probe)
{
	static const struct http_field fields[] = {
	    {{"User-Agent", 10}, {"fairlead/" FAIRLEAD_VERSION, sizeof FAIRLEAD_VERSION + 8}},
	    {{"Accept", 6}, {"*/*", 3}},
	};
	const struct target *target = probe->request.target;
	struct http_request request NOT_ZEROED;

	request = (struct http_request){
	    .method = {"GET", 3},
	    .minor = 1,
	    .host = {target->host, strlen(target->host)},
	    .port = target->port,
	    .path = {target->path, strlen(target->path)},
	    .framing = HTTP_NO_BODY,
	    .max_forwards = -1,
	    .field_count = sizeof fields / sizeof *fields,
	};
	memcpy(request.fields, fields, sizeof fields);
	return head_write_request(
	    &probe->out, &request,
	    is_forwarded(probe) && target->kind == TARGET_HTTP ? probe->request.proxy : NULL);
}

static void ask(struct probe *probe)
{
	probe->state = PROBE_PAGE;
	if (write_request(probe))
		finish(probe, REASON_INTERNAL);
	else
		flush(probe);
}

/* --- TLS with the target ------------------------------------------------------------------------------------------ */

/* What is not verified is no success: a proxy may have put itself in between. */
static void go_on_with_tls(struct probe *probe)
{
	int r = stream_handshake(&probe->stream);

	if (!r)
		ask(probe);
	else if (r == REASON_PROXY_CERTIFICATE)
		finish(probe, REASON_CHECK_CERTIFICATE);
	else if (r > 0)
		finish(probe, REASON_CHECK_TLS);
	else if (r == -ENOMEM)
		finish(probe, REASON_INTERNAL);
	else if (r != -EAGAIN)
		finish(probe, REASON_PROXY_RESET);
}

static void begin_tls(struct probe *probe)
{
	const struct target *target = probe->request.target;

	probe->state = PROBE_TLS;
	if (!probe->request.tls) {
		finish(probe, REASON_PROXY_CANNOT);
		return;
	}
	if (stream_start_tls(&probe->stream, probe->request.tls, target->host, target->port)) {
		finish(probe, REASON_INTERNAL);
		return;
	}
	stream_want(&probe->stream, STREAM_READ);
	go_on_with_tls(probe);
}

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct probe *probe = arg;

	(void)stream;
	if (probe->state == PROBE_TLS)
		go_on_with_tls(probe);
	else if (ready & STREAM_READ)
		on_readable(probe);
	else
		flush(probe);
}

/* --- dial --------------------------------------------------------------------------------------------------------- */

/* The proxy itself is all that can be judged: there is no target, only a tunnel is asked for, or TLS to the target would lie
 * within TLS to the proxy, which a stream does not do. */
static bool is_dial_enough(const struct probe *probe)
{
	const struct target *target = probe->request.target;

	return !target || target->kind == TARGET_TUNNEL ||
	       (target->kind == TARGET_HTTPS && probe->request.proxy->scheme == SCHEME_HTTPS);
}

static void on_dialled(int result, struct dial *dial, void *arg)
{
	struct probe *probe = arg;
	const char *early;
	size_t len;

	probe->dial = NULL;
	note_latency(probe);
	if (result || is_dial_enough(probe)) {
		finish(probe, result);
		return;
	}
	dial_take(dial, on_ready, probe, &early, &len);
	if (len)
		finish(probe,
		       REASON_RESPONSE_SYNTAX); /* no such server speaks before it is asked */
	else if (probe->request.target->kind == TARGET_HTTPS)
		begin_tls(probe);
	else
		ask(probe);
}

static void on_alarm(void *arg)
{
	struct probe *probe = arg;

	if (probe->state == PROBE_NOTHING)
		finish(probe, REASON_OK);
	else if (probe->state == PROBE_PAGE && is_forwarded(probe) && !probe->has_heard)
		finish(probe, REASON_PROXY_SILENT);
	else if (probe->state != PROBE_DIAL)
		finish(probe, REASON_RESPONSE_TIMEOUT);
}

static int start_dial(struct probe *probe)
{
	const struct probe_request *request = &probe->request;
	const struct target *target = request->target;
	struct dial_request dial = {
	    .stream = &probe->stream,
	    .proxy = request->proxy,
	    .host = target ? target->host : NULL,
	    .port = target ? target->port : 0,
	    .is_plain = target && target->kind == TARGET_HTTP,
	    .connect_ms = request->timeout_ms,
	    .total_ms = request->timeout_ms,
	    .tls = request->tls,
	    .is_admitted = request->is_admitted,
	    .arg = request->arg,
	};

	probe->state = PROBE_DIAL;
	return dial_start(&probe->dial, probe->loop, &dial, on_dialled, probe);
}

int probe_start(struct probe **ret, struct loop *loop, const struct probe_request *request,
		probe_cb *cb, void *arg)
{
	struct probe *probe = calloc(1, sizeof *probe);
	bool is_nothing = !request->target && request->proxy->scheme == SCHEME_DIRECT;

	if (!probe)
		return -ENOMEM;
	probe->loop = loop;
	probe->request = *request;
	probe->cb = cb;
	probe->arg = arg;
	probe->started_ms = clock_ms();
	buffer_init(&probe->out, HTTP_HEAD_MAX);
	page_init(&probe->page, request->expectation ? request->expectation->text : "");
	alarm_init(&probe->alarm, loop, on_alarm, probe);
	if (!is_nothing && start_dial(probe)) {
		alarm_fini(&probe->alarm);
		free(probe);
		return -ENOMEM;
	}
	alarm_set(&probe->alarm, probe->started_ms + (is_nothing ? 0 : request->timeout_ms));
	*ret = probe;
	return 0;
}
