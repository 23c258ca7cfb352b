/* json_text.c - texts of any bytes in JSON. */
#include "worker/json_text.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"

/* The length of the sequence at `at`; 0: it is none. */
static size_t utf8_len(const unsigned char *at, size_t len)
{
	static const struct {
		unsigned char first, last, low, high; /* of the lead byte; of the one behind it */
		size_t len;
	} table[] = {
	    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (*at < table[i].first || *at > table[i].last)
			continue;
		if (table[i].len > len ||
		    (table[i].len > 1 && (at[1] < table[i].low || at[1] > table[i].high)))
			return 0;
		for (size_t k = 2; k < table[i].len; k++)
			if ((at[k] & 0xc0) != 0x80)
				return 0;
		return table[i].len;
	}
	return 0;
}

bool text_is_utf8(const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;

	for (size_t i = 0, n; i < len; i += n) {
		n = at[i] < 0x80 ? 1 : utf8_len(at + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

static bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte != '"' && byte != '\\';
}

static int add_byte(struct buffer *to, unsigned char byte)
{
	static const char letters[] = "\b\t\n\f\r\"\\", escapes[] = "btnfr\"\\";
	const char *letter = byte ? strchr(letters, byte) : NULL;
	char latin[2] = {(char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f))};

	if (byte >= 0x80)
		return buffer_add(to, latin, 2);
	if (letter)
		return buffer_add(to, (char[]){'\\', escapes[letter - letters]}, 2);
	return buffer_printf(to, "\\u%04x", byte);
}

int json_add_text(struct buffer *to, const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;
	bool is_utf8 = text_is_utf8(bytes, len);
	int r = buffer_add(to, "\"", 1);

	for (size_t i = 0, n; i < len && !r; i += n) {
		for (n = 0; i + n < len && is_plain(at[i + n]) && (is_utf8 || at[i + n] < 0x80);)
			n++;
		if (n)
			r = buffer_add(to, bytes + i, n);
		if (!r && i + n < len)
			r = add_byte(to, at[i + n++]);
	}
	return r ? r : buffer_add(to, "\"", 1);
}

int json_add_base64(struct buffer *to, const char *bytes, size_t len)
{
	int r = buffer_add(to, "\"", 1);
	char *at = r ? NULL : buffer_reserve(to, BASE64_SIZE(len));

	if (!at)
		return r ? r : -errno;
	base64_encode(at, bytes, len);
	buffer_commit(to, BASE64_SIZE(len) - 1);
	return buffer_add(to, "\"", 1);
}
