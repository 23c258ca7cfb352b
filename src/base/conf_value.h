/* conf_value.h - numbers of settings as text: integers, durations, sizes, switches, choices.
 * Pure. */
#ifndef FAIRLEAD_BASE_CONF_VALUE_H
#define FAIRLEAD_BASE_CONF_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"

/* Reads `text` as `row` wants it. 0, or -EINVAL with the reason in `why`: "must be 1 to 10". For
 * texts `ret` is 0. */
MUST_USE int conf_value_parse(const struct conf_row *row, const char *text, int64_t *ret, char *why,
			      size_t size);

/* A number as a user would write it: "64k", "5m", "10". */
void conf_value_print(enum conf_kind kind, int64_t number, char *buffer, size_t size);

/* Frees the texts; the value is zero then. */
void conf_value_clear(struct conf_value *value);

/* "1 to 10", "10ms to 5m", "text, json", "true or false"; "" for texts. */
void conf_value_range(const struct conf_row *row, char *buffer, size_t size);

#endif
