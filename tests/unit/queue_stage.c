/* queue_stage.c - a queue named "q" with the levels high and low, on a server of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queue_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static const char *const levels[] = {"high", "low"};

struct queue_config queue_stage_config(void)
{
	return (struct queue_config){
	    .name = "q",
	    .levels = levels,
	    .level_count = 2,
	    .lease_ms = 60000,
	    .failures_max = 3,
	    .lost_max = 3,
	    .dead_max = 100,
	    .backoff_ms = 1000,
	    .backoff_max_ms = 10000,
	};
}

static void open_store(struct queue_stage *q, const char *url)
{
	struct store_config config = {.timeout_ms = QUEUE_STAGE_PATIENCE_MS,
				      .wait_ms = QUEUE_STAGE_PATIENCE_MS};
	char error[200];

	assert_int_equal(store_url_parse(&config.url, url, error, sizeof(error)), 0);
	assert_int_equal(store_new(&q->store, q->stage.loop, &config), 0);
}

static void open_queue(struct queue_stage *q, const struct queue_config *config)
{
	struct queue_config standard = queue_stage_config();
	char error[200];

	STAGE_UNTIL(&q->stage, store_is_ready(q->store));
	assert_int_equal(queue_new(&q->queue, q->stage.loop, q->store, config ? config : &standard,
				   error, sizeof(error)),
			 0);
}

static void open_stage(struct queue_stage *q)
{
	memset(q, 0, sizeof(*q));
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&q->stage);
}

void queue_stage_begin(struct queue_stage *q, const struct queue_config *config)
{
	open_stage(q);
	redis_start(&q->redis, NULL, NULL);
	open_store(q, q->redis.url);
	open_queue(q, config);
}

void queue_stage_greet(struct queue_stage *q)
{
	peer_accept(&q->peer);
	peer_expect(&q->peer, "ROLE\r\n");
	peer_say(&q->peer, "+PONG\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
	STAGE_UNTIL(&q->stage, store_is_ready(q->store));
	peer_forget(&q->peer);
}

void queue_stage_play(struct queue_stage *q)
{
	char path[64], url[80];

	open_stage(q);
	snprintf(q->folder, sizeof(q->folder), "/tmp/fairlead-queue-XXXXXX");
	assert_non_null(mkdtemp(q->folder));
	snprintf(path, sizeof(path), "%s/s", q->folder);
	snprintf(url, sizeof(url), "unix://%s", path);
	peer_listen_unix(&q->peer, &q->stage, path);
	open_store(q, url);
	queue_stage_greet(q);
	open_queue(q, NULL);
}

void queue_stage_cancel(struct queue_stage *q)
{
	store_free(q->store);
	q->store = NULL;
}

void queue_stage_end(struct queue_stage *q)
{
	clock_set(-1);
	queue_stage_cancel(q);
	queue_free(q->queue);
	stage_fini(&q->stage);
	redis_stop(&q->redis);
	if (q->folder[0]) {
		peer_fini(&q->peer);
		rmdir(q->folder);
	}
}

/* --- outcomes ----------------------------------------------------------------------------------------------------- */

static void note(struct queue_outcome *outcome, int result, const char *error)
{
	outcome->ends++;
	outcome->result = result;
	snprintf(outcome->error, sizeof(outcome->error), "%s", error);
}

void queue_outcome_free(struct queue_outcome *outcome)
{
	for (size_t i = 0; i < outcome->count; i++)
		free(outcome->claims[i]);
	*outcome = (struct queue_outcome){0};
}

void queue_stage_on_push(int result, const char *error, const bool *pushed, size_t count, void *arg)
{
	struct queue_outcome *outcome = arg;

	note(outcome, result, error);
	outcome->pushed_count = count;
	for (size_t i = 0; i < count; i++)
		outcome->pushed[i] = pushed[i];
}

void queue_stage_on_claim(int result, const char *error, struct claim **claims, size_t count,
			  int64_t next_due_ms, void *arg)
{
	struct queue_outcome *outcome = arg;

	note(outcome, result, error);
	outcome->count = count;
	outcome->next_due_ms = next_due_ms;
	for (size_t i = 0; i < count; i++)
		outcome->claims[i] = claims[i];
}

void queue_stage_on_end(int result, const char *error, void *arg)
{
	note(arg, result, error);
}

void queue_stage_on_moved(int result, const char *error, int64_t moved, void *arg)
{
	struct queue_outcome *outcome = arg;

	note(outcome, result, error);
	outcome->moved = moved;
}

void queue_stage_expect(struct queue_stage *q, struct queue_outcome *outcome, int result)
{
	STAGE_UNTIL(&q->stage, outcome->ends);
	assert_string_equal(result ? "" : outcome->error, "");
	assert_int_equal(outcome->result, result);
	for (int i = 0; i < 3; i++)
		stage_turn(&q->stage);
	assert_int_equal(outcome->ends, 1);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

void queue_stage_push(struct queue_stage *q, const char *level, const char *payload)
{
	const struct push push = {.level = level, .window_ms = 1000};
	const struct push_item item = {.payload = WORD(payload)};
	struct queue_outcome outcome = {0};

	assert_int_equal(queue_push(q->queue, &push, &item, 1, queue_stage_on_push, &outcome), 0);
	assert_int_equal(outcome.ends, 0);
	queue_stage_expect(q, &outcome, 0);
	assert_true(outcome.pushed[0]);
}

void queue_stage_claim(struct queue_stage *q, size_t count, struct queue_outcome *outcome)
{
	*outcome = (struct queue_outcome){0};
	assert_int_equal(queue_claim(q->queue, count, queue_stage_on_claim, outcome), 0);
	assert_int_equal(outcome->ends, 0);
	queue_stage_expect(q, outcome, 0);
}

struct claim *queue_stage_claim_one(struct queue_stage *q)
{
	struct queue_outcome outcome;

	queue_stage_claim(q, 1, &outcome);
	assert_int_equal(outcome.count, 1);
	return outcome.claims[0];
}

void queue_stage_is_due(struct queue_stage *q)
{
	char id[64];

	snprintf(id, sizeof(id), "%s", redis_ask(&q->redis, "ZRANGE " Q "later 0 0"));
	redis_askf(&q->redis, "ZADD " Q "later 1 %s", id);
}

void queue_stage_die(struct queue_stage *q)
{
	redis_stop(&q->redis);
	STAGE_UNTIL(&q->stage, !store_is_ready(q->store));
	clock_set(clock_ms() + QUEUE_STAGE_PATIENCE_MS);
}

int queue_stage_settle(struct queue_stage *q, const struct claim *claim, enum settle_verb verb,
		       int64_t ms, const char *reason)
{
	const struct settlement settlement = {.verb = verb,
					      .id = claim->id,
					      .token = claim->token,
					      .ms = ms,
					      .failures = claim->failures,
					      .reason = reason};
	struct queue_outcome outcome = {0};

	assert_int_equal(queue_settle(q->queue, &settlement, queue_stage_on_end, &outcome), 0);
	assert_int_equal(outcome.ends, 0);
	STAGE_UNTIL(&q->stage, outcome.ends);
	assert_int_equal(outcome.ends, 1);
	return outcome.result;
}
