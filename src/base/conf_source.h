/* conf_source.h - sections [source NAME] while they are read; conf.h has what others ask for.
 *
 * A source belongs to its conf. Its values come from its section or are defaults. */
#ifndef FAIRLEAD_BASE_CONF_SOURCE_H
#define FAIRLEAD_BASE_CONF_SOURCE_H

#include "base/conf.h"

const struct conf_row *conf_source_row(enum conf_source_id id);

/* The setting of that name, or -1. */
int conf_source_find(const char *name);

/* Opens a section; the source becomes the last. `place` is that of its head. 0, -EINVAL (and
 * `error`): the name is unfit or taken, or there are too many; -ENOMEM. */
MUST_USE int conf_source_add(struct conf *conf, const char *name, size_t len,
			     struct conf_place place, struct conf_error *error);

/* Sets a value of the last source. Results as conf_set(). */
MUST_USE int conf_source_set(struct conf *conf, enum conf_source_id id, const char *text,
			     struct conf_place place, struct conf_error *error);

/* Has every source what it must have? 0, or -EINVAL with `error` naming the section's line in
 * `file`. */
MUST_USE int conf_source_check(const struct conf *conf, const char *file, struct conf_error *error);

/* The line that set a value, 0 for a default. */
int conf_source_line(const struct conf *conf, size_t index, enum conf_source_id id);

/* A value of any kind as it would stand in a file; the text "" and the number are those stored. */
const char *conf_source_stored(const struct conf *conf, size_t index, enum conf_source_id id,
			       int64_t *ret_number);

void conf_source_free_all(struct conf *conf);

#endif
