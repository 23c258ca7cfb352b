/* base64.h - RFC 4648 base 64, as HTTP Basic credentials need it. */
#ifndef FAIRLEAD_BASE_BASE64_H
#define FAIRLEAD_BASE_BASE64_H

#include <stddef.h>

#include "base/result.h"

#define BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* `ret`: BASE64_SIZE(len) bytes, terminated. */
void base64_encode(char *ret, const void *bytes, size_t len);

/* Strict: whole groups of four, padded, nothing else. `ret`: len / 4 * 3 bytes. 0 or -EINVAL. */
MUST_USE int base64_decode(char *ret, size_t *ret_len, const char *text, size_t len);

#endif
