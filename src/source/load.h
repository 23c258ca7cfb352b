/* load.h - proxy lists into a pool: read to their end into a compact arena, then applied. */
#ifndef FAIRLEAD_SOURCE_LOAD_H
#define FAIRLEAD_SOURCE_LOAD_H

#include <stdint.h>

#include "list/reader.h"
#include "pool/change.h"

struct load;

/* What a reading found. `first`: of each verdict the first entry, its text with secrets masked (NULL: none). */
struct load_summary {
	uint64_t counts[VERDICT_COUNT];
	struct {
		uint64_t line;
		char *text;
	} first[VERDICT_COUNT];
};

/* An empty load. `rules` is copied. 0 or -ENOMEM. */
MUST_USE int load_new(struct load **ret, const struct endpoint_rules *rules,
		      enum list_format format);
void load_free(struct load *load);

/* `cb` is told every entry of the readings to come. */
void load_watch(struct load *load, list_entry_cb *cb, void *arg);

/* Reads a whole list from `fd`; its entries join what the load holds. 0, or -errno: not readable (-EISDIR ...), -EFBIG (over
 * `max_bytes`), -ENOBUFS (over 2,000,000 entries). After an error nothing of this list is held. */
MUST_USE int load_read(struct load *load, int fd, uint64_t max_bytes);

/* The same from a file, which must be a regular one: a pipe could hold up a node for ever. -EINVAL for others. */
MUST_USE int load_read_file(struct load *load, const char *path, uint64_t max_bytes);

/* The same from what was fetched. -EBADMSG: it is an HTML page, by its type or its first byte, and no list, whatever
 * a reader could pick out of it. */
struct fetch_answer;
MUST_USE int load_read_answer(struct load *load, const struct fetch_answer *answer,
			      uint64_t max_bytes);

/* What went wrong with a reading, for people. Static storage. */
const char *load_error(int r);

/* Adds one entry that was named by hand; `direct://` is welcome here. 0, an enum verdict, or -errno. */
MUST_USE int load_add(struct load *load, const char *text);

const struct load_summary *load_summary(const struct load *load);

/* Entries that were refused: all verdicts but accepted, duplicate and skipped ones. */
uint64_t load_rejected(const struct load *load);

/* How many different endpoints it holds (in each list and by hand), and a walk over them; {0} first. The text is the
 * canonical form with its credentials. */
size_t load_count(const struct load *load);

struct load_cursor {
	size_t list, at;
};
bool load_next(const struct load *load, struct load_cursor *cursor, struct dedupe_item *ret);

#endif
