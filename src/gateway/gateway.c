/* gateway.c - listeners: accepting, pausing when descriptors run out, draining. */
#include "gateway/gateway.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "gateway/internal.h"

/* Connections taken at one event: enough for a burst, few enough that sister processes get their part. */
#define ACCEPTS 16
#define PAUSE_MS 100
#define FRESH_MS 1000 /* for the first byte of a client that has come just before a drain */

static void watch_listeners(struct gateway *gateway, bool on)
{
	struct listener *listener;

	TAILQ_FOREACH (listener, &gateway->listeners, link) {
		if (on)
			event_add(&listener->event, NULL);
		else
			event_del(&listener->event);
	}
}

/* Without a descriptor accept(2) fails at once and for ever: look away until one may be free. */
static void pause_accepting(struct gateway *gateway, const char *why)
{
	if (gateway->is_paused)
		return;
	gateway->is_paused = true;
	watch_listeners(gateway, false);
	metric_add(METRIC_ACCEPT_PAUSES, 0, 1);
	log_warn("accepting pauses", LOG_TEXT("error", why),
		 LOG_NUMBER("clients", (int64_t)gateway->client_count));
	alarm_set(&gateway->resume, clock_ms() + PAUSE_MS);
}

static void on_resume(void *arg)
{
	struct gateway *gateway = arg;

	if (gateway->is_draining)
		return;
	if (gateway->client_count >= gateway->config.max_clients) {
		alarm_set(&gateway->resume, clock_ms() + PAUSE_MS);
		return;
	}
	gateway->is_paused = false;
	watch_listeners(gateway, true);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;
	struct gateway *gateway = listener->gateway;
	struct sockaddr_storage peer;

	(void)what;
	for (int i = 0; i < ACCEPTS; i++) {
		int client;

		if (gateway->client_count >= gateway->config.max_clients) {
			pause_accepting(gateway, "as many clients as max_clients admits");
			return;
		}
		client = net_accept(fd, &peer);
		if (client == -EMFILE || client == -ENFILE || client == -ENOBUFS ||
		    client == -ENOMEM) {
			pause_accepting(gateway, result_word(client));
			return;
		}
		if (client < 0)
			return;
		if (client_new(listener, client, (struct sockaddr *)&peer))
			return;
	}
}

/* --- drain -------------------------------------------------------------------------------------------------------- */

static void end_all(struct gateway *gateway)
{
	struct client *client, *next;

	for (client = TAILQ_FIRST(&gateway->clients); client; client = next) {
		next = TAILQ_NEXT(client, link);
		if (client->state == CLIENT_BUSY)
			exchange_end(client->exchange, REASON_SHUTDOWN);
		client_end(client);
	}
}

/* Rings at the deadline, and early when a client ends. */
static void on_drain(void *arg)
{
	struct gateway *gateway = arg;

	if (!TAILQ_EMPTY(&gateway->clients) && clock_ms() < gateway->drain_deadline_ms) {
		alarm_set(&gateway->drain, gateway->drain_deadline_ms);
		return;
	}
	end_all(gateway);
	if (gateway->drained)
		gateway->drained(gateway->drained_arg);
	gateway->drained = NULL;
}

/* A kept connection may be closed between two requests, and its client knows that (RFC 9112 9.6). One that has just come may
 * have a request on its way, and nobody else will serve it. */
static void dismiss(struct client *client)
{
	if (client->end.bytes_out)
		client_end(client);
	else
		alarm_set(&client->alarm, clock_ms() + FRESH_MS);
}

void gateway_drain(struct gateway *gateway, int64_t deadline_ms, void (*done)(void *arg), void *arg)
{
	struct client *client, *next;

	gateway->is_draining = true;
	gateway->drained = done;
	gateway->drained_arg = arg;
	gateway->drain_deadline_ms = deadline_ms;
	watch_listeners(gateway, false);
	for (client = TAILQ_FIRST(&gateway->clients); client; client = next) {
		next = TAILQ_NEXT(client, link);
		if (client->state == CLIENT_HEAD && buffer_len(&client->in) == 0)
			dismiss(client);
	}
	alarm_set(&gateway->drain, TAILQ_EMPTY(&gateway->clients) ? clock_ms() : deadline_ms);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int gateway_new(struct gateway **ret, struct loop *loop, const struct gateway_config *config)
{
	struct gateway *gateway = calloc(1, sizeof *gateway);

	if (!gateway)
		return -ENOMEM;
	gateway->loop = loop;
	gateway->config = *config;
	TAILQ_INIT(&gateway->listeners);
	TAILQ_INIT(&gateway->clients);
	alarm_init(&gateway->resume, loop, on_resume, gateway);
	alarm_init(&gateway->drain, loop, on_drain, gateway);
	*ret = gateway;
	return 0;
}

/* Our own places are never targets. */
static void own_place(struct gateway *gateway, const struct listener *listener)
{
	struct policy *policy = &gateway->config.policy;

	if (policy->own_count < POLICY_OWN_MAX)
		policy->own[policy->own_count++] = listener->place;
}

static void judge_listener(struct gateway *gateway, struct listener *listener)
{
	listener->needs_account = gateway->config.accounts && listener->auth != LISTEN_AUTH_OFF;
}

void gateway_configure(struct gateway *gateway, const struct gateway_config *config)
{
	struct listener *listener;

	gateway->config = *config;
	TAILQ_FOREACH (listener, &gateway->listeners, link) {
		own_place(gateway, listener);
		judge_listener(gateway, listener);
	}
}

int gateway_listen(struct gateway *gateway, int fd, const struct listen_spec *spec)
{
	struct listener *listener = calloc(1, sizeof *listener);
	int r = listener ? net_local_place(fd, &listener->place) : -ENOMEM;

	if (r) {
		free(listener);
		return r;
	}
	listener->gateway = gateway;
	listener->is_local = net_place_is_local(&listener->place);
	if (spec) {
		listener->auth = spec->auth;
		listener->protocol = spec->protocol;
		memcpy(listener->user, spec->user, sizeof listener->user);
		memcpy(listener->pool, spec->pool, sizeof listener->pool);
	}
	own_place(gateway, listener);
	judge_listener(gateway, listener);
	event_assign(&listener->event, loop_base(gateway->loop), fd, EV_READ | EV_PERSIST,
		     on_acceptable, listener);
	event_add(&listener->event, NULL);
	TAILQ_INSERT_TAIL(&gateway->listeners, listener, link);
	return 0;
}

void gateway_free(struct gateway *gateway)
{
	struct listener *listener;

	if (!gateway)
		return;
	end_all(gateway);
	while ((listener = TAILQ_FIRST(&gateway->listeners))) {
		TAILQ_REMOVE(&gateway->listeners, listener, link);
		event_del(&listener->event);
		free(listener);
	}
	alarm_fini(&gateway->resume);
	alarm_fini(&gateway->drain);
	/* Clients are freed after the turn and look at nothing of ours by then. */
	free(gateway);
}
