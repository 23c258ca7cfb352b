/* wake_load.c - a process whose workers wait for tasks: it claims as fairlead does, and says when.
 *
 * usage: wake_load REDIS_URL QUEUE WAITERS
 *
 * Prints `ready` when it is told of tasks by Redis, then `PAYLOAD NANOSECONDS` (of the monotonic clock) for each task as its
 * waiter gets it, acknowledges the task and waits again. Linked with the program's own libraries. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/loop.h"
#include "queue/settle.h"
#include "queue/wait.h"

struct worker {
	struct wait wait;
	struct waits *waits;
	struct queue *queue;
};

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "wake_load: %s: %s\n", what, why);
	exit(1);
}

/* One write(2): the pipe is shared with other processes. */
static void tell(const char *payload)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%s %lld\n", payload, (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	fflush(stdout);
}

static void on_task(int result, const char *error, struct claim **claims, size_t count,
		    int64_t next_due_ms, void *arg)
{
	struct worker *worker = arg;

	(void)next_due_ms;
	if (result || count != 1)
		fail("claim", error);
	tell(claims[0]->payload);
	struct settlement ack = {
	    .verb = SETTLE_ACK, .id = claims[0]->id, .token = claims[0]->token};
	if (queue_settle(worker->queue, &ack, NULL, NULL))
		fail("ack", "cannot be queued");
	free(claims[0]);
	wait_begin(worker->waits, &worker->wait, 1, on_task, worker);
}

static void begin_workers(struct queue *queue, struct waits *waits, size_t count)
{
	struct worker *workers = calloc(count, sizeof *workers);

	if (!workers)
		fail("workers", strerror(errno));
	for (size_t i = 0; i < count; i++) {
		workers[i].waits = waits;
		workers[i].queue = queue;
		wait_begin(waits, &workers[i].wait, 1, on_task, &workers[i]);
	}
}

int main(int argc, char **argv)
{
	static const char *const levels[] = {"high", "normal", "low"};
	struct store_config config = {.timeout_ms = 5000, .wait_ms = 5000};
	struct queue_config queue_config = {
	    .levels = levels, .level_count = 3, .lease_ms = 60000, .dead_max = 1000};
	struct loop *loop;
	struct store *store;
	struct queue *queue;
	struct waits *waits;
	char error[200] = "usage: wake_load REDIS_URL QUEUE WAITERS";

	if (argc != 4 || store_url_parse(&config.url, argv[1], error, sizeof error))
		fail("arguments", error);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	queue_config.name = argv[2];
	if (loop_new(&loop) || store_new(&store, loop, &config) ||
	    queue_new(&queue, loop, store, &queue_config, error, sizeof error) ||
	    waits_new(&waits, loop, queue, &config))
		fail("start", error);
	begin_workers(queue, waits, strtoul(argv[3], NULL, 10));
	while (waits_mode(waits) != WATCH_TRACKING)
		loop_turn(loop);
	printf("ready\n");
	fflush(stdout);
	loop_run(loop);
}
