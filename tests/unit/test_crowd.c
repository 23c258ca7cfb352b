/* test_crowd.c - many probes at once, and never more than there is room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "check/crowd.h"
#include "peer.h"

struct fixture {
	struct stage stage;
	struct peer peer;
	struct endpoint proxy;
	struct probe_request request;
	struct crowd *crowd;
	int ends, rooms;
	bool starts_another, frees;
};

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	(void)address;
	(void)port;
	(void)is_target;
	(void)arg;
	return true;
}

/* A proxy that is only connected to: a probe ends in the turn after it began. */
static void begin(struct fixture *f, size_t concurrency)
{
	memset(f, 0, sizeof *f);
	stage_init(&f->stage);
	peer_listen(&f->peer, &f->stage, "127.0.0.1");
	f->proxy =
	    (struct endpoint){.scheme = SCHEME_HTTP, .host = "127.0.0.1", .port = f->peer.port};
	f->request = (struct probe_request){
	    .proxy = &f->proxy, .timeout_ms = 5000, .is_admitted = is_admitted};
	assert_int_equal(crowd_new(&f->crowd, f->stage.loop, concurrency), 0);
}

static void end(struct fixture *f)
{
	crowd_free(f->crowd);
	peer_fini(&f->peer);
	stage_fini(&f->stage);
}

static void on_outcome(struct probe *probe, const struct probe_outcome *outcome, void *arg)
{
	struct fixture *f = arg;

	assert_null(probe);
	assert_int_equal(outcome->reason, REASON_OK);
	f->ends++;
	if (f->frees) {
		crowd_free(f->crowd);
		f->crowd = NULL;
	}
}

static void on_room(void *arg)
{
	struct fixture *f = arg;

	f->rooms++;
	if (f->starts_another)
		assert_int_equal(crowd_probe(f->crowd, &f->request, on_outcome, f), 0);
	f->starts_another = false;
}

static void fill(struct fixture *f)
{
	while (crowd_room(f->crowd))
		assert_int_equal(crowd_probe(f->crowd, &f->request, on_outcome, f), 0);
}

static void test_no_more_probes_start_than_there_is_room_for(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 3);
	assert_int_equal(crowd_room(f.crowd), 3);
	fill(&f);
	assert_int_equal(crowd_probe(f.crowd, &f.request, on_outcome, &f), -EAGAIN);
	STAGE_UNTIL(&f.stage, f.ends == 3);
	assert_int_equal(crowd_room(f.crowd), 3);
	end(&f);
}

static void test_room_is_told_only_after_there_was_none(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 2);
	crowd_on_room(f.crowd, on_room, &f);
	assert_int_equal(crowd_probe(f.crowd, &f.request, on_outcome, &f), 0);
	STAGE_UNTIL(&f.stage, f.ends == 1);
	assert_int_equal(f.rooms, 0);
	f.starts_another = true;
	fill(&f);
	STAGE_UNTIL(&f.stage, f.ends == 4);
	assert_int_equal(f.rooms, 2); /* the place that was filled at once became free again */
	end(&f);
}

static void test_a_callback_may_end_the_crowd(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 2);
	crowd_on_room(f.crowd, on_room, &f);
	f.frees = true;
	fill(&f);
	STAGE_UNTIL(&f.stage, f.ends);
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_int_equal(f.ends, 1);
	assert_int_equal(f.rooms, 0);
	end(&f);
}

static void test_a_crowd_that_is_freed_calls_nobody(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 5);
	fill(&f);
	crowd_free(f.crowd);
	f.crowd = NULL;
	for (int i = 0; i < 5; i++)
		stage_turn(&f.stage);
	assert_int_equal(f.ends, 0);
	end(&f);
}

/* docs/checks.md: as many as the descriptors allow, some left for the rest of the process. */
static void test_the_descriptor_limit_cuts_the_crowd(void **state)
{
	struct rlimit before, tight;
	struct fixture f;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = (struct rlimit){.rlim_cur = 100, .rlim_max = 200};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	begin(&f, 2000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &tight), 0);
	assert_int_equal(tight.rlim_cur, 200);
	assert_in_range(crowd_room(f.crowd), 100, 199);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_no_more_probes_start_than_there_is_room_for),
	    cmocka_unit_test(test_room_is_told_only_after_there_was_none),
	    cmocka_unit_test(test_a_callback_may_end_the_crowd),
	    cmocka_unit_test(test_a_crowd_that_is_freed_calls_nobody),
	    cmocka_unit_test(test_the_descriptor_limit_cuts_the_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
