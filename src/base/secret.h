/* secret.h - credentials inside of texts that people type: where they stand, and the text without
 * them.
 *
 * It guesses on the safe side: whatever may be a password counts as one. */
#ifndef FAIRLEAD_BASE_SECRET_H
#define FAIRLEAD_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the credentials in a URL ("scheme://user:password@host"), in "user:password@host" or in
 * the four parts of "host:port:user:password" and "user:password:host:port". */
bool secret_find(const char *text, size_t *ret_start, size_t *ret_len);

/* Writes `text` for a message: credentials as "***", control bytes and bytes outside ASCII
 * escaped, cut with "..." where the buffer ends. Always terminated; `size` >= 8. */
void secret_print(const char *text, char *buffer, size_t size);

#endif
