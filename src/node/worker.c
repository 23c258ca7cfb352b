/* worker.c - what the roles share that carry tasks out. */
#include "node/worker.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/queues.h"
#include "pool/traffic.h"

#define RULES_WAIT_MS 5000
/* Descriptors that are no task's: store, watch, log, results, DNS. */
#define DESCRIPTORS_KEPT 64

int worker_refuse(const struct worker *worker, const char *error)
{
	fprintf(stderr, "fairlead %s: %s\n", worker->command, error);
	return 1;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* The first task must meet the pool's rules: policy, and whether its members may be private. */
static int wait_for_rules(struct worker *worker)
{
	struct service *service = &worker->service;
	const int64_t deadline = clock_ms() + RULES_WAIT_MS;
	bool is_final;

	while (!service->has_rules && !service->is_stopping && clock_ms() < deadline)
		loop_turn(service->loop);
	if (service->has_rules || service->is_stopping)
		return 0;
	fprintf(stderr, "fairlead %s: the store does not answer: %s\n", worker->command,
		store_trouble(service->store, &is_final));
	return 1;
}

static int open_queue(struct worker *worker)
{
	struct service *service = &worker->service;
	struct store_config config;
	char error[512];
	int r = service_store_config(service->conf, service->private, &config);

	if (r)
		return r;
	r = queues_open(&worker->queue, service->loop, service->store, service->conf, error,
			sizeof error);
	if (!r) {
		snprintf(error, sizeof error, "out of memory");
		r = waits_new(&worker->waits, service->loop, worker->queue, &config);
	}
	store_url_wipe(&config.url);
	return r ? worker_refuse(worker, error) : 0;
}

int worker_open(struct worker *worker, const struct role_context *context)
{
	struct service *service = &worker->service;
	int r = service_start(service, context, "work", true);

	if (!r)
		r = wait_for_rules(worker);
	if (!r)
		r = open_queue(worker);
	if (!r && tally_new(&worker->tally, service->loop, conf_bool(service->conf, CONF_QUIET)))
		r = worker_refuse(worker, "out of memory");
	return r;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static size_t concurrency_of(const struct worker *worker, long descriptors, long each)
{
	const size_t wanted = (size_t)conf_int(worker->service.conf, CONF_CONCURRENCY);
	const long possible = descriptors > 2 * DESCRIPTORS_KEPT
				  ? (descriptors - DESCRIPTORS_KEPT) / each
				  : DESCRIPTORS_KEPT / each;

	if (wanted <= (size_t)possible)
		return wanted;
	log_warn("tasks at a time are limited by the descriptor limit (ulimit -n)",
		 LOG_NUMBER("descriptors", descriptors), LOG_NUMBER("concurrency", possible));
	return (size_t)possible;
}

static bool is_live(const struct worker *worker)
{
	return !conf_bool(worker->service.conf, CONF_QUIET) && isatty(STDERR_FILENO);
}

static void on_ended(void *arg)
{
	struct worker *worker = arg;

	service_done(&worker->service, 0);
}

struct shift_config worker_shift(struct worker *worker, long descriptors, long each)
{
	const struct service *service = &worker->service;

	return (struct shift_config){
	    .loop = service->loop,
	    .queue = worker->queue,
	    .waits = worker->waits,
	    .pool = service->pool,
	    .tally = worker->tally,
	    .concurrency = concurrency_of(worker, descriptors, each),
	    .is_draining_queue = conf_bool(service->conf, CONF_DRAIN),
	    .is_live = is_live(worker),
	    .grace_ms = conf_ms(service->conf, CONF_DRAIN_TIMEOUT),
	    .ended = on_ended,
	    .arg = worker,
	};
}

/* --- closing ------------------------------------------------------------------------------------------------------ */

void worker_close_store(struct worker *worker)
{
	waits_free(worker->waits);
	worker->waits = NULL;
	if (worker->service.pool)
		pool_traffic_send(worker->service.pool);
	service_end_store(&worker->service);
}

void worker_close(struct worker *worker)
{
	tally_free(worker->tally);
	queue_free(worker->queue);
	service_fini(&worker->service);
}
