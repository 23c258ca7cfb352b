/* role_work.c - a worker: tasks of a queue in, requests through a pool out. */
#include <string.h>

#include "base/clock.h"
#include "base/net.h"
#include "gateway/policy.h"
#include "node/role.h"
#include "node/worker.h"
#include "worker/fetch_work.h"

#define WRITING_MS 2000
/* Of a request: the connection to its member; for a moment one more. */
#define DESCRIPTORS_EACH 1

struct fetcher {
	struct worker worker;
	struct visits *visits;
	struct limits *limits;
	struct results *results;
	struct fetch_work *work;
	struct policy policy;
};

static void stop(struct service *service)
{
	struct fetcher *fetcher = (struct fetcher *)service;

	if (fetcher->work)
		fetch_work_stop(fetcher->work);
	else
		service_done(service, 0);
}

/* --- configuration ------------------------------------------------------------------------------------------------ */

/* The same rule as a gateway's, asked for every address that is to be connected to. */
static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	const struct fetcher *fetcher = arg;

	return policy_admits(
	    &fetcher->policy, address, port, is_target,
	    rules_flag(pool_rules(fetcher->worker.service.pool), RULE_ALLOW_PRIVATE));
}

static const char *text_or_null(const struct conf *conf, enum conf_id id)
{
	const char *text = conf_text(conf, id);

	return *text ? text : NULL;
}

static struct carry_config carry_of(struct fetcher *fetcher)
{
	const struct service *service = &fetcher->worker.service;
	const struct conf *conf = service->conf;

	return (struct carry_config){
	    .loop = service->loop,
	    .pool = service->pool,
	    .visits = fetcher->visits,
	    .limits = fetcher->limits,
	    .tries = (int)conf_int(conf, CONF_FETCH_TRIES),
	    .timeout_ms = conf_ms(conf, CONF_FETCH_TIMEOUT),
	    .connect_ms = conf_ms(conf, CONF_FETCH_CONNECT_TIMEOUT),
	    .lease_wait_ms = conf_ms(conf, CONF_LEASE_WAIT),
	    .max_bytes = (size_t)conf_bytes(conf, CONF_BODY_MAX),
	    .redirects_max = (int)conf_int(conf, CONF_REDIRECTS),
	    .ca_file = text_or_null(conf, CONF_TARGET_CA),
	    .is_admitted = is_admitted,
	    .admit_arg = fetcher,
	};
}

static struct results_config results_of(const struct conf *conf)
{
	return (struct results_config){
	    .path = text_or_null(conf, CONF_OUTPUT),
	    .body_dir = text_or_null(conf, CONF_BODY_DIR),
	    .list = text_or_null(conf, CONF_RESULTS),
	    .warc = text_or_null(conf, CONF_WARC),
	};
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* Over all workers of the pool: a host does not care which of them asks. */
static int open_limits(struct fetcher *fetcher)
{
	const struct service *service = &fetcher->worker.service;
	const struct conf *conf = service->conf;
	const struct limits_config limits = {
	    .host_concurrent = conf_int(conf, CONF_PER_HOST),
	    .host_rate = conf_int(conf, CONF_PER_HOST_RATE),
	    .is_shared = true,
	};

	if (limits_new(&fetcher->limits, service->loop, service->pool))
		return worker_refuse(&fetcher->worker, "out of memory");
	limits_set(fetcher->limits, &limits);
	return 0;
}

static int open_parts(struct fetcher *fetcher)
{
	const struct worker *worker = &fetcher->worker;
	const struct service *service = &worker->service;
	const struct results_config results = results_of(service->conf);
	char error[512];
	int r = open_limits(fetcher);

	if (r)
		return r;
	if (visits_new(&fetcher->visits, service->loop))
		return worker_refuse(worker, "out of memory");
	if (results_new(&fetcher->results, service->loop, service->store, &results, error,
			sizeof error))
		return worker_refuse(worker, error);
	return 0;
}

static int begin(struct fetcher *fetcher)
{
	struct worker *worker = &fetcher->worker;
	const struct conf *conf = worker->service.conf;
	const struct fetch_work_config config = {
	    .shift = worker_shift(worker, net_descriptor_limit(), DESCRIPTORS_EACH),
	    .carry = carry_of(fetcher),
	    .results = fetcher->results,
	    .mode = !strcmp(conf_text(conf, CONF_TASKS_ARE), "json") ? TASK_JSON : TASK_URL,
	};

	return fetch_work_new(&fetcher->work, &config) ? worker_refuse(worker, "out of memory") : 0;
}

/* What is under way is given back; results that are being written may end. */
static void end_work(struct fetcher *fetcher)
{
	const int64_t deadline = clock_ms() + WRITING_MS;

	if (!fetcher->work)
		return;
	fetch_work_end(fetcher->work);
	while (fetch_work_is_writing(fetcher->work) && clock_ms() < deadline)
		loop_turn(fetcher->worker.service.loop);
}

static void finish(struct fetcher *fetcher)
{
	end_work(fetcher);
	worker_close_store(&fetcher->worker);
	visits_free(fetcher->visits);
	results_free(fetcher->results);
	fetch_work_free(fetcher->work);
	limits_free(fetcher->limits);
	worker_close(&fetcher->worker);
}

int role_work_fetch(const struct role_context *context)
{
	struct fetcher fetcher = {.worker = {.service = {.stop = stop}, .command = "work fetch"}};
	int r = worker_open(&fetcher.worker, context);

	/* The demonstration's own addresses are exempt, as in its gateway: so that the first example works as it stands. */
	fetcher.policy = (struct policy){
	    .allow_private = conf_bool(context->conf, CONF_ALLOW_PRIVATE), .is_demo = true};
	if (!r)
		r = open_parts(&fetcher);
	if (!r)
		r = begin(&fetcher);
	if (!r) {
		role_is_ready(context, "");
		r = service_run(&fetcher.worker.service);
		tally_print(fetcher.worker.tally, conf_bool(context->conf, CONF_JSON));
	}
	finish(&fetcher);
	return r;
}
