/* crew_stage.c - a crew on the queue "q" of a redis-server of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "crew_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool on_begin(struct job *job, void *arg)
{
	struct crew_stage *c = arg;

	if (c->is_out_of_memory)
		return false;
	assert_true(c->begun < CREW_JOBS_MAX);
	job->work = &c->jobs[c->begun];
	c->jobs[c->begun++] = job;
	if (crew_in_flight(c->crew) > c->most)
		c->most = crew_in_flight(c->crew);
	return true;
}

static void on_give_up(struct job *job, void *arg)
{
	struct crew_stage *c = arg;

	*(struct job **)job->work = NULL;
	c->given_up++;
}

static void on_ended(void *arg)
{
	struct crew_stage *c = arg;

	c->ends++;
}

void crew_stage_begin(struct crew_stage *c, const struct queue_config *q, int64_t timeout_ms)
{
	struct store_config config = {.timeout_ms = timeout_ms, .wait_ms = 100};
	const struct queue_config standard = queue_stage_config();
	char error[200];

	memset(c, 0, sizeof(*c));
	queue_stage_begin(&c->q, q);
	assert_int_equal(store_url_parse(&config.url, c->q.redis.url, error, sizeof(error)), 0);
	assert_int_equal(store_new(&c->store, c->q.stage.loop, &config), 0);
	assert_int_equal(queue_new(&c->queue, c->q.stage.loop, c->store, q ? q : &standard, error,
				   sizeof(error)),
			 0);
	assert_int_equal(waits_new(&c->waits, c->q.stage.loop, c->queue, &config), 0);
	STAGE_UNTIL(&c->q.stage, store_is_ready(c->store));
}

void crew_stage_hire(struct crew_stage *c, size_t concurrency, bool is_draining_queue,
		     int64_t grace_ms)
{
	const struct crew_config config = {.loop = c->q.stage.loop,
					   .queue = c->queue,
					   .waits = c->waits,
					   .concurrency = concurrency,
					   .is_draining_queue = is_draining_queue,
					   .grace_ms = grace_ms,
					   .begin = on_begin,
					   .give_up = on_give_up,
					   .arg = c,
					   .ended = on_ended,
					   .ended_arg = c};

	assert_int_equal(crew_new(&c->crew, &config), 0);
	assert_int_equal(c->begun, 0);
}

void crew_stage_end(struct crew_stage *c)
{
	crew_free(c->crew);
	waits_free(c->waits);
	store_free(c->store);
	queue_free(c->queue);
	queue_stage_end(&c->q);
}

void crew_stage_push(struct crew_stage *c, int count)
{
	for (int i = 0; i < count; i++)
		redis_askf(&c->q.redis, "LPUSH {q}:low %d", i);
}

void crew_stage_done(struct crew_stage *c, int index, enum outcome outcome)
{
	struct job *job = c->jobs[index];

	assert_non_null(job);
	c->jobs[index] = NULL;
	job_done(job, outcome, 0, "why");
}

void crew_stage_settle(struct crew_stage *c)
{
	stage_turn(&c->q.stage);
	STAGE_UNTIL(&c->q.stage, !store_is_busy(c->store));
}

long crew_stage_number(struct crew_stage *c, const char *command)
{
	return atol(redis_ask(&c->q.redis, command));
}
