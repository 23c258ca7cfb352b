/* tasks_load.c - a producer, or a worker, that is limited by the queue alone.
 *
 * usage: tasks_load push|work REDIS_URL TASKS BATCH BYTES
 *
 * `push` pushes so many tasks, `work` claims and acknowledges them; BATCH at a time, two calls under way. A worker's
 * ack of a batch and its claim of the next leave in one write. Prints the seconds from the first call to the last
 * answer. Linked with the program's own libraries. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/loop.h"
#include "queue/claim.h"
#include "queue/push.h"
#include "queue/settle.h"

#define CALLS 2 /* under way */

struct load {
	struct loop *loop;
	struct queue *queue;
	char *payload;
	size_t bytes, batch;
	size_t begun, tasks, done;
};

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "tasks_load: %s: %s\n", what, why);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_done(struct load *load, size_t count)
{
	load->done += count;
	if (load->done >= load->tasks)
		loop_stop(load->loop);
}

/* How many the next call is for. */
static size_t next_batch(struct load *load)
{
	size_t left = load->tasks - load->begun;
	size_t count = left < load->batch ? left : load->batch;

	load->begun += count;
	return count;
}

/* --- push --------------------------------------------------------------------------------------------------------- */

static void push_next(struct load *load);

static void on_pushed(int result, const char *error, const bool *pushed, size_t count, void *arg)
{
	struct load *load = arg;

	(void)pushed;
	if (result)
		fail("push", error);
	note_done(load, count);
	push_next(load);
}

static void push_next(struct load *load)
{
	const struct push push = {.level = "normal"};
	struct push_item items[PUSH_MAX];
	const size_t count = next_batch(load);

	for (size_t i = 0; i < count; i++)
		items[i] = (struct push_item){.payload = {load->payload, load->bytes}};
	if (count && queue_push(load->queue, &push, items, count, on_pushed, load))
		fail("push", "cannot be queued");
}

/* --- work --------------------------------------------------------------------------------------------------------- */

static void work_next(struct load *load);

static void on_acked(int result, const char *error, void *arg)
{
	if (result)
		fail("ack", error);
	note_done(arg, 1);
}

static void on_claimed(int result, const char *error, struct claim **claims, size_t count,
		       int64_t next_due_ms, void *arg)
{
	struct load *load = arg;

	(void)next_due_ms;
	if (result || count == 0)
		fail("claim", result ? error : "there are not as many tasks");
	for (size_t i = 0; i < count; i++) {
		const struct settlement ack = {
		    .verb = SETTLE_ACK, .id = claims[i]->id, .token = claims[i]->token};

		if (claims[i]->len != load->bytes ||
		    queue_settle(load->queue, &ack, on_acked, load))
			fail("ack", "cannot be queued, or of another task");
		free(claims[i]);
	}
	work_next(load);
}

static void work_next(struct load *load)
{
	const size_t count = next_batch(load);

	if (count && queue_claim(load->queue, count, on_claimed, load))
		fail("claim", "cannot be queued");
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static void connect_queue(struct load *load, const char *url)
{
	static const char *const levels[] = {"high", "normal", "low"};
	const struct queue_config queue_config = {.name = "jobs",
						  .levels = levels,
						  .level_count = 3,
						  .lease_ms = 60000,
						  .failures_max = 5,
						  .lost_max = 3,
						  .dead_max = 10000};
	struct store_config config = {.timeout_ms = 30000, .wait_ms = 5000};
	struct store *store;
	char error[200] = "no memory";

	if (store_url_parse(&config.url, url, error, sizeof error) || loop_new(&load->loop) ||
	    store_new(&store, load->loop, &config) ||
	    queue_new(&load->queue, load->loop, store, &queue_config, error, sizeof error))
		fail("start", error);
	if (store_wait_ready(store, config.wait_ms))
		fail("start", store_trouble(store, NULL));
}

int main(int argc, char **argv)
{
	struct load load = {0};
	void (*next)(struct load * load);
	double begin;

	if (argc != 6)
		fail("arguments", "usage: tasks_load push|work REDIS_URL TASKS BATCH BYTES");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	next = strcmp(argv[1], "push") == 0 ? push_next : work_next;
	load.tasks = strtoul(argv[3], NULL, 10);
	load.batch = strtoul(argv[4], NULL, 10);
	load.bytes = strtoul(argv[5], NULL, 10);
	if (next == push_next && load.batch > PUSH_MAX)
		load.batch = PUSH_MAX;
	load.payload = malloc(load.bytes);
	if (!load.payload)
		fail("start", strerror(errno));
	memset(load.payload, 'x', load.bytes);
	connect_queue(&load, argv[2]);
	begin = now_s();
	for (int i = 0; i < CALLS; i++)
		next(&load);
	loop_run(load.loop);
	printf("%.6f\n", now_s() - begin);
}
