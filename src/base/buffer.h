/* buffer.h - bytes in order, with a cap.
 *
 * Invariants: `data` holds `size` allocated bytes, the content is data[start..end); end - start never exceeds `cap`.
 * An empty buffer may own no memory. */
#ifndef FAIRLEAD_BASE_BUFFER_H
#define FAIRLEAD_BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>

#include "base/result.h"

struct buffer {
	char *data;
	size_t start, end, size, cap;
};

/* `cap`: the most bytes that it will ever hold. Allocates nothing. */
void buffer_init(struct buffer *b, size_t cap);

/* Frees the memory; the buffer is empty and usable again. */
void buffer_fini(struct buffer *b);

static inline size_t buffer_len(const struct buffer *b)
{
	return b->end - b->start;
}

static inline char *buffer_at(const struct buffer *b)
{
	return b->data + b->start;
}

/* How many more bytes the cap admits. */
static inline size_t buffer_room(const struct buffer *b)
{
	return b->cap - buffer_len(b);
}

/* Makes room for `len` more bytes and returns where they go, or NULL: over the cap (errno EMSGSIZE) or no memory
 * (ENOMEM). buffer_commit() then adds what was written there. */
char *buffer_reserve(struct buffer *b, size_t len);
void buffer_commit(struct buffer *b, size_t len);

/* Appends. 0, -EMSGSIZE (over the cap, nothing appended) or -ENOMEM. buffer_printf() needs room for a NUL as well. */
MUST_USE int buffer_add(struct buffer *b, const void *bytes, size_t len);
MUST_USE int buffer_add_text(struct buffer *b, const char *text);
MUST_USE int buffer_printf(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops `len` bytes at the front; memory is given back when nothing is left. */
void buffer_consume(struct buffer *b, size_t len);

#endif
