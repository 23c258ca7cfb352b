/* exchange.c - one request from its head to its log line: READ, ADMIT, ALLOCATE, DIAL, RELAY, END. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "gateway/internal.h"

/* Of Proxy-Authorization, in base 64. */
#define CREDENTIALS_MAX ((size_t)2048)

static const char *const state_words[] = {
    [EXCHANGE_READ] = "read", [EXCHANGE_ADMIT] = "admit", [EXCHANGE_ALLOCATE] = "allocate",
    [EXCHANGE_DIAL] = "dial", [EXCHANGE_RELAY] = "relay", [EXCHANGE_END] = "end",
};

/* moves[from] has a bit for each state that may follow. */
static const unsigned moves[] = {
    [EXCHANGE_READ] = 1 << EXCHANGE_ADMIT | 1 << EXCHANGE_END,
    [EXCHANGE_ADMIT] = 1 << EXCHANGE_ALLOCATE | 1 << EXCHANGE_DIAL | 1 << EXCHANGE_END,
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

	for (size_t i = 0; i < x->avoid_count + x->passed_count; i++)
		member_unref(x->avoid[i]);
	free(x->avoid);
	member_unref(x->member);
	forward_free(x->forward);
	free(x->identity);
	free(x->detail);
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
	/* Whoever is asked for credentials sends them next. */
	if (reason && reason != REASON_CLIENT_UNKNOWN)
		x->keep_alive = false;
	ticket_return(&x->ticket);
	drop_upstream(x);
	route_end(x);
	answer_reason(x, reason);
	record_exchange(x, reason);
	x->grave.free_object = free_exchange;
	loop_bury(x->gateway->loop, &x->grave);
	if (must_reset) {
		stream_reset(&client->end.stream);
		client_end(client);
	} else {
		client_exchange_ended(client, x->keep_alive);
	}
}

/* --- dial --------------------------------------------------------------------------------------------------------- */

/* Where one attempt through one member ended before anything left: is another member worth a try? */
static bool is_member_at_fault(int reason)
{
	return reason_row(reason)->fault == FAULT_PROXY || reason == REASON_PROXY_CANNOT ||
	       reason == REASON_PROXY_PROHIBITED || reason == REASON_MEMBER_UNREADABLE;
}

/* Milliseconds that are left for trying. */
static int64_t time_left(const struct exchange *x)
{
	return x->gateway->config.tries_ms - (clock_us() - x->started_us + 999) / 1000;
}

static bool may_retry(const struct exchange *x, int reason)
{
	return is_member_at_fault(reason) && x->member && !x->has_answer &&
	       x->tries < x->gateway->config.tries && time_left(x) > 0 &&
	       !(x->identity && x->identity->is_strict) && !x->gateway->is_draining;
}

void exchange_retry(struct exchange *x, int reason)
{
	if (!may_retry(x, reason) || !route_avoid(x)) {
		exchange_end(x, reason);
		return;
	}
	log_debug("another member is tried", LOG_TEXT("reason", result_word(reason)),
		  LOG_TEXT("member", x->avoid[x->avoid_count - 1]->id));
	drop_upstream(x);
	x->last_reason = reason;
	exchange_enter(x, EXCHANGE_ALLOCATE);
	route_begin(x);
}

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	struct exchange *x = arg;

	return policy_admits(&x->gateway->config.policy, address, port, is_target,
			     x->pool && rules_flag(pool_rules(x->pool), RULE_ALLOW_PRIVATE));
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
		record_try(x, result); /* a plain request is judged by its response */
	if (result) {
		exchange_retry(x, result);
		return;
	}
	dial_take(dial, on_upstream_ready, x, &early, &len);
	if (x->forward && len) {
		/* No server of HTTP speaks before it is asked. */
		record_try(x, REASON_RESPONSE_SYNTAX);
		exchange_retry(x, REASON_RESPONSE_SYNTAX);
		return;
	}
	exchange_enter(x, EXCHANGE_RELAY);
	if (x->forward)
		forward_begin(x);
	else
		tunnel_begin(x, early, len);
}

static void dial_member(struct exchange *x, const struct endpoint *proxy)
{
	const struct gateway_config *config = &x->gateway->config;
	int64_t left = time_left(x);
	struct dial_request request = {
	    .stream = &x->upstream.stream,
	    .proxy = proxy,
	    .host = x->host,
	    .port = x->port,
	    .is_plain = x->forward != NULL,
	    .connect_ms = config->connect_ms,
	    .total_ms = x->tries && left < config->dial_ms ? left : config->dial_ms,
	    .tls = config->tls,
	    .is_admitted = is_admitted,
	    .arg = x,
	};

	exchange_enter(x, EXCHANGE_DIAL);
	end_init(&x->upstream);
	x->tries++;
	x->try_began_ms = clock_ms();
	if (dial_start(&x->dial, x->gateway->loop, &request, on_dialled, x))
		exchange_end(x, REASON_INTERNAL);
}

void exchange_routed(struct exchange *x, int result)
{
	if (result)
		exchange_end(x, result);
	else
		dial_member(x, &x->member->endpoint);
}

/* --- admit -------------------------------------------------------------------------------------------------------- */

static void go_on(struct exchange *x)
{
	if (x->gateway->config.upstream) {
		dial_member(x, x->gateway->config.upstream);
		return;
	}
	exchange_enter(x, EXCHANGE_ALLOCATE);
	route_begin(x);
}

static void limited(struct exchange *x, int result, int64_t retry_after_ms)
{
	x->retry_after_ms = retry_after_ms;
	exchange_end(x, result < 0 ? REASON_INTERNAL : result);
}

static void on_ticket(int result, int64_t retry_after_ms, struct ticket *ticket)
{
	struct exchange *x =
	    (struct exchange *)((char *)ticket - offsetof(struct exchange, ticket));

	if (result)
		limited(x, result, retry_after_ms);
	else
		go_on(x);
}

/* A client without a name is known by its address. */
static void admit(struct exchange *x)
{
	const char *client =
	    x->identity && *x->identity->client ? x->identity->client : x->client->peer;
	int64_t retry_after_ms = 0;
	int r = 0;

	exchange_enter(x, EXCHANGE_ADMIT);
	client_watch_waiting(x->client);
	alarm_off(&x->client->alarm); /* each step has a deadline of its own */
	if (x->gateway->config.limits)
		r = ticket_take(x->gateway->config.limits, &x->ticket, client, x->host, on_ticket,
				&retry_after_ms);
	if (!r)
		go_on(x);
	else if (r != -EINPROGRESS)
		limited(x, r, retry_after_ms);
}

/* --- read --------------------------------------------------------------------------------------------------------- */

/* What stands in the log in place of a method that could not be read, or that the protocol does not have. */
static const char *const protocol_words[] = {
    [CLIENT_UNKNOWN] = "",
    [CLIENT_HTTP] = "",
    [CLIENT_SOCKS5_GREETING] = "SOCKS5",
    [CLIENT_SOCKS5_LOGIN] = "SOCKS5",
    [CLIENT_SOCKS5] = "SOCKS5",
    [CLIENT_SOCKS4] = "SOCKS4",
};

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
	snprintf(x->method, sizeof x->method, "%s", protocol_words[client->protocol]);
	metric_add(METRIC_EXCHANGES, 0, 1);
	return x;
}

static void keep_detail(struct exchange *x, const char *detail)
{
	if (*detail)
		x->detail = strdup(detail);
}

void exchange_refuse(struct client *client, int reason, const char *detail)
{
	struct exchange *x = new_exchange(client);

	if (!x)
		return;
	keep_detail(x, detail);
	exchange_end(x, reason);
}

/* Keeps the identity, if there is anything to keep. */
static int take_identity(struct exchange *x, const struct identity *identity)
{
	x->pool = identity->pool;
	if (!*identity->client && !*identity->session)
		return 0;
	x->identity = malloc(sizeof *x->identity);
	if (!x->identity)
		return REASON_INTERNAL;
	*x->identity = *identity;
	return 0;
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
	/* Answered here: a body that nobody reads must not become the next request. */
	if (request->form == HTTP_ASTERISK_FORM || request->max_forwards == 0)
		x->keep_alive = x->keep_alive && request->framing == HTTP_NO_BODY;
	if (request->form == HTTP_ASTERISK_FORM)
		return 0;
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

/* Basic credentials of Proxy-Authorization (RFC 7617), decoded into `text`. What cannot be read is none. */
static struct credentials read_credentials(const struct http_request *request, char *text)
{
	const struct http_field *field =
	    http_find(request->fields, request->field_count, "proxy-authorization");
	struct credentials none = {0};
	struct text value;
	const char *colon;
	size_t len;

	if (!field || field->value.len < 6 || strncasecmp(field->value.at, "Basic ", 6) != 0)
		return none;
	value = (struct text){field->value.at + 6, field->value.len - 6};
	for (; value.len && *value.at == ' '; value.len--)
		value.at++;
	if (value.len > CREDENTIALS_MAX || base64_decode(text, &len, value.at, value.len))
		return none;
	colon = memchr(text, ':', len);
	if (!colon)
		return none;
	return (struct credentials){.user = text,
				    .user_len = (size_t)(colon - text),
				    .password = colon + 1,
				    .password_len = len - (size_t)(colon - text) - 1};
}

/* Finds out who asks; the request head is still there. */
static int identify(struct exchange *x, const struct http_request *request)
{
	char text[CREDENTIALS_MAX], detail[IDENTITY_DETAIL_MAX] = "";
	struct credentials given;
	struct identity identity;
	int r;

	if (!x->gateway->config.pools)
		return 0;
	given = read_credentials(request, text);
	r = identity_judge(&identity, x->client->listener, &given, detail, sizeof detail);
	explicit_bzero(text, sizeof text);
	keep_detail(x, detail);
	/* Whoever is asked for credentials may send them on the same connection, if it is clear where the next request begins. */
	if (r)
		x->keep_alive = r == REASON_CLIENT_UNKNOWN && request->keep_alive &&
				request->minor == 1 && request->framing == HTTP_NO_BODY;
	return r ? r : take_identity(x, &identity);
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
	if (!r && !client->is_allowed)
		r = REASON_REQUEST_DENIED;
	if (!r)
		r = identify(x, &request);
	if (!r)
		r = judge(x);
	if (!r && (!x->host || request.max_forwards == 0)) {
		answer_final(x, &request);
		buffer_consume(&client->in, head_len);
		exchange_end(x, REASON_OK);
		return;
	}
	if (x->is_connect || r == REASON_CLIENT_UNKNOWN)
		buffer_consume(&client->in, head_len);
	if (!r) {
		admit(x);
		return;
	}
	x->keep_alive = x->keep_alive && r == REASON_CLIENT_UNKNOWN && buffer_len(&client->in) == 0;
	exchange_end(x, r);
}

void exchange_begin_socks(struct client *client, const struct socks_request *request)
{
	struct exchange *x = new_exchange(client);
	int r = 0;

	if (!x)
		return;
	x->identity = client->identity;
	client->identity = NULL;
	x->pool = x->identity ? x->identity->pool : NULL;
	x->is_connect = true;
	x->host = strdup(request->host);
	x->port = request->port;
	r = x->host ? judge(x) : REASON_INTERNAL;
	if (r)
		exchange_end(x, r);
	else
		admit(x);
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
