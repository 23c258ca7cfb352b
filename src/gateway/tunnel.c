/* tunnel.c - bytes in both directions until both have ended: CONNECT, and what a 101 made of a request. */
#include "base/clock.h"
#include "gateway/internal.h"

static struct end *other(struct exchange *x, const struct end *end)
{
	return end == &x->upstream ? &x->client->end : &x->upstream;
}

/* An end is read while its peer takes what comes, and watched for writing while something waits. */
static void watch(struct exchange *x, struct end *end)
{
	const struct end *peer = other(x, end);
	int wanted = 0;

	if (!end->has_ended && !end_is_full(peer) && !peer->is_broken)
		wanted |= STREAM_READ;
	if (end_is_full(end))
		wanted |= STREAM_WRITE;
	stream_want(&end->stream, wanted);
}

/* One direction is over when its source has ended and all of it was written, or can never be. */
static bool is_over(struct exchange *x, const struct end *from)
{
	const struct end *to = other(x, from);

	return to->is_broken || (from->has_ended && !end_is_full(to));
}

/* Looks at both ends after an event. */
static void settle(struct exchange *x)
{
	struct end *client = &x->client->end, *upstream = &x->upstream;

	if (is_over(x, client) && is_over(x, upstream)) {
		exchange_end(x, client->is_broken || upstream->is_broken ? REASON_RELAY_RESET
									 : REASON_OK);
		return;
	}
	watch(x, client);
	watch(x, upstream);
	alarm_set(&x->client->alarm, clock_ms() + x->gateway->config.idle_ms);
}

static void pump(struct exchange *x, struct end *from)
{
	struct end *to = other(x, from);

	end_pass(from, to); /* a broken end shows in settle() */
	if (from->has_ended && !(to->has_ended && !end_is_full(from) && !end_is_full(to)))
		end_shutdown(to); /* unless that was the last of it: both are closed at once */
}

void tunnel_ready(struct exchange *x, struct end *end, int ready)
{
	int r = 0;

	if (ready & STREAM_WRITE)
		r = end_flush(end);
	else
		pump(x, end);
	(void)r;
	settle(x);
}

void tunnel_continue(struct exchange *x)
{
	struct buffer *in = &x->client->in;

	/* What the client sent early was held until now. */
	if (buffer_len(in) && end_write(&x->upstream, buffer_at(in), buffer_len(in)) == 0)
		buffer_consume(in, buffer_len(in));
	buffer_fini(in);
	if (x->client->end.has_ended)
		end_shutdown(&x->upstream);
	settle(x);
}

void tunnel_begin(struct exchange *x, const char *early, size_t len)
{
	x->keep_alive = false;
	if (answer_established(x) || end_write(&x->client->end, early, len)) {
		exchange_end(x, REASON_CLIENT_GONE);
		return;
	}
	tunnel_continue(x);
}
