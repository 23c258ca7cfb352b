/* reply.h - an answer of the store, read only. Valid until the callback that got it returns. */
#ifndef FAIRLEAD_STORE_REPLY_H
#define FAIRLEAD_STORE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct reply;

enum reply_kind { REPLY_NIL, REPLY_TEXT, REPLY_STATUS, REPLY_INTEGER, REPLY_ARRAY, REPLY_ERROR };

/* NULL is REPLY_NIL in all of these. */
enum reply_kind reply_kind(const struct reply *reply);

/* Bytes of a text, status or error, NUL-terminated behind `*ret_len`; "" for others. `ret_len` may be NULL. */
const char *reply_text(const struct reply *reply, size_t *ret_len);

/* An integer, or a text that is one; `otherwise` if neither. */
int64_t reply_integer(const struct reply *reply, int64_t otherwise);

/* A finite or infinite double from a text as Redis writes scores. 0 or -EINVAL. */
MUST_USE int reply_double(const struct reply *reply, double *ret);

/* Elements of an array, 0 for others; NULL outside. */
size_t reply_count(const struct reply *reply);
const struct reply *reply_at(const struct reply *reply, size_t index);

/* What an error reply says of the operation (docs/wire.md, "Outcomes"): the first word decides. */
enum error_class {
	ERROR_NOSCRIPT,  /* send it again as EVAL */
	ERROR_TRANSIENT, /* not executed; another connection or a little later may do */
	ERROR_REFUSED,   /* not executed, and would be refused again */
	ERROR_PARTIAL,   /* a script stopped, maybe after a write */
};
enum error_class reply_classify(const char *error, bool is_script);

#endif
