/* record.c - what remains of an exchange and of each try: a log line, counters, bytes, reports about the member. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "gateway/internal.h"
#include "pool/cooldown.h"
#include "pool/report.h"
#include "pool/traffic.h"

/* Members are shown by identifier, which holds no credentials; a fixed upstream by its address. */
static void print_member(const struct exchange *x, char *buffer, size_t size)
{
	const struct endpoint *upstream = x->gateway->config.upstream;

	if (!x->member && x->avoid_count) /* the last one that failed, when no other was left */
		snprintf(buffer, size, "%s", x->avoid[x->avoid_count - 1]->id);
	else if (x->member)
		snprintf(buffer, size, "%s", x->member->id);
	else if (upstream)
		endpoint_print(upstream, HIDE_SECRET, buffer, size);
	else
		snprintf(buffer, size, "-");
}

static void print_target(const struct exchange *x, char *buffer, size_t size)
{
	if (!x->host)
		snprintf(buffer, size, "-");
	else
		snprintf(buffer, size, strchr(x->host, ':') ? "[%s]:%u" : "%s:%u", x->host,
			 x->port);
}

/* Behind `direct` there is no proxy that a site could have banned. */
static void cool(struct exchange *x)
{
	if (x->member->endpoint.scheme != SCHEME_DIRECT)
		pool_cooldown_add(x->pool, x->member, x->host);
}

/* The proxy works, and could not or would not reach this target. */
static bool is_target_refused(int reason)
{
	return reason == REASON_TARGET_DENIED || reason == REASON_TARGET_UNKNOWN ||
	       reason == REASON_TARGET_FAILED || reason == REASON_TARGET_REFUSED ||
	       reason == REASON_TARGET_UNREACHABLE || reason == REASON_TARGET_TIMEOUT;
}

void record_try(struct exchange *x, int reason)
{
	metric_add(METRIC_TRIES, reason, 1);
	if (!x->pool || !x->member)
		return;
	pool_report(x->pool, x->member, reason, x->try_began_ms);
	if (is_target_refused(reason))
		cool(x);
}

void record_status(struct exchange *x, int status)
{
	/* How sites turn away an address that they have seen too often (RFC 9110 15.5.4, 15.6.4, RFC 6585 4). */
	if (x->pool && x->member && (status == 403 || status == 429 || status == 503))
		cool(x);
}

/* What went to the member for this client, and what came back. */
static void count_traffic(const struct exchange *x)
{
	const struct end *upstream = &x->upstream;

	if (x->pool && x->member && (upstream->bytes_out || upstream->bytes_in))
		pool_traffic_add(x->pool, x->member->id,
				 x->identity ? identity_account(x->identity) : "",
				 upstream->bytes_out, upstream->bytes_in);
}

void record_exchange(const struct exchange *x, int reason)
{
	const struct reason_row *row = reason_row(reason);
	/* What is left of a kept connection's bytes belongs to the next request. */
	uint64_t next = x->keep_alive ? buffer_len(&x->client->in) : 0;
	uint64_t in = x->client->end.bytes_in - next - x->client_in;
	uint64_t out = x->client->end.bytes_out - x->client_out;
	char member[ENDPOINT_ID_MAX], target[300];

	metric_add(METRIC_REQUESTS, reason, 1);
	metric_add(METRIC_EXCHANGES, 0, -1);
	metric_add(METRIC_CLIENT_IN, 0, (int64_t)in);
	metric_add(METRIC_CLIENT_OUT, 0, (int64_t)out);
	count_traffic(x);
	if (!x->gateway->config.has_access_log || !log_enabled(LOG_INFO))
		return;
	print_member(x, member, sizeof member);
	print_target(x, target, sizeof target);
	log_info(
	    "request", LOG_TEXT("client", x->client->peer),
	    LOG_TEXT("user", x->identity ? x->identity->client : ""), LOG_TEXT("method", x->method),
	    LOG_TEXT("target", target), LOG_TEXT("member", member), LOG_NUMBER("tries", x->tries),
	    LOG_NUMBER("status", x->status), LOG_TEXT("reason", row->word),
	    LOG_TEXT("detail", x->detail ? x->detail : ""),
	    LOG_TEXT("fault", fault_word(row->fault)), LOG_NUMBER("in", (int64_t)in),
	    LOG_NUMBER("out", (int64_t)out), LOG_NUMBER("ms", (clock_us() - x->started_us) / 1000));
}
