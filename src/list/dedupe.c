/* dedupe.c - the set of canonical forms seen so far: an open table over an arena of texts. */
#include "list/dedupe.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define FIRST_SLOTS ((size_t)1024)
#define FIRST_TEXTS ((size_t)65536)
/* Together with the number of texts this bounds the memory. */
#define BYTES_EACH ((size_t)256)
#define EMPTY UINT32_MAX

struct dedupe_slot {
	uint32_t hash;
	uint32_t at; /* offset into texts; EMPTY = free */
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* Little endian, whatever the machine is; bytes that are not there are 0. */
static uint64_t word_load(const uint8_t *bytes, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, bytes, len);
	return le64toh(word);
}

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t len)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	const uint8_t *at = bytes;
	size_t left;

	for (left = len; left >= 8; left -= 8, at += 8)
		sip_word(v, word_load(at, 8));
	sip_word(v, word_load(at, left) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int dedupe_init(struct dedupe *d, size_t max)
{
	*d = (struct dedupe){.max = max};
	return random_bytes(d->key, sizeof(d->key));
}

void dedupe_fini(struct dedupe *d)
{
	if (d->texts)
		explicit_bzero(d->texts, d->texts_len);
	free(d->texts);
	free(d->slots);
	*d = (struct dedupe){.max = d->max};
}

static bool slot_holds(const struct dedupe *d, const struct dedupe_slot *s, uint32_t hash,
		       const char *text, size_t len)
{
	uint16_t text_len;

	if (s->hash != hash)
		return false;
	memcpy(&text_len, d->texts + s->at, sizeof(text_len));
	return text_len == len && memcmp(d->texts + s->at + sizeof(text_len), text, len) == 0;
}

/* The slot that holds the text, or the free one where it belongs. */
static struct dedupe_slot *slot_find(const struct dedupe *d, uint32_t hash, const char *text,
				     size_t len)
{
	size_t i = hash & (d->slot_count - 1);

	while (d->slots[i].at != EMPTY && !slot_holds(d, &d->slots[i], hash, text, len))
		i = (i + 1) & (d->slot_count - 1);
	return &d->slots[i];
}

static void slots_move(struct dedupe_slot *to, size_t count, const struct dedupe *d)
{
	for (size_t i = 0; i < d->slot_count; i++) {
		size_t k = d->slots[i].hash & (count - 1);

		if (d->slots[i].at == EMPTY)
			continue;
		while (to[k].at != EMPTY)
			k = (k + 1) & (count - 1);
		to[k] = d->slots[i];
	}
}

/* Keeps the table at most three quarters full. */
static int slots_grow(struct dedupe *d)
{
	size_t count = d->slot_count ? d->slot_count * 2 : FIRST_SLOTS;
	struct dedupe_slot *slots;

	if ((d->count + 1) * 4 <= d->slot_count * 3)
		return 0;
	slots = malloc(count * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, count * sizeof(*slots)); /* at = EMPTY */
	slots_move(slots, count, d);
	free(d->slots);
	d->slots = slots;
	d->slot_count = count;
	return 0;
}

static int texts_grow(struct dedupe *d, size_t len)
{
	size_t size = d->texts_size ? d->texts_size : FIRST_TEXTS;
	char *texts;

	if (d->texts_len + len >= EMPTY || d->texts_len + len > FIRST_TEXTS + d->max * BYTES_EACH)
		return -ENOBUFS;
	while (size < d->texts_len + len)
		size += size / 2;
	if (size == d->texts_size)
		return 0;
	texts = malloc(size);
	if (!texts)
		return -ENOMEM;
	/* Not realloc(): what is left behind holds credentials. */
	if (d->texts) {
		memcpy(texts, d->texts, d->texts_len);
		explicit_bzero(d->texts, d->texts_len);
	}
	free(d->texts);
	d->texts = texts;
	d->texts_size = size;
	return 0;
}

static void bytes_add(struct dedupe *d, const void *bytes, size_t len)
{
	memcpy(d->texts + d->texts_len, bytes, len);
	d->texts_len += len;
}

/* The space that an item takes. */
static size_t item_size(const struct dedupe_item *item)
{
	return sizeof(uint16_t) + item->len + strlen(item->country) + strlen(item->anonymity) + 3;
}

static uint32_t texts_add(struct dedupe *d, const struct dedupe_item *item)
{
	uint32_t at = (uint32_t)d->texts_len;
	uint16_t text_len = (uint16_t)item->len;

	bytes_add(d, &text_len, sizeof(text_len));
	bytes_add(d, item->text, item->len);
	bytes_add(d, "", 1);
	bytes_add(d, item->country, strlen(item->country) + 1);
	bytes_add(d, item->anonymity, strlen(item->anonymity) + 1);
	return at;
}

int dedupe_add(struct dedupe *d, const struct dedupe_item *item)
{
	uint32_t hash = (uint32_t)siphash(d->key, item->text, item->len);
	struct dedupe_slot *slot;
	int r;

	if (item->len > UINT16_MAX)
		return -EMSGSIZE;
	r = slots_grow(d);
	if (r)
		return r;
	slot = slot_find(d, hash, item->text, item->len);
	if (slot->at != EMPTY)
		return 1;
	if (d->count >= d->max)
		return -ENOBUFS;
	r = texts_grow(d, item_size(item));
	if (r)
		return r;
	*slot = (struct dedupe_slot){hash, texts_add(d, item)};
	d->count++;
	return 0;
}

bool dedupe_has(const struct dedupe *d, const char *text, size_t len)
{
	uint32_t hash = (uint32_t)siphash(d->key, text, len);

	return d->slot_count && slot_find(d, hash, text, len)->at != EMPTY;
}

bool dedupe_next(const struct dedupe *d, size_t *at, struct dedupe_item *ret)
{
	uint16_t text_len;

	if (*at >= d->texts_len)
		return false;
	memcpy(&text_len, d->texts + *at, sizeof(text_len));
	ret->text = d->texts + *at + sizeof(text_len);
	ret->len = text_len;
	ret->country = ret->text + text_len + 1;
	ret->anonymity = ret->country + strlen(ret->country) + 1;
	*at += item_size(ret);
	return true;
}
