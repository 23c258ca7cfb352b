/* dedupe.h - the set of canonical forms seen so far.
 *
 * Exact: the texts are kept, one behind the other. A list comes from strangers, so the hash is
 * keyed (SipHash-2-4). */
#ifndef FAIRLEAD_LIST_DEDUPE_H
#define FAIRLEAD_LIST_DEDUPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct dedupe {
	char *texts; /* length as uint16_t, then the bytes; holds credentials */
	size_t texts_len, texts_size;
	struct dedupe_slot *slots; /* slot_count is a power of two, or 0 */
	size_t slot_count, count, max;
	uint64_t key[2];
};

/* `max`: how many texts it admits. Returns 0 or -errno (no random key). Allocates nothing yet. */
MUST_USE int dedupe_init(struct dedupe *d, size_t max);
void dedupe_fini(struct dedupe *d);

/* Returns 0 (new, kept), 1 (seen before), -ENOBUFS (full), -EMSGSIZE (over 65,535 bytes) or
 * -ENOMEM. */
MUST_USE int dedupe_add(struct dedupe *d, const char *text, size_t len);

/* SipHash-2-4 (Aumasson, Bernstein 2012). */
uint64_t siphash(const uint64_t key[2], const void *bytes, size_t len);

#endif
