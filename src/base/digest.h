/* digest.h - keyed digests, hexadecimal text and random bytes. */
#ifndef FAIRLEAD_BASE_DIGEST_H
#define FAIRLEAD_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

#define DIGEST_BYTES 32

/* HMAC-SHA-256 (RFC 2104, FIPS 180-4). 0 or -EIO. */
MUST_USE int digest_hmac(uint8_t ret[DIGEST_BYTES], const void *key, size_t key_len,
			 const void *bytes, size_t len);

/* SHA-256 (FIPS 180-4). 0 or -EIO. */
MUST_USE int digest_sha256(uint8_t ret[DIGEST_BYTES], const void *bytes, size_t len);

/* Are `len` bytes equal? Takes as long wherever they differ, so that nobody finds out a secret byte by byte. */
bool digest_equal(const void *a, const void *b, size_t len);

/* Lower-case hexadecimal, terminated; `buffer`: >= 2 * len + 1 bytes. */
void hex_print(const uint8_t *bytes, size_t len, char *buffer);

/* Reads exactly `len` bytes from 2 * len hexadecimal digits of any case. 0 or -EINVAL. */
MUST_USE int hex_parse(uint8_t *ret, size_t len, const char *text, size_t text_len);

/* The value of one hexadecimal digit, or -1. */
int hex_digit(char c);

/* Fills `ret` from the kernel's generator. 0 or -errno. */
MUST_USE int random_bytes(void *ret, size_t len);

#endif
