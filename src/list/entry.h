/* entry.h - what a list reader says about each entry, whatever the format.
 *
 * Every reader ends an entry in one of the functions below: they merge equals, count, and call
 * back, at once or when a held document is released. */
#ifndef FAIRLEAD_LIST_ENTRY_H
#define FAIRLEAD_LIST_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "base/result.h"
#include "base/verdict.h"
#include "list/dedupe.h"
#include "list/hold.h"

struct list_tags {
	char country[LIST_TAG_MAX], anonymity[LIST_TAG_MAX];
};

struct list_output {
	struct endpoint_rules rules;
	list_entry_cb *cb;
	void *arg;
	struct dedupe seen; /* what was accepted */
	struct list_hold hold;
	bool is_holding;
	uint64_t counts[VERDICT_COUNT]; /* entries called back, by verdict */
	char text[ENDPOINT_TEXT_MAX];
};

/* `max_entries`: how many different endpoints are accepted, and how many entries of any kind a
 * JSON document may have. Returns 0 or -errno. */
MUST_USE int list_output_init(struct list_output *o, const struct endpoint_rules *rules,
			      size_t max_entries, list_entry_cb *cb, void *arg);
void list_output_fini(struct list_output *o);

/* These return 0, -ENOMEM or -ENOBUFS (more than max_entries; nothing was reported). */

/* Reports `e`, which the caller still owns, as accepted or duplicate. `tags`: NULL = none. */
MUST_USE int list_output_endpoint(struct list_output *o, uint64_t line, const struct endpoint *e,
				  const struct list_tags *tags);

/* Reports anything else; `text` is masked here. */
MUST_USE int list_output_verdict(struct list_output *o, uint64_t line, enum verdict verdict,
				 const char *text, size_t len);

/* Reads `text` as one item (item.h) and reports it. */
MUST_USE int list_output_item(struct list_output *o, uint64_t line, const char *text, size_t len);

/* From now on entries wait. list_output_release() tells them all; list_output_drop() forgets them,
 * with everything that was accepted. */
void list_output_hold(struct list_output *o);
void list_output_release(struct list_output *o);
MUST_USE int list_output_drop(struct list_output *o);

#endif
