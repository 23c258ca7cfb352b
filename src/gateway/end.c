/* end.c - one of the two ends of an exchange. */
#include "gateway/end.h"

#include <errno.h>

static char shared[END_READ_SIZE];

void end_init(struct end *end)
{
	*end = (struct end){0};
	buffer_init(&end->out, END_OUT_CAP);
}

void end_close(struct end *end)
{
	stream_close(&end->stream);
	buffer_fini(&end->out);
}

ssize_t end_read(struct end *end, char **ret_bytes)
{
	ssize_t n = stream_read(&end->stream, shared, sizeof shared);

	*ret_bytes = shared;
	if (n > 0)
		end->bytes_in += (uint64_t)n;
	if (n > 0 || n == -EAGAIN)
		return n;
	end->has_ended = true;
	end->is_broken = end->is_broken || n < 0;
	return 0;
}

static int fail(struct end *end, int error)
{
	end->is_broken = true;
	buffer_fini(&end->out);
	return error;
}

int end_write(struct end *end, const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t n;

	while (len && !end_is_full(end)) {
		n = stream_write(&end->stream, at, len);
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return fail(end, (int)n);
		end->bytes_out += (uint64_t)n;
		at += n;
		len -= (size_t)n;
	}
	return buffer_add(&end->out, at, len);
}

int end_queue(struct end *end, const void *bytes, size_t len)
{
	return buffer_add(&end->out, bytes, len);
}

static void shut(struct end *end)
{
	if (!end->is_shut && !end->is_broken)
		stream_shutdown(&end->stream);
	end->is_shut = true;
}

int end_flush(struct end *end)
{
	ssize_t n;

	while (end_is_full(end)) {
		n = stream_write(&end->stream, buffer_at(&end->out), buffer_len(&end->out));
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return fail(end, (int)n);
		end->bytes_out += (uint64_t)n;
		buffer_consume(&end->out, (size_t)n);
	}
	if (end->wants_shutdown)
		shut(end);
	return 0;
}

void end_shutdown(struct end *end)
{
	end->wants_shutdown = true;
	if (!end_is_full(end))
		shut(end);
}
