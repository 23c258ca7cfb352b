/* exchange.c - one request from its head to its log line: READ, ALLOCATE, DIAL, RELAY, END. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "gateway/internal.h"

static const char *const state_words[] = {
    [EXCHANGE_READ] = "read",   [EXCHANGE_ALLOCATE] = "allocate", [EXCHANGE_DIAL] = "dial",
    [EXCHANGE_RELAY] = "relay", [EXCHANGE_END] = "end",
};

/* moves[from] has a bit for each state that may follow. */
static const unsigned moves[] = {
    [EXCHANGE_READ] = 1 << EXCHANGE_ALLOCATE | 1 << EXCHANGE_DIAL | 1 << EXCHANGE_END,
    [EXCHANGE_ALLOCATE] = 1 << EXCHANGE_ALLOCATE | 1 << EXCHANGE_DIAL | 1 << EXCHANGE_END,
    [EXCHANGE_DIAL] = 1 << EXCHANGE_ALLOCATE | 1 << EXCHANGE_RELAY | 1 << EXCHANGE_END,
    [EXCHANGE_RELAY] = 1 << EXCHANGE_ALLOCATE | 1 << EXCHANGE_END,
    [EXCHANGE_END] = 0,
};

/* The only door between states. */
static void exchange_enter(struct exchange *x, enum exchange_state state)
{
	if (!(moves[x->state] & 1u << state)) {
		log_error("an exchange makes a move that is not allowed",
			  LOG_TEXT("from", state_words[x->state]),
			  LOG_TEXT("to", state_words[state]));
		abort();
	}
	x->state = state;
	x->state_since_us = clock_us();
}

/* --- end ---------------------------------------------------------------------------------------------------------- */

static void free_exchange(struct grave *grave)
{
	struct exchange *x = (struct exchange *)grave;

	for (size_t i = 0; i < x->avoid_count; i++)
		member_unref(x->avoid[i]);
	free(x->avoid);
	member_unref(x->member);
	forward_free(x->forward);
	free(x->host);
	free(x);
}

/* Lets go of the member's connection, whatever became of it. */
static void drop_upstream(struct exchange *x)
{
	dial_cancel(x->dial);
	x->dial = NULL;
	end_close(&x->upstream);
}

void exchange_end(struct exchange *x, int reason)
{
	struct client *client = x->client;
	/* A body that is delimited by the end of the connection must not look complete when it was cut short. */
	bool must_reset = x->forward && forward_is_cut(x);

	if (x->state == EXCHANGE_END)
		return;
	exchange_enter(x, EXCHANGE_END);
	pool_allocate_cancel(&x->allocation);
	drop_upstream(x);
	answer_reason(x, reason);
	record_exchange(x, reason);
	x->grave.free_object = free_exchange;
	loop_bury(x->gateway->loop, &x->grave);
	if (must_reset) {
		stream_reset(&client->end.stream);
		client_end(client);
	} else {
		client_exchange_ended(client, x->keep_alive && !reason);
	}
}

/* --- dial --------------------------------------------------------------------------------------------------------- */

static void allocate(struct exchange *x);

/* Where one attempt through one member ended before anything left: is another member worth a try? */
static bool is_member_at_fault(int reason)
{
	return reason_row(reason)->fault == FAULT_PROXY || reason == REASON_PROXY_CANNOT ||
	       reason == REASON_PROXY_PROHIBITED || reason == REASON_MEMBER_UNREADABLE;
}

/* Puts the member aside. False when no more can be noted. */
static bool avoid_member(struct exchange *x)
{
	struct member **avoid = realloc(x->avoid, (x->avoid_count + 1) * sizeof(struct member *));

	if (!avoid)
		return false;
	x->avoid = avoid;
	x->avoid[x->avoid_count++] = x->member;
	x->member = NULL;
	return x->avoid_count < AVOID_MAX;
}

void exchange_retry(struct exchange *x, int reason)
{
	if (!is_member_at_fault(reason) || !x->member || x->tries >= x->gateway->config.tries ||
	    x->has_answer || x->gateway->is_draining || !avoid_member(x)) {
		exchange_end(x, reason);
		return;
	}
	log_debug("another member is tried", LOG_TEXT("reason", result_word(reason)),
		  LOG_TEXT("member", x->avoid[x->avoid_count - 1]->id));
	drop_upstream(x);
	x->last_reason = reason;
	allocate(x);
}

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	struct exchange *x = arg;
	const struct pool *pool = x->gateway->config.pool;

	return policy_admits(&x->gateway->config.policy, address, port, is_target,
			     pool && rules_flag(pool_rules(pool), RULE_ALLOW_PRIVATE));
}

static void on_upstream_ready(struct stream *stream, int ready, void *arg)
{
	struct exchange *x = arg;

	(void)stream;
	if (x->forward)
		forward_ready(x, &x->upstream, ready);
	else
		tunnel_ready(x, &x->upstream, ready);
}

static void on_dialled(int result, struct dial *dial, void *arg)
{
	struct exchange *x = arg;
	const char *early;
	size_t len;

	x->dial = NULL;
	x->received_status = dial_received_status(dial);
	if (result || !x->forward)
		record_try(result); /* a plain request is judged by its response */
	if (result) {
		exchange_retry(x, result);
		return;
	}
	dial_take(dial, on_upstream_ready, x, &early, &len);
	exchange_enter(x, EXCHANGE_RELAY);
	if (x->forward)
		forward_begin(x);
	else
		tunnel_begin(x, early, len);
}

static void dial_member(struct exchange *x, const struct endpoint *proxy)
{
	const struct gateway_config *config = &x->gateway->config;
	struct dial_request request = {
	    .stream = &x->upstream.stream,
	    .proxy = proxy,
	    .host = x->host,
	    .port = x->port,
	    .is_plain = x->forward != NULL,
	    .connect_ms = config->connect_ms,
	    .total_ms = config->dial_ms,
	    .is_admitted = is_admitted,
	    .arg = x,
	};

	exchange_enter(x, EXCHANGE_DIAL);
	end_init(&x->upstream);
	x->tries++;
	if (dial_start(&x->dial, x->gateway->loop, &request, on_dialled, x))
		exchange_end(x, REASON_INTERNAL);
}

/* --- allocate ----------------------------------------------------------------------------------------------------- */

static struct exchange *of_allocation(struct allocation *allocation)
{
	return (struct exchange *)((char *)allocation - offsetof(struct exchange, allocation));
}

static void on_allocated(int result, struct member *member, struct allocation *allocation)
{
	struct exchange *x = of_allocation(allocation);

	x->member = member;
	if (result == REASON_POOL_EMPTY && x->last_reason) {
		/* All that there is was tried: the last failure says more than the empty pool. */
		exchange_end(x, x->last_reason);
	} else if (result == REASON_MEMBER_UNREADABLE) {
		/* Not a try: nothing was attempted. */
		x->last_reason = result;
		if (avoid_member(x))
			allocate(x);
		else
			exchange_end(x, result);
	} else if (result) {
		exchange_end(x, result);
	} else {
		dial_member(x, &member->endpoint);
	}
}

static void allocate(struct exchange *x)
{
	exchange_enter(x, EXCHANGE_ALLOCATE);
	if (!x->avoid_count)
		pool_allocate(x->gateway->config.pool, &x->allocation, on_allocated);
	else if (pool_allocate_except(x->gateway->config.pool, &x->allocation, x->avoid,
				      x->avoid_count, on_allocated))
		exchange_end(x, REASON_STORE_NOT_DONE);
}

/* --- read --------------------------------------------------------------------------------------------------------- */

static struct exchange *new_exchange(struct client *client)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x) {
		client_end(client);
		return NULL;
	}
	x->gateway = client->gateway;
	x->client = client;
	x->started_us = x->state_since_us = clock_us();
	x->client_in = client->end.bytes_in - buffer_len(&client->in);
	x->client_out = client->end.bytes_out;
	client->exchange = x;
	metric_add(METRIC_EXCHANGES, 0, 1);
	return x;
}

void exchange_refuse(struct client *client, int reason)
{
	struct exchange *x = new_exchange(client);

	if (x)
		exchange_end(x, reason);
}

/* A Via with our own name is a loop (RFC 9110 7.6.3). */
static bool is_loop(const struct exchange *x, const struct http_request *request)
{
	const char *name = x->gateway->config.name;
	size_t name_len = strlen(name);

	for (size_t i = 0; i < request->field_count; i++) {
		struct text value = request->fields[i].value;

		if (!text_is(request->fields[i].name, "via"))
			continue;
		for (size_t at = 0; at + name_len <= value.len; at++)
			if (!strncasecmp(value.at + at, name, name_len) && at > 0 &&
			    value.at[at - 1] == ' ' &&
			    (at + name_len == value.len || strchr(", \t", value.at[at + name_len])))
				return true;
	}
	return false;
}

/* Takes over what the exchange keeps of its request. 0 or a reason. */
static int take_request(struct exchange *x, const struct http_request *request, size_t head_len)
{
	char host[ENDPOINT_HOST_MAX + 1];

	snprintf(x->method, sizeof x->method, "%.*s", (int)request->method.len, request->method.at);
	x->is_connect = request->form == HTTP_AUTHORITY_FORM;
	/* HTTP/1.0 would have to be told that its connection stays. */
	x->keep_alive = request->keep_alive && request->minor == 1 && !x->is_connect;
	if (request->form == HTTP_ASTERISK_FORM) {
		/* A body that nobody reads must not become the next request. */
		x->keep_alive = x->keep_alive && request->framing == HTTP_NO_BODY;
		return 0;
	}
	if (request->form == HTTP_ORIGIN_FORM ||
	    http_canonical_host(request->host, host, sizeof host))
		return REASON_REQUEST_SYNTAX;
	x->host = strdup(host);
	x->port = request->port;
	if (!x->host)
		return REASON_INTERNAL;
	if (is_loop(x, request))
		return REASON_REQUEST_LOOP;
	return x->is_connect ? 0 : forward_new(&x->forward, request, head_len);
}

static int judge(const struct exchange *x)
{
	if (!x->client->is_allowed)
		return REASON_REQUEST_DENIED;
	return x->host ? policy_target(&x->gateway->config.policy, x->host, x->port) : 0;
}

void exchange_begin(struct client *client, size_t head_len)
{
	struct exchange *x = new_exchange(client);
	struct http_request request;
	int r;

	if (!x)
		return;
	r = http_parse_request(&request, buffer_at(&client->in), head_len);
	if (!r)
		r = take_request(x, &request, head_len);
	if (!r)
		r = judge(x);
	if (r) {
		exchange_end(x, r);
		return;
	}
	if (x->is_connect || !x->host)
		buffer_consume(&client->in, head_len);
	if (!x->host) {
		answer_options(x);
		exchange_end(x, REASON_OK);
		return;
	}
	client_watch_waiting(client);
	alarm_off(&client->alarm); /* each step has a deadline of its own */
	if (x->gateway->config.upstream)
		dial_member(x, x->gateway->config.upstream);
	else
		allocate(x);
}

/* --- events of the client ----------------------------------------------------------------------------------------- */

void exchange_client_ready(struct exchange *x, int ready)
{
	struct client *client = x->client;

	if (x->state == EXCHANGE_RELAY && x->forward) {
		forward_ready(x, &client->end, ready);
	} else if (x->state == EXCHANGE_RELAY) {
		tunnel_ready(x, &client->end, ready);
	} else if (ready & STREAM_WRITE && end_flush(&client->end)) {
		exchange_end(x, REASON_CLIENT_GONE);
	} else {
		/* A client that ends its side may still wait for an answer; one that was reset does not. */
		if (ready & STREAM_READ)
			client_read(client);
		if (client->end.is_broken)
			exchange_end(x, REASON_CLIENT_GONE);
		else
			client_watch_waiting(client);
	}
}
