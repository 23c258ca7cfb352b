/* probe_stage.c - a probe whose proxy, and the target behind it, the test plays line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe_stage.h"

#include <string.h>

#include "base/clock.h"

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	(void)address;
	(void)port;
	(void)is_target;
	(void)arg;
	return true;
}

static void on_outcome(struct probe *probe, const struct probe_outcome *outcome, void *arg)
{
	struct probe_stage *f = arg;

	assert_ptr_equal(probe, f->probe);
	f->ends++;
	f->outcome = *outcome;
}

void probe_stage_expect(struct probe_stage *f, const char *statuses, const char *text)
{
	char error[100];

	assert_int_equal(expectation_parse(&f->expectation, statuses, text, error, sizeof error),
			 0);
	f->request.expectation = &f->expectation;
}

void probe_stage_begin(struct probe_stage *f, enum scheme scheme)
{
	memset(f, 0, sizeof *f);
	stage_init(&f->stage);
	peer_listen(&f->peer, &f->stage, "127.0.0.1");
	f->proxy = (struct endpoint){.scheme = scheme, .host = "127.0.0.1", .port = f->peer.port};
	f->target = (struct target){TARGET_HTTP, "target.example", 80, "/page"};
	f->request = (struct probe_request){.proxy = &f->proxy,
					    .target = &f->target,
					    .timeout_ms = PROBE_STAGE_TIMEOUT_MS,
					    .is_admitted = is_admitted};
	clock_set(PROBE_STAGE_START_MS);
}

void probe_stage_end(struct probe_stage *f)
{
	clock_set(-1);
	peer_fini(&f->peer);
	stage_fini(&f->stage);
}

void probe_stage_launch(struct probe_stage *f)
{
	f->ends = 0;
	assert_int_equal(probe_start(&f->probe, f->stage.loop, &f->request, on_outcome, f), 0);
	assert_int_equal(f->ends, 0);
}

void probe_stage_start(struct probe_stage *f)
{
	probe_stage_launch(f);
	peer_accept(&f->peer);
}

static bool has_heard(struct probe_stage *f, size_t len)
{
	peer_listen_up(&f->peer);
	return f->peer.heard_len >= len;
}

void probe_stage_hear(struct probe_stage *f, const void *bytes, size_t len)
{
	STAGE_UNTIL(&f->stage, has_heard(f, len));
	assert_int_equal(f->peer.heard_len, len);
	assert_memory_equal(f->peer.heard, bytes, len);
	peer_forget(&f->peer);
}

void probe_stage_hear_text(struct probe_stage *f, const char *text)
{
	probe_stage_hear(f, text, strlen(text));
}

void probe_stage_finish(struct probe_stage *f, int reason)
{
	STAGE_UNTIL(&f->stage, f->ends);
	if (f->outcome.reason != reason)
		fail_msg("%s, not %s", result_word(f->outcome.reason), result_word(reason));
	for (int i = 0; i < 3; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 1);
}

void probe_stage_at_deadline(struct probe_stage *f, int reason)
{
	clock_set(PROBE_STAGE_START_MS + PROBE_STAGE_TIMEOUT_MS - 1);
	for (int i = 0; i < 5; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 0);
	clock_set(PROBE_STAGE_START_MS + PROBE_STAGE_TIMEOUT_MS);
	probe_stage_finish(f, reason);
}
