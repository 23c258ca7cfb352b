/* payload.c - payloads, which are any bytes, as a user sees them. */
#include "cli/payload.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buffer.h"
#include "cli/output.h"

/* One byte that may not stand as it is; room for "\xNN" and a NUL. */
static void escape(char ret[static 5], unsigned char byte)
{
	static const char *const names[256] = {
	    ['\\'] = "\\\\", ['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};

	if (names[byte])
		strcpy(ret, names[byte]);
	else
		snprintf(ret, 5, "\\x%02x", byte);
}

/* The next piece of `bytes` as text: `*ret_text` of `*ret_len`. Returns how many bytes it stands for. */
static size_t next_piece(const char *bytes, size_t len, char escaped[static 5],
			 const char **ret_text, size_t *ret_len)
{
	size_t sequence = *bytes == '\\' ? 0 : output_printable(bytes, len);

	*ret_text = bytes;
	*ret_len = sequence;
	if (sequence)
		return sequence;
	escape(escaped, (unsigned char)*bytes);
	*ret_text = escaped;
	*ret_len = strlen(escaped);
	return 1;
}

void payload_print(FILE *stream, struct word payload)
{
	const char *at = payload.at, *end = at + payload.len, *text;
	char escaped[5];
	size_t len;

	while (at < end) {
		at += next_piece(at, (size_t)(end - at), escaped, &text, &len);
		fwrite(text, 1, len, stream);
	}
}

char *payload_text(struct word payload, size_t most)
{
	const char *at = payload.at, *end = at + payload.len, *text;
	struct buffer buffer;
	char escaped[5];
	size_t len;
	int r = 0;

	buffer_init(&buffer, most + 16);
	while (at < end && buffer_len(&buffer) < most && !r) {
		at += next_piece(at, (size_t)(end - at), escaped, &text, &len);
		r = buffer_add(&buffer, text, len);
	}
	if (!r && at < end)
		r = buffer_add_text(&buffer, "...");
	if (!r)
		r = buffer_add(&buffer, "", 1);
	if (r) {
		buffer_fini(&buffer);
		return NULL;
	}
	return buffer.data; /* nothing was consumed: it begins there */
}

int payload_json(struct json_t *object, struct word payload)
{
	/* NULL: not UTF-8 (or no memory, which base 64 will find as well). */
	json_t *text = json_stringn(payload.at, payload.len);
	const char *name = "payload";
	char *base64;

	if (!text) {
		name = "payload_base64";
		base64 = malloc(BASE64_SIZE(payload.len));
		if (!base64)
			return -ENOMEM;
		base64_encode(base64, payload.at, payload.len);
		text = json_string_nocheck(base64);
		free(base64);
	}
	return json_object_set_new(object, name, text) ? -ENOMEM : 0;
}

void payload_print_json(FILE *stream, struct json_t *object)
{
	if (!object)
		output_note_error(-ENOMEM);
	else if (json_dumpf(object, stream, JSON_COMPACT))
		output_note_error(errno ? -errno : -EIO);
	json_decref(object);
	fputc('\n', stream);
}
