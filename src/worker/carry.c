/* carry.c - one task through the pool: a ticket for its host, a member, a request, what that showed; another member. */
#include "worker/carry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "pool/cooldown.h"
#include "pool/report.h"
#include "pool/seek.h"
#include "pool/traffic.h"

/* How long a task waits for a host that has enough, and how often it asks. */
#define HOST_WAIT_MS 10000
#define HOST_ASK_LEAST_MS 20
#define HOST_ASK_MOST_MS 1000
/* A host cannot put a task off for longer: some say a year. */
#define RETRY_AFTER_MAX_MS 3600000
#define DETAIL_SIZE 200

struct carry {
	struct grave grave;
	const struct carry_config *config;
	const struct task *task;
	carry_cb *cb;
	void *arg;
	struct ticket ticket;
	struct alarm alarm; /* asks for the ticket, or ends with `failure` */
	struct seek seek;
	struct visit *visit;
	struct member *member; /* of the last attempt */
	int tries, failure;    /* of the last attempt */
	char detail[DETAIL_SIZE];
	int64_t began_ms, began_wall_ms, try_began_ms;
};

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void free_carry(struct grave *grave)
{
	struct carry *carry = (struct carry *)grave;

	member_unref(carry->member);
	free(carry);
}

void carry_cancel(struct carry *carry)
{
	if (!carry)
		return;
	visit_cancel(carry->visit);
	seek_end(&carry->seek);
	ticket_return(&carry->ticket);
	alarm_fini(&carry->alarm);
	loop_bury(carry->config->loop, &carry->grave);
}

static int64_t retry_after(const struct visit_answer *answer)
{
	if (!answer || (answer->status != 429 && answer->status != 503) ||
	    answer->retry_after_ms <= 0)
		return 0;
	return answer->retry_after_ms < RETRY_AFTER_MAX_MS ? answer->retry_after_ms
							   : RETRY_AFTER_MAX_MS;
}

/* The only end but carry_cancel(). What was held is free before others hear of it. */
static void finish(struct carry *carry, struct carried carried)
{
	carry->visit = NULL;
	carried.member = carry->member ? carry->member->id : NULL;
	carried.tries = carry->tries;
	carried.began_ms = carry->began_wall_ms;
	carried.took_ms = clock_ms() - carry->began_ms;
	carry_cancel(carry);
	carry->cb(&carried, carry->arg);
}

static void fail(struct carry *carry, int reason, const char *detail)
{
	finish(carry, (struct carried){.reason = reason, .detail = detail});
}

/* What was asked for is not to end before the asking. */
static void fail_soon(struct carry *carry, int reason)
{
	carry->failure = reason;
	alarm_set(&carry->alarm, clock_ms());
}

/* --- one attempt -------------------------------------------------------------------------------------------------- */

/* The proxy works, and could not or would not reach this target. */
static bool is_target_refused(int reason)
{
	return reason == REASON_TARGET_DENIED || reason == REASON_TARGET_UNKNOWN ||
	       reason == REASON_TARGET_FAILED || reason == REASON_TARGET_REFUSED ||
	       reason == REASON_TARGET_UNREACHABLE || reason == REASON_TARGET_TIMEOUT;
}

/* How sites turn away an address that they have seen too often (RFC 9110 15.5.4, 15.6.4, RFC 6585 4). */
static bool is_turned_away(int reason, const struct visit_answer *answer)
{
	return reason == REASON_OK && answer &&
	       (answer->status == 403 || answer->status == 429 || answer->status == 503);
}

/* Behind `direct` there is no proxy that a site could have banned. */
static void record(struct carry *carry, int reason, const struct visit_answer *answer)
{
	struct pool *pool = carry->config->pool;

	metric_add(METRIC_TRIES, reason, 1);
	pool_report(pool, carry->member, reason, carry->try_began_ms);
	if (answer && (answer->bytes_out || answer->bytes_in))
		pool_traffic_add(pool, carry->member->id, "", answer->bytes_out, answer->bytes_in);
	if ((is_target_refused(reason) || is_turned_away(reason, answer)) &&
	    carry->member->endpoint.scheme != SCHEME_DIRECT)
		pool_cooldown_add(pool, carry->member, carry->task->host);
}

/* Another may carry what this one did not. */
static bool is_member_at_fault(int reason)
{
	return reason_row(reason)->fault == FAULT_PROXY || reason == REASON_PROXY_CANNOT ||
	       reason == REASON_PROXY_PROHIBITED;
}

static bool try_another(struct carry *carry, int reason, const char *detail)
{
	if (!is_member_at_fault(reason) || carry->tries >= carry->config->tries ||
	    seek_next(&carry->seek))
		return false;
	log_debug("another member is tried", LOG_TEXT("reason", result_word(reason)),
		  LOG_TEXT("member", carry->member->id));
	carry->visit = NULL;
	carry->failure = reason;
	snprintf(carry->detail, sizeof carry->detail, "%s", detail);
	return true;
}

static void on_visited(int reason, const char *detail, const struct visit_answer *answer, void *arg)
{
	struct carry *carry = arg;

	record(carry, reason, answer);
	if (try_another(carry, reason, detail))
		return;
	finish(carry, (struct carried){.answer = answer,
				       .reason = reason,
				       .detail = detail,
				       .retry_after_ms = retry_after(answer)});
}

/* 0 or as visit_start(). */
static int begin_visit(struct carry *carry, const struct visit_header *headers, char *error,
		       size_t size)
{
	const struct carry_config *config = carry->config;
	const struct task *task = carry->task;
	const struct visit_request request = {
	    .url = task->url,
	    .method = task->method,
	    .headers = headers,
	    .header_count = task->header_count,
	    .body = task->body,
	    .body_len = task->body_len,
	    .proxy = &carry->member->endpoint,
	    .ca_file = config->ca_file,
	    .max_bytes = config->max_bytes,
	    .redirects_max = config->redirects_max,
	    .timeout_ms = task->timeout_ms ? task->timeout_ms : config->timeout_ms,
	    .connect_ms = config->connect_ms,
	    .is_admitted = config->is_admitted,
	    .admit_arg = config->admit_arg,
	};

	return visit_start(&carry->visit, config->visits, &request, on_visited, carry, error, size);
}

static int visit(struct carry *carry, char *error, size_t size)
{
	const struct task *task = carry->task;
	struct visit_header *headers = calloc(task->header_count + 1, sizeof *headers);
	int r = headers ? 0 : -ENOMEM;

	for (size_t i = 0; i < task->header_count && !r; i++)
		headers[i] = (struct visit_header){task->headers[i].name, task->headers[i].value};
	if (!r)
		r = begin_visit(carry, headers, error, size);
	free(headers);
	return r;
}

static void use_member(struct carry *carry)
{
	char error[DETAIL_SIZE] = "out of memory";
	int r;

	member_unref(carry->member);
	carry->member = member_ref(carry->seek.member);
	carry->tries++;
	carry->try_began_ms = clock_ms();
	r = visit(carry, error, sizeof error);
	if (r)
		fail(carry, r == -EINVAL ? REASON_TASK_INVALID : REASON_INTERNAL, error);
}

static void on_sought(int result, struct seek *seek)
{
	struct carry *carry = seek->arg;

	if (!result)
		use_member(carry);
	else if (carry->tries)
		/* All that there is was tried: the last failure says more than the empty pool. */
		fail(carry, carry->failure, carry->detail);
	else if (result == REASON_MEMBER_UNREADABLE)
		fail(carry, REASON_POOL_EMPTY, "none of the eligible members can be used");
	else
		fail(carry, result, "");
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static void go_on(struct carry *carry)
{
	if (seek_next(&carry->seek))
		fail_soon(carry, REASON_INTERNAL);
}

/* The host has enough for now. Asked again in a while, in which the claim is kept: a task that is given back comes
 * again at once. */
static void hold_back(struct carry *carry, int reason, int64_t again_ms)
{
	int64_t wait = again_ms < HOST_ASK_MOST_MS ? again_ms : HOST_ASK_MOST_MS;

	wait = wait > HOST_ASK_LEAST_MS ? wait : HOST_ASK_LEAST_MS;
	carry->failure = 0;
	if (clock_ms() + wait > carry->began_ms + HOST_WAIT_MS)
		carry->failure = reason;
	alarm_set(&carry->alarm, clock_ms() + wait);
}

static void limited(struct carry *carry, int result, int64_t retry_after_ms)
{
	if (result == REASON_HOST_LIMIT || result == REASON_HOST_RATE)
		hold_back(carry, result, retry_after_ms);
	else
		fail_soon(carry, result < 0 ? REASON_INTERNAL : result);
}

static void on_ticket(int result, int64_t retry_after_ms, struct ticket *ticket)
{
	struct carry *carry = (struct carry *)((char *)ticket - offsetof(struct carry, ticket));

	if (result)
		limited(carry, result, retry_after_ms);
	else
		go_on(carry);
}

static void ask_host(struct carry *carry)
{
	int64_t retry_after_ms = 0;
	int r = 0;

	if (carry->config->limits)
		r = ticket_take(carry->config->limits, &carry->ticket, "", carry->task->host,
				on_ticket, &retry_after_ms);
	if (!r)
		go_on(carry);
	else if (r != -EINPROGRESS)
		limited(carry, r, retry_after_ms);
}

static void on_alarm(void *arg)
{
	struct carry *carry = arg;

	if (carry->failure)
		fail(carry, carry->failure, "");
	else
		ask_host(carry);
}

int carry_start(struct carry **ret, const struct carry_config *config, const struct task *task,
		carry_cb *cb, void *arg)
{
	struct carry *carry = calloc(1, sizeof *carry);

	if (!carry)
		return -ENOMEM;
	carry->grave.free_object = free_carry;
	carry->config = config;
	carry->task = task;
	carry->cb = cb;
	carry->arg = arg;
	carry->began_ms = clock_ms();
	carry->began_wall_ms = clock_wall_ms();
	carry->seek = (struct seek){.pool = config->pool,
				    .host = task->host,
				    .lease_wait_ms = config->lease_wait_ms,
				    .cb = on_sought,
				    .arg = carry};
	alarm_init(&carry->alarm, config->loop, on_alarm, carry);
	*ret = carry;
	ask_host(carry);
	return 0;
}
