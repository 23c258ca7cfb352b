/* end.c - one of the two ends of an exchange. */
#include "gateway/end.h"

#include <errno.h>

/* Less than this at once is cheaper to copy. */
#define BULK_MIN (END_READ_SIZE / 4)

static char shared[END_READ_SIZE];

static int bulk_count; /* ends that are in bulk */

void end_init(struct end *end)
{
	*end = (struct end){0};
	buffer_init(&end->out, END_OUT_CAP);
}

static void drop_waiting(struct end *end)
{
	buffer_fini(&end->out);
	pipe_return(end->pipe);
	end->pipe = NULL;
}

static void set_bulk(struct end *end, bool is_bulk)
{
	bulk_count += is_bulk - end->is_bulk;
	end->is_bulk = is_bulk;
	if (!bulk_count)
		pipe_trim();
}

void end_close(struct end *end)
{
	stream_close(&end->stream);
	drop_waiting(end);
	set_bulk(end, false);
}

/* What a read has brought. */
static ssize_t count_read(struct end *end, ssize_t n)
{
	if (n > 0)
		end->bytes_in += (uint64_t)n;
	if (n > 0 || n == -EAGAIN)
		return n;
	end->has_ended = true;
	end->is_broken = end->is_broken || n < 0;
	return 0;
}

ssize_t end_read(struct end *end, char **ret_bytes)
{
	*ret_bytes = shared;
	return count_read(end, stream_read(&end->stream, shared, sizeof shared));
}

ssize_t end_read_into(struct end *end, struct buffer *in)
{
	size_t room = buffer_room(in) < sizeof shared ? buffer_room(in) : sizeof shared;
	ssize_t n = count_read(end, stream_read(&end->stream, shared, room));

	if (n > 0 && buffer_add(in, shared, (size_t)n)) {
		end->has_ended = end->is_broken = true;
		return 0;
	}
	return n;
}

static int fail(struct end *end, int error)
{
	end->is_broken = true;
	drop_waiting(end);
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

/* Writes what the pipe holds, and gives it back when it is empty. 0 or -errno. */
static int flush_pipe(struct end *end)
{
	ssize_t n = 0;

	while (end->pipe && (n = pipe_drain(end->pipe, stream_plain_fd(&end->stream))) > 0)
		end->bytes_out += (uint64_t)n;
	if (n == 0) {
		pipe_return(end->pipe);
		end->pipe = NULL;
	}
	return n < 0 && n != -EAGAIN ? fail(end, (int)n) : 0;
}

static void shut(struct end *end)
{
	if (!end->is_shut && !end->is_broken)
		stream_shutdown(&end->stream);
	end->is_shut = true;
}

int end_flush(struct end *end)
{
	int r = flush_pipe(end);
	ssize_t n;

	if (r || end->pipe)
		return r;
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

/* A pipe for what comes next; NULL: it is to be copied. */
static struct pipe *pipe_between(const struct end *from, const struct end *to)
{
	if (!from->is_bulk || stream_plain_fd(&from->stream) < 0 ||
	    stream_plain_fd(&to->stream) < 0)
		return NULL;
	return pipe_borrow();
}

void end_pass(struct end *from, struct end *to)
{
	char *bytes;
	ssize_t n;

	to->pipe = pipe_between(from, to);
	if (to->pipe) {
		n = count_read(from, pipe_fill(to->pipe, stream_plain_fd(&from->stream)));
		flush_pipe(to);
	} else {
		n = end_read(from, &bytes);
		if (n > 0 && end_write(to, bytes, (size_t)n))
			to->is_broken = true;
	}
	set_bulk(from, n >= (ssize_t)BULK_MIN);
}
