/* packed.c - reads packed values. */
#include "pool/packed.h"

#include <stdlib.h>
#include <string.h>

const char *packed_find(const char *packed, const char *key, size_t *ret_len)
{
	const size_t key_len = strlen(key);

	for (const char *pair = packed; *pair;) {
		size_t len = strcspn(pair, "\t");

		if (len > key_len && pair[key_len] == '=' && !memcmp(pair, key, key_len)) {
			*ret_len = len - key_len - 1;
			return pair + key_len + 1;
		}
		pair += len + (pair[len] == '\t');
	}
	return NULL;
}

char *packed_copy(const char *packed, const char *key, char *ret, size_t size)
{
	size_t len = 0;
	const char *value = packed_find(packed, key, &len);

	len = len < size ? len : size - 1;
	if (value)
		memcpy(ret, value, len);
	ret[len] = '\0';
	return ret;
}

int64_t packed_number(const char *packed, const char *key, int64_t otherwise)
{
	char text[24] = "", *end;
	int64_t number = strtoll(packed_copy(packed, key, text, sizeof text), &end, 10);

	return *text && !*end ? number : otherwise;
}
