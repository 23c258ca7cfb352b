/* http_parts.h - what the files of the HTTP parser share; nobody else includes it. */
#ifndef FAIRLEAD_BASE_HTTP_PARTS_H
#define FAIRLEAD_BASE_HTTP_PARTS_H

#include <string.h>

#include "base/http.h"

/* What a byte may be part of; bits of http_bytes[]. */
enum {
	BYTE_TOKEN = 1,  /* RFC 9110 5.6.2 tchar */
	BYTE_VALUE = 2,  /* field value: HTAB, SP, VCHAR, obs-text (RFC 9110 5.5) */
	BYTE_TARGET = 4, /* VCHAR but '#': a request target has no fragment (RFC 9112 3.2) */
	BYTE_HOST = 8,   /* letters, digits, '-', '_', '.' */
	BYTE_DIGIT = 16,
	BYTE_HEX = 32
};

extern const uint8_t http_bytes[256];

static inline bool byte_is(char byte, int class)
{
	return http_bytes[(uint8_t)byte] & class;
}

static inline char byte_lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* How many bytes at the front of `t` are of `class`. */
static inline size_t text_span(struct text t, int class)
{
	size_t n = 0;

	while (n < t.len && byte_is(t.at[n], class))
		n++;
	return n;
}

static inline struct text text_skip(struct text t, size_t n)
{
	return (struct text){t.at + n, t.len - n};
}

/* Methods are case-sensitive (RFC 9110 9.1). */
static inline bool http_method_is(struct text method, const char *word)
{
	return method.len == strlen(word) && !memcmp(method.at, word, method.len);
}

/* Takes the next line off `rest`, without its CRLF; false if none ends in CRLF. */
bool http_take_line(struct text *rest, struct text *ret);

/* Fields that decide about the message itself. Their names differ in length, which finds them in one step. */
enum known_field {
	KNOWN_HOST,
	KNOWN_EXPECT,
	KNOWN_UPGRADE,
	KNOWN_CONNECTION,
	KNOWN_MAX_FORWARDS,
	KNOWN_CONTENT_LENGTH,
	KNOWN_PROXY_CONNECTION,
	KNOWN_TRANSFER_ENCODING,
	KNOWN_COUNT
};

struct http_known {
	unsigned count[KNOWN_COUNT];
	struct text value[KNOWN_COUNT]; /* of the last one */
	size_t options;                 /* elements of all Connection fields */
	bool close, keep_alive, upgrade, expect_continue;
};

/* Reads the lines of `rest` up to and including the empty one, which must be its end. `space_before_colon`: tolerated and
 * removed. Returns 0, REASON_REQUEST_SYNTAX or REASON_REQUEST_HEAD_SIZE; the caller owns what it points to, and it is
 * only valid after 0. */
MUST_USE int http_read_fields(struct text rest, bool space_before_colon, struct http_field *fields,
			      size_t *field_count, struct http_known *known);

/* The one place that decides how long a body is (RFC 9112 6). HTTP_NO_BODY: no framing field at all. Returns 0,
 * REASON_REQUEST_SYNTAX or REASON_REQUEST_CODING. */
MUST_USE int http_read_framing(const struct http_known *known, int minor, enum http_framing *ret,
			       uint64_t *ret_length);

/* Sets form, host, port and path from method and target. Returns 0, REASON_REQUEST_SYNTAX, REASON_REQUEST_SCHEME. */
MUST_USE int http_read_target(struct http_request *r);

/* Is it "host" or "host:port" or empty, as in a Host field? */
bool http_host_is_valid(struct text value);

#endif
