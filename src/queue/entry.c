/* entry.c - reads packed tasks. */
#include "queue/entry.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD "payload="

/* One "key=value" of `len` bytes. */
struct pair {
	const char *at;
	size_t len;
};

/* The value, if it is the pair of that key. */
static bool pair_is(const struct pair *pair, const char *key, struct pair *ret_value)
{
	const size_t key_len = strlen(key);

	if (pair->len <= key_len || memcmp(pair->at, key, key_len) != 0 || pair->at[key_len] != '=')
		return false;
	*ret_value = (struct pair){pair->at + key_len + 1, pair->len - key_len - 1};
	return true;
}

static void copy(char *ret, size_t size, const struct pair *value)
{
	const size_t len = value->len < size ? value->len : size - 1;

	memcpy(ret, value->at, len);
	ret[len] = '\0';
}

/* Behind the value stands a tab or the NUL of the reply. */
static int64_t number(const struct pair *value)
{
	return strtoll(value->at, NULL, 10);
}

static void take_pair(struct queue_entry *entry, struct entry_texts *texts, const struct pair *pair)
{
	struct pair value;

	if (pair_is(pair, "level", &value))
		copy(texts->level, sizeof texts->level, &value);
	else if (pair_is(pair, "id", &value))
		copy(texts->id, sizeof texts->id, &value);
	else if (pair_is(pair, "reason", &value))
		copy(texts->reason, sizeof texts->reason, &value);
	else if (pair_is(pair, "failures", &value))
		entry->failures = number(&value);
	else if (pair_is(pair, "lost", &value))
		entry->lost = number(&value);
	else if (pair_is(pair, "released", &value))
		entry->released = number(&value);
	else if (pair_is(pair, "at", &value))
		entry->at_ms = number(&value);
}

void entry_read(struct queue_entry *ret, struct entry_texts *texts, const char *packed, size_t len)
{
	const char *end = packed + len;

	*texts = (struct entry_texts){0};
	*ret = (struct queue_entry){
	    .level = texts->level, .id = texts->id, .reason = texts->reason, .payload = {"", 0}};
	while (packed < end) {
		const char *tab = memchr(packed, '\t', (size_t)(end - packed));
		struct pair pair = {packed, (size_t)((tab ? tab : end) - packed)};

		if (pair.len >= strlen(PAYLOAD) && !memcmp(packed, PAYLOAD, strlen(PAYLOAD))) {
			packed += strlen(PAYLOAD);
			ret->payload = (struct word){packed, (size_t)(end - packed)};
			return;
		}
		take_pair(ret, texts, &pair);
		packed += pair.len + 1;
	}
}
