/* body.c - a message's body on its way: out of one framing, into another. */
#include "gateway/body.h"

#include <stdio.h>
#include <string.h>

struct body body_of(enum http_framing from, enum http_framing to, uint64_t length)
{
	return (struct body){.from = from,
			     .to = to,
			     .left = length,
			     .is_done = from == HTTP_NO_BODY || (from == HTTP_LENGTH && !length)};
}

/* Writes body content in the framing of the far side. */
static int write_piece(const struct body *body, struct end *to, const char *data, size_t len)
{
	char size[24];
	int r;

	if (len == 0)
		return 0;
	if (body->to != HTTP_CHUNKED)
		return end_write(to, data, len);
	snprintf(size, sizeof size, "%zx\r\n", len);
	r = end_write(to, size, strlen(size));
	if (!r)
		r = end_write(to, data, len);
	return r ? r : end_write(to, "\r\n", 2);
}

int body_finish(struct body *body, struct end *to)
{
	body->is_done = true;
	return body->to == HTTP_CHUNKED ? end_write(to, "0\r\n\r\n", 5) : 0;
}

static int pass_chunked(struct body *body, struct end *to, const char *bytes, size_t len,
			size_t *used)
{
	size_t piece_len, step;
	const char *piece;
	int r = 0;

	while (r == 0 && *used < len && !body->is_done) {
		int done = http_chunks_read(&body->chunks, bytes + *used, len - *used, &step,
					    &piece, &piece_len);

		if (done < 0)
			return done;
		*used += step;
		r = write_piece(body, to, piece, piece_len);
		if (done > 0 && !r)
			r = body_finish(body, to);
		else if (step == 0)
			break;
	}
	return r;
}

int body_pass(struct body *body, struct end *to, const char *bytes, size_t len, size_t *used)
{
	int r = 0;

	*used = 0;
	switch (body->from) {
	case HTTP_NO_BODY:
		break;
	case HTTP_CHUNKED:
		return pass_chunked(body, to, bytes, len, used);
	case HTTP_LENGTH:
		*used = len < body->left ? len : (size_t)body->left;
		body->left -= *used;
		r = write_piece(body, to, bytes, *used);
		if (!r && body->left == 0)
			r = body_finish(body, to);
		break;
	case HTTP_UNTIL_CLOSE:
		*used = len;
		r = write_piece(body, to, bytes, len);
		break;
	}
	return r;
}
