/* base64.c - RFC 4648 base 64, by OpenSSL. */
#include "base/base64.h"

#include <openssl/evp.h>

void base64_encode(char *ret, const void *bytes, size_t len)
{
	EVP_EncodeBlock((unsigned char *)ret, bytes, (int)len);
}
