/* http_chunks.c - the chunked transfer coding (RFC 9112 7.1), read incrementally.
 *
 * One byte, one step: a state says what may come next, so that every split of the input gives the same result. Only
 * chunk data is taken in spans. */
#include <errno.h>

#include "base/http_parts.h"

#define SIZE_LINE_MAX ((size_t)1024) /* a size line with its extensions */
#define TRAILERS_MAX ((size_t)16384) /* the trailer section */
#define EXCESS_MAX ((size_t)65536)   /* of size lines, over the whole body */
#define SIZE_LINE_FREE ((size_t)16)  /* what a size line may always cost */
#define SIZE_DIGITS_MAX ((size_t)16)

/* RFC 9112 7.1: a recipient must anticipate large sizes. No body is as long as this; below it, nothing overflows. */
#define CHUNK_MAX (UINT64_C(1) << 60)

/* {0} is the first: a size line is expected. */
enum chunk_state {
	CHUNK_SIZE,
	CHUNK_SPACE, /* behind the size, before an extension */
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* at the beginning of a line */
	CHUNK_TRAILER_NAME,
	CHUNK_TRAILER_VALUE,
	CHUNK_TRAILER_LF,
	CHUNK_END_LF,
	CHUNK_DONE,
	CHUNK_BROKEN
};

static enum chunk_state expect(char byte, char wanted, enum chunk_state next)
{
	return byte == wanted ? next : CHUNK_BROKEN;
}

static uint64_t hex_value(char byte)
{
	if (byte_is(byte, BYTE_DIGIT))
		return (uint64_t)(byte - '0');
	return (uint64_t)(byte_lower(byte) - 'a') + 10;
}

static enum chunk_state step_size(struct http_chunks *c, char byte)
{
	size_t digits = c->line - 1;

	if (byte_is(byte, BYTE_HEX)) {
		c->left = c->left << 4 | hex_value(byte);
		return digits < SIZE_DIGITS_MAX && c->left < CHUNK_MAX ? CHUNK_SIZE : CHUNK_BROKEN;
	}
	if (digits == 0)
		return CHUNK_BROKEN;
	if (byte == ';')
		return CHUNK_EXTENSION;
	if (byte == ' ' || byte == '\t')
		return CHUNK_SPACE;
	return expect(byte, '\r', CHUNK_SIZE_LF);
}

/* RFC 9112 7.1.1: white space is tolerated before the ';' of an extension, and nowhere else. */
static enum chunk_state step_space(char byte)
{
	return byte == ' ' || byte == '\t' ? CHUNK_SPACE : expect(byte, ';', CHUNK_EXTENSION);
}

static enum chunk_state step_text(char byte, enum chunk_state self, enum chunk_state at_cr)
{
	return byte_is(byte, BYTE_VALUE) ? self : expect(byte, '\r', at_cr);
}

/* RFC 9112 7.1.1: extensions are to be limited in total. Long ones are fine before long chunks; many before chunks of a
 * few bytes only make work. */
static bool count_excess(struct http_chunks *c)
{
	uint64_t earned = SIZE_LINE_FREE + c->left;

	c->excess += c->line;
	c->excess = c->excess > earned ? c->excess - (size_t)earned : 0;
	c->line = 0;
	return c->excess <= EXCESS_MAX;
}

static enum chunk_state step_size_lf(struct http_chunks *c, char byte)
{
	if (!count_excess(c))
		return CHUNK_BROKEN;
	return expect(byte, '\n', c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER);
}

static enum chunk_state step_data_lf(struct http_chunks *c, char byte)
{
	c->line = 0;
	return expect(byte, '\n', CHUNK_SIZE);
}

static enum chunk_state step_trailer(char byte)
{
	return byte_is(byte, BYTE_TOKEN) ? CHUNK_TRAILER_NAME : expect(byte, '\r', CHUNK_END_LF);
}

static enum chunk_state step_trailer_name(char byte)
{
	return byte_is(byte, BYTE_TOKEN) ? CHUNK_TRAILER_NAME
					 : expect(byte, ':', CHUNK_TRAILER_VALUE);
}

static size_t line_max(enum chunk_state state)
{
	return state <= CHUNK_SIZE_LF ? SIZE_LINE_MAX : TRAILERS_MAX;
}

/* What `byte` leads to, outside chunk data. */
static enum chunk_state step(struct http_chunks *c, char byte)
{
	enum chunk_state state = (enum chunk_state)c->state;

	if (++c->line > line_max(state))
		return CHUNK_BROKEN;
	switch (state) {
	case CHUNK_SIZE:
		return step_size(c, byte);
	case CHUNK_SPACE:
		return step_space(byte);
	case CHUNK_EXTENSION:
		return step_text(byte, CHUNK_EXTENSION, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		return step_size_lf(c, byte);
	case CHUNK_DATA_CR:
		return expect(byte, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return step_data_lf(c, byte);
	case CHUNK_TRAILER:
		return step_trailer(byte);
	case CHUNK_TRAILER_NAME:
		return step_trailer_name(byte);
	case CHUNK_TRAILER_VALUE:
		return step_text(byte, CHUNK_TRAILER_VALUE, CHUNK_TRAILER_LF);
	case CHUNK_TRAILER_LF:
		return expect(byte, '\n', CHUNK_TRAILER);
	case CHUNK_END_LF:
		return expect(byte, '\n', CHUNK_DONE);
	case CHUNK_DATA:
	case CHUNK_DONE:
	case CHUNK_BROKEN:
		break;
	}
	return CHUNK_BROKEN;
}

/* As much data as is there and belongs to the chunk. */
static size_t take_data(struct http_chunks *c, size_t len)
{
	size_t n = c->left < len ? (size_t)c->left : len;

	c->left -= n;
	if (c->left == 0)
		c->state = CHUNK_DATA_CR;
	return n;
}

int http_chunks_read(struct http_chunks *c, const char *bytes, size_t len, size_t *used,
		     const char **data, size_t *data_len)
{
	size_t n = 0, taken = 0;

	while (n < len && c->state != CHUNK_DATA && c->state < CHUNK_DONE)
		c->state = (int)step(c, bytes[n++]);
	if (c->state == CHUNK_BROKEN)
		return -EPROTO;
	*data = n > 0 ? bytes + n : bytes;
	if (c->state == CHUNK_DATA)
		taken = take_data(c, len - n);
	*data_len = taken;
	*used = n + taken;
	return c->state == CHUNK_DONE;
}
