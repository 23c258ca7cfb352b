/* json_text.h - texts of any bytes in JSON (RFC 8259). Pure. */
#ifndef FAIRLEAD_WORKER_JSON_TEXT_H
#define FAIRLEAD_WORKER_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool text_is_utf8(const char *bytes, size_t len);

/* In quotes, escaped. What is no UTF-8 is taken for ISO 8859-1, as headers of HTTP once were. 0 or buffer_add()'s. */
MUST_USE int json_add_text(struct buffer *to, const char *bytes, size_t len);

/* In quotes, base 64 (RFC 4648). 0, -EMSGSIZE or -ENOMEM. */
MUST_USE int json_add_base64(struct buffer *to, const char *bytes, size_t len);

#endif
