/* payload.h - payloads, which are any bytes, as a user sees them. */
#ifndef FAIRLEAD_CLI_PAYLOAD_H
#define FAIRLEAD_CLI_PAYLOAD_H

#include <stddef.h>
#include <stdio.h>

#include "base/result.h"
#include "store/store.h"

struct json_t;

/* As text of one line that can be taken back: printable UTF-8 as it is, a backslash as "\\", all else as "\t", "\n",
 * "\r" or "\xNN" a byte. (printf '%b' of bash takes it back.) */
void payload_print(FILE *stream, struct word payload);

/* The same, cut to about `most` bytes of text with "..." behind them. To be freed; NULL: no memory. */
char *payload_text(struct word payload, size_t most);

/* Adds "payload", or "payload_base64" when it is not UTF-8. 0 or -ENOMEM. */
MUST_USE int payload_json(struct json_t *object, struct word payload);

/* Prints an object as one line, and forgets it. NULL, or what cannot be printed: told as output_error(). */
void payload_print_json(FILE *stream, struct json_t *object);

#endif
