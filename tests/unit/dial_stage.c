/* dial_stage.c - a dial whose proxy the test plays line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dial_stage.h"

#include <string.h>

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	struct dial_stage *f = arg;

	(void)address;
	f->asked++;
	f->asked_port = port;
	f->was_target = is_target;
	return f->admits;
}

static void on_stream(struct stream *stream, int ready, void *arg)
{
	struct dial_stage *f = arg;

	(void)stream;
	(void)ready;
	f->calls++;
}

static void on_dialled(int result, struct dial *dial, void *arg)
{
	struct dial_stage *f = arg;
	const char *early;

	f->ends++;
	f->result = result;
	f->status = dial_received_status(dial);
	if (result)
		return;
	dial_take(dial, on_stream, f, &early, &f->early_len);
	assert_true(f->early_len < sizeof(f->early));
	if (f->early_len)
		memcpy(f->early, early, f->early_len);
}

void dial_stage_begin(struct dial_stage *f)
{
	memset(f, 0, sizeof(*f));
	stage_init(&f->stage);
	peer_listen(&f->peer, &f->stage, "127.0.0.1");
	f->admits = true;
	f->proxy =
	    (struct endpoint){.scheme = SCHEME_HTTP, .host = "127.0.0.1", .port = f->peer.port};
	f->request = (struct dial_request){.stream = &f->stream,
					   .proxy = &f->proxy,
					   .host = "example.com",
					   .port = 443,
					   .connect_ms = 5000,
					   .total_ms = 5000,
					   .is_admitted = is_admitted,
					   .arg = f};
}

void dial_stage_end(struct dial_stage *f)
{
	stream_close(&f->stream);
	peer_fini(&f->peer);
	stage_fini(&f->stage);
}

void dial_stage_start(struct dial_stage *f)
{
	f->ends = 0;
	assert_int_equal(dial_start(&f->dial, f->stage.loop, &f->request, on_dialled, f), 0);
	assert_int_equal(f->ends, 0);
}

void dial_stage_ask(struct dial_stage *f)
{
	dial_stage_start(f);
	peer_accept(&f->peer);
	peer_expect(&f->peer, "\r\n\r\n");
}

static bool has_heard(struct dial_stage *f, size_t len)
{
	peer_listen_up(&f->peer);
	return f->peer.heard_len >= len;
}

void dial_stage_hear(struct dial_stage *f, const void *bytes, size_t len)
{
	STAGE_UNTIL(&f->stage, has_heard(f, len));
	assert_int_equal(f->peer.heard_len, len);
	assert_memory_equal(f->peer.heard, bytes, len);
	peer_forget(&f->peer);
}

void dial_stage_say(struct dial_stage *f, const void *bytes, size_t len, size_t cut)
{
	size_t step = cut == DIAL_STAGE_DRIP ? 1 : cut;

	for (size_t at = 0, n; at < len && !f->ends; at += n) {
		n = step && len - at > step ? step : len - at;
		peer_say_bytes(&f->peer, (const char *)bytes + at, n);
		if (at + n < len)
			stage_turn(&f->stage);
		step = cut == DIAL_STAGE_DRIP ? 1 : len;
	}
}

void dial_stage_expect(struct dial_stage *f, int result)
{
	STAGE_UNTIL(&f->stage, f->ends);
	if (f->result != result)
		fail_msg("%s, not %s", result_word(f->result), result_word(result));
	for (int i = 0; i < 3; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 1);
}
