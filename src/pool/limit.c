/* limit.c - tickets, and where they are counted. */
#include "pool/limit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/digest.h"
#include "list/dedupe.h"
#include "pool/limit_parts.h"

int limits_new(struct limits **ret, struct loop *loop, struct pool *pool)
{
	struct limits *limits = calloc(1, sizeof *limits);
	int r = limits ? random_bytes(limits->hash_key, sizeof limits->hash_key) : -ENOMEM;

	if (!r) {
		limits->loop = loop;
		limits->pool = pool;
		r = shared_init(limits);
	}
	if (r) {
		free(limits);
		return r;
	}
	local_init(limits);
	*ret = limits;
	return 0;
}

void limits_free(struct limits *limits)
{
	if (!limits)
		return;
	shared_fini(limits);
	local_fini(limits);
	limits->is_over = true;
	if (limits->tickets == 0)
		free(limits);
}

void limits_set(struct limits *limits, const struct limits_config *config)
{
	limits->limits[LIMIT_CLIENT] =
	    (struct limit){config->client_concurrent, config->client_rate};
	limits->limits[LIMIT_HOST] = (struct limit){config->host_concurrent, config->host_rate};
	limits->is_shared = config->is_shared;
}

bool limit_is_set(const struct limit *limit)
{
	return limit->concurrent > 0 || limit->rate > 0;
}

int limit_reason(int64_t code)
{
	static const int reasons[] = {0, REASON_CLIENT_LIMIT, REASON_CLIENT_RATE, REASON_HOST_LIMIT,
				      REASON_HOST_RATE};

	return code >= 0 && code < 5 ? reasons[code] : REASON_INTERNAL;
}

unsigned limit_hash(const struct limits *limits, const char *name, size_t len)
{
	return (unsigned)siphash(limits->hash_key, name, len);
}

/* --- tickets ------------------------------------------------------------------------------------------------------ */

int ticket_take(struct limits *limits, struct ticket *ticket, const char *client, const char *host,
		limit_cb *cb, int64_t *ret_retry_after_ms)
{
	const char *const names[LIMIT_KINDS] = {[LIMIT_CLIENT] = client, [LIMIT_HOST] = host};
	int r;

	*ticket = (struct ticket){0};
	if (!limit_is_set(&limits->limits[LIMIT_CLIENT]) &&
	    !limit_is_set(&limits->limits[LIMIT_HOST]))
		return 0;
	r = limits->is_shared ? shared_take(limits, ticket, names)
			      : local_take(limits, ticket, names, ret_retry_after_ms);
	if (r && r != -EINPROGRESS)
		return r;
	ticket->limits = limits;
	ticket->cb = cb;
	limits->tickets++;
	return r;
}

static void forget(struct ticket *ticket)
{
	struct limits *limits = ticket->limits;

	*ticket = (struct ticket){0};
	if (--limits->tickets == 0 && limits->is_over)
		free(limits);
}

void ticket_return(struct ticket *ticket)
{
	struct limits *limits = ticket->limits;
	struct subject *const held[LIMIT_KINDS] = {
	    [LIMIT_CLIENT] = ticket->client, [LIMIT_HOST] = ticket->host};

	if (!limits)
		return;
	if (ticket->call)
		shared_return(limits, ticket->call);
	else if (!limits->is_over)
		local_return(limits, held);
	forget(ticket);
}

void ticket_answer(struct ticket *ticket, int result, int64_t retry_after_ms)
{
	limit_cb *cb = ticket->cb;

	if (result)
		forget(ticket);
	cb(result, retry_after_ms, ticket);
}
