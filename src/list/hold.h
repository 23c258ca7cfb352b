/* hold.h - entries that wait for the end of their document.
 *
 * A JSON document that does not close drops its elements, so none may be told before. Compact:
 * one record behind the other, in the order of their coming. */
#ifndef FAIRLEAD_LIST_HOLD_H
#define FAIRLEAD_LIST_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "base/verdict.h"

#define LIST_SCHEME_MAX 16
#define LIST_TAG_MAX 32

struct list_entry {
	uint64_t line; /* from 1; 0 = the whole file */
	enum verdict verdict;
	const struct endpoint *endpoint; /* accepted and duplicates; NULL for all others */
	const char *text;                /* for messages, secrets masked, printable */
	const char *scheme;              /* unsupported-scheme: which, lower case, cut; else "" */
	/* Where the format gives them, as it writes them; "" = not given, or not printable, or
	 * over LIST_TAG_MAX - 1 bytes. */
	const char *country, *anonymity;
};

/* Everything in `e` is gone when this returns: copy what is to stay. */
typedef void list_entry_cb(const struct list_entry *e, void *arg);

struct list_hold {
	char *bytes; /* records; may hold credentials */
	size_t len, size, count, max;
};

/* `max`: how many entries it takes. Allocates nothing. */
void list_hold_init(struct list_hold *h, size_t max);
void list_hold_fini(struct list_hold *h);

/* Returns 0, -ENOBUFS (too many, or too large together) or -ENOMEM. */
MUST_USE int list_hold_add(struct list_hold *h, const struct list_entry *e);

/* Calls back for each entry, in order, and is empty then. */
void list_hold_release(struct list_hold *h, list_entry_cb *cb, void *arg);
void list_hold_drop(struct list_hold *h);

#endif
