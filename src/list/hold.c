/* hold.c - entries that wait for the end of their document. */
#include "list/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Together with the number of entries this bounds the memory. */
#define BYTES_EACH ((size_t)256)
#define FIRST_SIZE ((size_t)16384)

enum { TEXT_A, TEXT_B, TEXT_COUNTRY, TEXT_ANONYMITY, TEXT_COUNT };

/* Its texts follow, each with its NUL: host and secret of an endpoint, the message of any other;
 * the scheme; country; anonymity. */
struct record {
	uint64_t line;
	uint32_t size; /* with its texts */
	uint16_t port;
	uint8_t verdict, scheme;
	uint8_t is_endpoint, has_secret;
};

void list_hold_init(struct list_hold *h, size_t max)
{
	*h = (struct list_hold){.max = max};
}

void list_hold_drop(struct list_hold *h)
{
	if (h->len > 0)
		explicit_bzero(h->bytes, h->len);
	h->len = h->count = 0;
}

void list_hold_fini(struct list_hold *h)
{
	list_hold_drop(h);
	free(h->bytes);
	h->bytes = NULL;
	h->size = 0;
}

static int hold_reserve(struct list_hold *h, size_t len)
{
	size_t size = h->size ? h->size : FIRST_SIZE;
	char *bytes;

	if (h->count >= h->max || h->len + len > FIRST_SIZE + h->max * BYTES_EACH)
		return -ENOBUFS;
	while (size < h->len + len)
		size += size / 2;
	if (size == h->size)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	/* Not realloc(): what is left behind holds credentials. */
	if (h->len > 0) {
		memcpy(bytes, h->bytes, h->len);
		explicit_bzero(h->bytes, h->len);
	}
	free(h->bytes);
	h->bytes = bytes;
	h->size = size;
	return 0;
}

static void hold_put(struct list_hold *h, const void *bytes, size_t len)
{
	memcpy(h->bytes + h->len, bytes, len);
	h->len += len;
}

static void texts_choose(const char *texts[TEXT_COUNT], const struct list_entry *e)
{
	const char *secret = e->endpoint && e->endpoint->secret ? e->endpoint->secret : "";

	texts[TEXT_A] = e->endpoint ? e->endpoint->host : e->text;
	texts[TEXT_B] = e->endpoint ? secret : e->scheme;
	texts[TEXT_COUNTRY] = e->country;
	texts[TEXT_ANONYMITY] = e->anonymity;
}

int list_hold_add(struct list_hold *h, const struct list_entry *e)
{
	struct record record = {.line = e->line, .verdict = (uint8_t)e->verdict};
	const char *texts[TEXT_COUNT];
	size_t size = sizeof(record);
	int r;

	texts_choose(texts, e);
	for (int i = 0; i < TEXT_COUNT; i++)
		size += strlen(texts[i]) + 1;
	r = hold_reserve(h, size);
	if (r)
		return r;
	record.size = (uint32_t)size;
	if (e->endpoint) {
		record.is_endpoint = 1;
		record.has_secret = e->endpoint->secret != NULL;
		record.port = e->endpoint->port;
		record.scheme = (uint8_t)e->endpoint->scheme;
	}
	hold_put(h, &record, sizeof(record));
	for (int i = 0; i < TEXT_COUNT; i++)
		hold_put(h, texts[i], strlen(texts[i]) + 1);
	h->count++;
	return 0;
}

/* The record at `at` back into an entry; `endpoint` and `message` are where its parts go. */
static struct record record_load(struct list_entry *ret, struct endpoint *endpoint, char *at,
				 char *message, size_t size)
{
	struct record record;
	char *texts[TEXT_COUNT];

	memcpy(&record, at, sizeof(record));
	at += sizeof(record);
	for (int i = 0; i < TEXT_COUNT; i++, at += strlen(at) + 1)
		texts[i] = at;
	*ret = (struct list_entry){.line = record.line,
				   .verdict = (enum verdict)record.verdict,
				   .text = texts[TEXT_A],
				   .scheme = texts[TEXT_B],
				   .country = texts[TEXT_COUNTRY],
				   .anonymity = texts[TEXT_ANONYMITY]};
	if (record.is_endpoint) {
		endpoint->scheme = (enum scheme)record.scheme;
		endpoint->port = record.port;
		memcpy(endpoint->host, texts[TEXT_A], strlen(texts[TEXT_A]) + 1);
		endpoint->secret = record.has_secret ? texts[TEXT_B] : NULL;
		endpoint_print(endpoint, HIDE_SECRET, message, size);
		ret->endpoint = endpoint;
		ret->text = message;
		ret->scheme = "";
	}
	return record;
}

void list_hold_release(struct list_hold *h, list_entry_cb *cb, void *arg)
{
	char message[ENDPOINT_HOST_MAX + 64]; /* a canonical form without its secret */
	struct endpoint endpoint;
	struct list_entry entry;

	for (size_t at = 0; at < h->len;) {
		at += record_load(&entry, &endpoint, h->bytes + at, message, sizeof(message)).size;
		cb(&entry, arg);
	}
	list_hold_drop(h);
}
