/* base64.c - RFC 4648 base 64, by OpenSSL. */
#include "base/base64.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

void base64_encode(char *ret, const void *bytes, size_t len)
{
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)len);
}

int base64_decode(char *ret, size_t *ret_len, const char *text, size_t len)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t padding = 0;

	while (padding < 2 && padding < len && text[len - padding - 1] == '=')
		padding++;
	/* OpenSSL skips white space around it, and takes padding for digits. */
	for (size_t i = 0; i < len - padding; i++)
		if (!memchr(digits, text[i], sizeof digits - 1))
			return -EINVAL;
	if (len % 4 || len > 65536 ||
	    (len &&
	     EVP_DecodeBlock((unsigned char *)ret, (const unsigned char *)text, (int)len) < 0))
		return -EINVAL;
	*ret_len = len / 4 * 3 - padding;
	return 0;
}
