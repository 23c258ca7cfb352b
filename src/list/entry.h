/* entry.h - what a list reader says about each entry, whatever the format.
 *
 * Every reader ends an entry in one of the two functions below: they merge equals, count, and
 * call back. */
#ifndef FAIRLEAD_LIST_ENTRY_H
#define FAIRLEAD_LIST_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "base/result.h"
#include "base/verdict.h"
#include "list/dedupe.h"

#define LIST_SCHEME_MAX 16

struct list_entry {
	uint64_t line; /* from 1; 0 = the whole file */
	enum verdict verdict;
	const struct endpoint *endpoint; /* accepted and duplicates; NULL for all others */
	const char *text;                /* for messages, secrets masked, printable */
	const char *scheme;              /* unsupported-scheme: which, lower case, cut; else "" */
};

/* Everything in `e` is gone when this returns: copy what is to stay. */
typedef void list_entry_cb(const struct list_entry *e, void *arg);

struct list_output {
	struct endpoint_rules rules;
	list_entry_cb *cb;
	void *arg;
	struct dedupe seen;
	uint64_t counts[VERDICT_COUNT]; /* entries by verdict */
	char text[ENDPOINT_TEXT_MAX];
};

/* `max_entries`: how many different endpoints are accepted. Returns 0 or -errno. */
MUST_USE int list_output_init(struct list_output *o, const struct endpoint_rules *rules,
			      size_t max_entries, list_entry_cb *cb, void *arg);
void list_output_fini(struct list_output *o);

/* Reports `e`, which the caller still owns, as accepted or duplicate. Returns 0, -ENOMEM or
 * -ENOBUFS (more than max_entries; nothing was reported). */
MUST_USE int list_output_endpoint(struct list_output *o, uint64_t line, const struct endpoint *e);

/* Reports anything else; `text` is masked here. */
void list_output_verdict(struct list_output *o, uint64_t line, enum verdict verdict,
			 const char *text, size_t len);

/* Reads `text` as one item (item.h) and reports it. Returns as list_output_endpoint(). */
MUST_USE int list_output_item(struct list_output *o, uint64_t line, const char *text, size_t len);

#endif
