/* survey.c - how many bytes went through a pool, and of which clients, for people. */
#include "pool/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "pool/traffic.h"

#define PAGE "1000"

struct client {
	struct client_view view;
	UT_hash_handle hh;
	char name[];
};

struct inquiry {
	struct pool *pool;
	survey_cb *cb;
	void *arg;
	struct survey view;
	struct client_view busiest[BUSIEST_MAX];
	struct client *clients;
	char cursor[24];
};

static void inquiry_free(struct inquiry *inquiry)
{
	struct client *client = inquiry->clients, *next;

	HASH_CLEAR(hh, inquiry->clients);
	for (; client; client = next) {
		next = client->hh.next;
		free(client);
	}
	free(inquiry);
}

static void inquiry_end(struct inquiry *inquiry, int result, const char *error)
{
	inquiry->cb(result, error, &inquiry->view, inquiry->arg);
	inquiry_free(inquiry);
}

static int by_bytes(const struct client *a, const struct client *b)
{
	const int64_t x = a->view.bytes_in + a->view.bytes_out,
		      y = b->view.bytes_in + b->view.bytes_out;

	return x == y ? 0 : x > y ? -1 : 1;
}

static void choose_busiest(struct inquiry *inquiry)
{
	struct survey *view = &inquiry->view;

	HASH_SORT(inquiry->clients, by_bytes);
	view->client_count = HASH_COUNT(inquiry->clients);
	view->busiest = inquiry->busiest;
	for (struct client *client = inquiry->clients; client && view->busiest_count < BUSIEST_MAX;
	     client = client->hh.next)
		inquiry->busiest[view->busiest_count++] = client->view;
}

/* The client of that name, maybe new; NULL without memory. */
static struct client *client_of(struct inquiry *inquiry, const char *name, size_t len)
{
	struct client *client;

	HASH_FIND(hh, inquiry->clients, name, (unsigned)len, client);
	if (client)
		return client;
	client = calloc(1, sizeof *client + len + 1);
	if (!client)
		return NULL;
	memcpy(client->name, name, len);
	client->view = (struct client_view){.name = client->name, .name_len = len};
	HASH_ADD_KEYPTR(hh, inquiry->clients, client->name, (unsigned)len, client);
	return client;
}

/* 0 or -ENOMEM. HSCAN may show a field twice: its number is set, not added. */
static int take_field(struct inquiry *inquiry, const struct reply *field, const struct reply *bytes)
{
	size_t len, prefix_len;
	const char *text = reply_text(field, &len);
	bool is_in = !strncmp(text, TRAFFIC_IN, strlen(TRAFFIC_IN));
	struct client *client;

	if (!is_in && strncmp(text, TRAFFIC_OUT, strlen(TRAFFIC_OUT)) != 0)
		return 0;
	prefix_len = strlen(is_in ? TRAFFIC_IN : TRAFFIC_OUT);
	client = client_of(inquiry, text + prefix_len, len - prefix_len);
	if (!client)
		return -ENOMEM;
	*(is_in ? &client->view.bytes_in : &client->view.bytes_out) = reply_integer(bytes, 0);
	return 0;
}

static int read_clients(struct inquiry *inquiry);

static void on_clients(int result, const struct reply *reply, void *arg)
{
	struct inquiry *inquiry = arg;
	const struct reply *items = reply_at(reply, 1);

	if (result) {
		inquiry_end(inquiry, result, reply_text(reply, NULL));
		return;
	}
	for (size_t i = 0; i + 1 < reply_count(items); i += 2) {
		if (take_field(inquiry, reply_at(items, i), reply_at(items, i + 1))) {
			inquiry_end(inquiry, REASON_INTERNAL, "out of memory");
			return;
		}
	}
	snprintf(inquiry->cursor, sizeof inquiry->cursor, "%s",
		 reply_text(reply_at(reply, 0), NULL));
	if (!strcmp(inquiry->cursor, "0")) {
		choose_busiest(inquiry);
		inquiry_end(inquiry, 0, "");
	} else if (read_clients(inquiry)) {
		inquiry_end(inquiry, REASON_STORE_NOT_DONE, "");
	}
}

static int read_clients(struct inquiry *inquiry)
{
	struct word words[] = {WORD("HSCAN"), pool_key(pool_keys(inquiry->pool), KEY_CLIENTS),
			       WORD(inquiry->cursor), WORD("COUNT"), WORD(PAGE)};

	return store_command(pool_store(inquiry->pool), STORE_IDEMPOTENT, words, 5, on_clients,
			     inquiry);
}

static void on_sums(int result, const struct reply *reply, void *arg)
{
	struct inquiry *inquiry = arg;

	if (!result) {
		inquiry->view.bytes_in = reply_integer(reply_at(reply, 0), 0);
		inquiry->view.bytes_out = reply_integer(reply_at(reply, 1), 0);
		if (!read_clients(inquiry))
			return;
		result = REASON_STORE_NOT_DONE;
	}
	inquiry_end(inquiry, result,
		    reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

static void on_alarm(int result, const struct reply *reply, void *arg)
{
	struct inquiry *inquiry = arg;
	struct word words[] = {WORD("HMGET"), pool_key(pool_keys(inquiry->pool), KEY_TRAFFIC),
			       WORD(TRAFFIC_IN), WORD(TRAFFIC_OUT)};

	if (!result) {
		inquiry->view.held_ms = reply_integer(reply, 0);
		if (!store_command(pool_store(inquiry->pool), STORE_IDEMPOTENT, words, 4, on_sums,
				   inquiry))
			return;
		result = REASON_STORE_NOT_DONE;
	}
	inquiry_end(inquiry, result,
		    reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

int pool_survey(struct pool *pool, survey_cb *cb, void *arg)
{
	struct inquiry *inquiry = calloc(1, sizeof *inquiry);
	struct word words[] = {WORD("GET"), pool_key(pool_keys(pool), KEY_ALARM)};
	int r;

	if (!inquiry)
		return -ENOMEM;
	*inquiry = (struct inquiry){.pool = pool, .cb = cb, .arg = arg, .cursor = "0"};
	r = store_command(pool_store(pool), STORE_IDEMPOTENT, words, 2, on_alarm, inquiry);
	if (r)
		free(inquiry);
	return r;
}
