/* digest.c - keyed digests, hexadecimal text and random bytes. */
#include "base/digest.h"

#include <errno.h>
#include <limits.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

int digest_hmac(uint8_t ret[DIGEST_BYTES], const void *key, size_t key_len, const void *bytes,
		size_t len)
{
	unsigned ret_len = 0;

	if (key_len > INT_MAX)
		return -EIO;
	if (!HMAC(EVP_sha256(), key, (int)key_len, bytes, len, ret, &ret_len))
		return -EIO;
	return ret_len == DIGEST_BYTES ? 0 : -EIO;
}

int digest_sha256(uint8_t ret[DIGEST_BYTES], const void *bytes, size_t len)
{
	unsigned ret_len = 0;

	if (!EVP_Digest(bytes, len, ret, &ret_len, EVP_sha256(), NULL))
		return -EIO;
	return ret_len == DIGEST_BYTES ? 0 : -EIO;
}

bool digest_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

void hex_print(const uint8_t *bytes, size_t len, char *buffer)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		buffer[2 * i] = digits[bytes[i] >> 4];
		buffer[2 * i + 1] = digits[bytes[i] & 15];
	}
	buffer[2 * len] = '\0';
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int hex_parse(uint8_t *ret, size_t len, const char *text, size_t text_len)
{
	if (text_len != 2 * len)
		return -EINVAL;
	for (size_t i = 0; i < text_len; i++)
		if (hex_digit(text[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < len; i++)
		ret[i] = (uint8_t)((unsigned)hex_digit(text[2 * i]) << 4 |
				   (unsigned)hex_digit(text[2 * i + 1]));
	return 0;
}

int random_bytes(void *ret, size_t len)
{
	uint8_t *at = ret;
	ssize_t n;

	while (len > 0) {
		n = getrandom(at, len, 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return 0;
}
