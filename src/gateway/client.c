/* client.c - a client's connection: heads in, one exchange after the other, a clean end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric.h"
#include "gateway/internal.h"

/* A whole head, and what a client may send before its tunnel stands. */
#define IN_CAP (HTTP_HEAD_MAX + 16384)
#define LINGER_MS 2000
#define LINGER_BYTES ((size_t)1 << 20)

static void free_client(struct grave *grave)
{
	struct client *client = (struct client *)grave;

	buffer_fini(&client->in);
	free(client->identity);
	free(client);
}

void client_end(struct client *client)
{
	struct gateway *gateway = client->gateway;

	if (client->state == CLIENT_ENDED)
		return;
	client->state = CLIENT_ENDED;
	alarm_fini(&client->alarm);
	end_close(&client->end);
	TAILQ_REMOVE(&gateway->clients, client, link);
	gateway->client_count--;
	metric_add(METRIC_CLIENTS, 0, -1);
	client->grave.free_object = free_client;
	loop_bury(gateway->loop, &client->grave);
	/* A descriptor is free: accepting may go on, and a drain may be over. */
	if (gateway->is_paused || gateway->is_draining)
		alarm_set(gateway->is_draining ? &gateway->drain : &gateway->resume, clock_ms());
}

/* --- linger ------------------------------------------------------------------------------------------------------- */

static void linger(struct client *client)
{
	client->state = CLIENT_LINGER;
	if (client->end.is_broken || client->end.has_ended) {
		if (!end_is_full(&client->end) || client->end.is_broken) {
			client_end(client);
			return;
		}
	}
	end_shutdown(&client->end);
	alarm_set(&client->alarm, clock_ms() + LINGER_MS);
	stream_want(&client->end.stream, (client->end.has_ended ? 0 : STREAM_READ) |
					     (end_is_full(&client->end) ? STREAM_WRITE : 0));
}

static void linger_ready(struct client *client, int ready)
{
	char *bytes;
	ssize_t n = 0;

	if (ready & STREAM_WRITE && end_flush(&client->end)) {
		client_end(client);
		return;
	}
	if (ready & STREAM_READ) {
		n = end_read(&client->end, &bytes);
		client->lingered += n > 0 ? (size_t)n : 0;
	}
	if ((client->end.has_ended && !end_is_full(&client->end)) || client->end.is_broken ||
	    client->lingered > LINGER_BYTES)
		client_end(client);
	else
		stream_want(&client->end.stream,
			    (client->end.has_ended ? 0 : STREAM_READ) |
				(end_is_full(&client->end) ? STREAM_WRITE : 0));
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

bool client_read(struct client *client)
{
	return buffer_room(&client->in) && end_read_into(&client->end, &client->in) > 0;
}

/* The first byte tells what the client speaks, if its listener lets it. */
static void choose_protocol(struct client *client)
{
	char first = *buffer_at(&client->in);
	bool is_socks = first == 5 || first == 4;

	client->protocol = CLIENT_HTTP;
	if (client->listener->protocol == LISTEN_SOCKS && !is_socks) {
		client->state = CLIENT_BUSY;
		exchange_refuse(client, REASON_REQUEST_SYNTAX, "this port speaks SOCKS");
	} else if (client->listener->protocol != LISTEN_HTTP && is_socks) {
		client->protocol = first == 5 ? CLIENT_SOCKS5_GREETING : CLIENT_SOCKS4;
	}
}

/* Begins the exchange whose head is complete, or waits for more. */
static void look_for_head(struct client *client)
{
	long head = http_scan_head(&client->scan, buffer_at(&client->in), buffer_len(&client->in));

	if (head == 0 && buffer_len(&client->in))
		return;
	if (head == 0) {
		/* Between requests an idle connection may hold no buffer. */
		buffer_fini(&client->in);
		return;
	}
	client->scan = (struct http_scan){0};
	client->state = CLIENT_BUSY;
	if (head < 0)
		exchange_refuse(client, (int)-head, "");
	else
		exchange_begin(client, (size_t)head);
}

static void look(struct client *client)
{
	if (client->protocol == CLIENT_UNKNOWN && buffer_len(&client->in))
		choose_protocol(client);
	if (client->state != CLIENT_HEAD)
		return;
	if (client->protocol == CLIENT_HTTP)
		look_for_head(client);
	else if (client->protocol != CLIENT_UNKNOWN)
		handshake_take(client);
}

static void head_ready(struct client *client)
{
	client_read(client);
	client->has_unseen = false;
	look(client);
	/* A client that has ended its side may have sent whole requests before. */
	if (client->state == CLIENT_HEAD && client->end.has_ended) {
		if (buffer_len(&client->in))
			metric_add(METRIC_REQUESTS, REASON_CLIENT_GONE, 1);
		client_end(client);
	}
}

static void await_head(struct client *client)
{
	const struct gateway_config *config = &client->gateway->config;
	/* A kept connection may be idle; its next head, once begun, has its own deadline. */
	bool is_first = client->end.bytes_out == 0 || buffer_len(&client->in) > 0;

	client->state = CLIENT_HEAD;
	alarm_set(&client->alarm, clock_ms() + (is_first ? config->head_ms : config->idle_ms));
	stream_want(&client->end.stream,
		    STREAM_READ | (end_is_full(&client->end) ? STREAM_WRITE : 0));
}

void client_watch_waiting(struct client *client)
{
	bool may_read = buffer_room(&client->in) > 0 && !client->end.has_ended;

	stream_want(&client->end.stream,
		    (may_read ? STREAM_READ : 0) | (end_is_full(&client->end) ? STREAM_WRITE : 0));
}

void client_exchange_ended(struct client *client, bool keep_alive)
{
	client->exchange = NULL;
	if (!keep_alive || client->gateway->is_draining ||
	    (client->end.has_ended && !buffer_len(&client->in))) {
		linger(client);
		return;
	}
	await_head(client);
	/* The next request may be here already; a flood of them goes one a turn, through the loop. */
	client->has_unseen = buffer_len(&client->in) > 0;
	if (client->has_unseen)
		alarm_set(&client->alarm, clock_ms());
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct client *client = arg;

	(void)stream;
	switch (client->state) {
	case CLIENT_HEAD:
		if (ready & STREAM_WRITE) {
			if (end_flush(&client->end))
				client_end(client);
			else
				stream_want(&client->end.stream,
					    STREAM_READ |
						(end_is_full(&client->end) ? STREAM_WRITE : 0));
			return;
		}
		/* The deadline of a SOCKS handshake covers all of it. */
		if ((buffer_len(&client->in) == 0 || client->has_unseen) &&
		    client->protocol <= CLIENT_HTTP)
			alarm_set(&client->alarm, clock_ms() + client->gateway->config.head_ms);
		head_ready(client);
		return;
	case CLIENT_BUSY:
		exchange_client_ready(client->exchange, ready);
		return;
	case CLIENT_LINGER:
		linger_ready(client, ready);
		return;
	case CLIENT_ENDED:
		return;
	}
}

static void on_alarm(void *arg)
{
	struct client *client = arg;

	switch (client->state) {
	case CLIENT_HEAD:
		if (client->has_unseen) {
			client->has_unseen = false;
			alarm_set(&client->alarm, clock_ms() + client->gateway->config.head_ms);
			look(client);
			if (client->state == CLIENT_HEAD && client->end.has_ended)
				client_end(client);
		} else if (buffer_len(&client->in) || client->protocol > CLIENT_HTTP) {
			client->state = CLIENT_BUSY;
			exchange_refuse(client, REASON_REQUEST_TIMEOUT, "");
		} else {
			client_end(client);
		}
		return;
	case CLIENT_BUSY:
		exchange_alarm(client->exchange);
		return;
	case CLIENT_LINGER:
	case CLIENT_ENDED:
		client_end(client);
		return;
	}
}

static void print_peer(struct client *client, const struct sockaddr *peer)
{
	struct address address;

	if (address_from_sockaddr(&address, peer))
		snprintf(client->peer, sizeof client->peer, "unix");
	else
		address_print(&address, client->peer, sizeof client->peer);
}

int client_new(const struct listener *listener, int fd, const struct sockaddr *peer)
{
	struct gateway *gateway = listener->gateway;
	struct client *client = calloc(1, sizeof *client);

	if (!client) {
		close(fd);
		return -ENOMEM;
	}
	end_init(&client->end);
	client->gateway = gateway;
	client->listener = listener;
	client->is_allowed = policy_client(&gateway->config.policy, peer, listener->is_local,
					   listener->needs_account);
	print_peer(client, peer);
	buffer_init(&client->in, IN_CAP);
	alarm_init(&client->alarm, gateway->loop, on_alarm, client);
	stream_open(&client->end.stream, gateway->loop, fd, on_ready, client);
	TAILQ_INSERT_TAIL(&gateway->clients, client, link);
	gateway->client_count++;
	metric_add(METRIC_CLIENTS, 0, 1);
	await_head(client);
	return 0;
}
