/* packed.h - reads packed values, "key=value" pairs separated by tabs (docs/wire.md). Pure. */
#ifndef FAIRLEAD_POOL_PACKED_H
#define FAIRLEAD_POOL_PACKED_H

#include <stddef.h>
#include <stdint.h>

/* The value of the first pair of that key, up to a tab or the end: `*ret_len` bytes; NULL: there is none. */
const char *packed_find(const char *packed, const char *key, size_t *ret_len);

/* Copies it, cut to `size`; "" if there is none. Returns `ret`. */
char *packed_copy(const char *packed, const char *key, char *ret, size_t size);

/* A whole number; `otherwise` if there is none. */
int64_t packed_number(const char *packed, const char *key, int64_t otherwise);

#endif
