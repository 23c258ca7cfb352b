/* dedupe.h - the set of canonical forms seen so far, with their tags.
 *
 * Exact: the texts are kept, one behind the other in the order of their coming, so this is also
 * where a list's entries are held until they are applied. A list comes from strangers, so the
 * hash is keyed (SipHash-2-4). */
#ifndef FAIRLEAD_LIST_DEDUPE_H
#define FAIRLEAD_LIST_DEDUPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct dedupe_item {
	const char *text; /* may hold credentials */
	size_t len;
	const char *country, *anonymity; /* "" = not given */
};

struct dedupe {
	char *texts; /* length as uint16_t; text, country, anonymity with a NUL each */
	size_t texts_len, texts_size;
	struct dedupe_slot *slots; /* slot_count is a power of two, or 0 */
	size_t slot_count, count, max;
	uint64_t key[2];
};

/* `max`: how many texts it admits. Returns 0 or -errno (no random key). Allocates nothing yet. */
MUST_USE int dedupe_init(struct dedupe *d, size_t max);
void dedupe_fini(struct dedupe *d);

/* Returns 0 (new, kept), 1 (seen before: the first tags stay), -ENOBUFS (full: `max` texts, or
 * over 256 bytes each on average), -EMSGSIZE (over 65,535 bytes) or -ENOMEM. */
MUST_USE int dedupe_add(struct dedupe *d, const struct dedupe_item *item);

bool dedupe_has(const struct dedupe *d, const char *text, size_t len);

/* Walks the items in the order of their coming: *at is 0 first, and advanced. False at the end.
 * Pointers hold until the next dedupe_add(). */
bool dedupe_next(const struct dedupe *d, size_t *at, struct dedupe_item *ret);

/* SipHash-2-4 (Aumasson, Bernstein 2012). */
uint64_t siphash(const uint64_t key[2], const void *bytes, size_t len);

#endif
