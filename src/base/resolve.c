/* resolve.c - names to addresses through libevent's evdns. */
#include "base/resolve.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>

struct resolve {
	resolve_cb *cb; /* NULL: cancelled */
	void *arg;
	struct event later;
	struct evdns_getaddrinfo_request *request;
	bool is_starting; /* evdns may answer before resolve_start() returns */
	int result;
	size_t count;
	struct address addresses[RESOLVE_MAX];
};

static void deliver(struct resolve *resolve)
{
	if (resolve->cb)
		resolve->cb(resolve->result, resolve->addresses, resolve->count, resolve->arg);
	free(resolve);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	deliver(arg);
}

static void keep_addresses(struct resolve *resolve, const struct evutil_addrinfo *list)
{
	for (; list && resolve->count < RESOLVE_MAX; list = list->ai_next)
		if (!address_from_sockaddr(&resolve->addresses[resolve->count], list->ai_addr))
			resolve->count++;
}

static void on_answer(int error, struct evutil_addrinfo *list, void *arg)
{
	struct resolve *resolve = arg;

	resolve->request = NULL;
	if (!error)
		keep_addresses(resolve, list);
	if (list)
		evutil_freeaddrinfo(list);
	if (error == EVUTIL_EAI_NONAME || error == EVUTIL_EAI_NODATA)
		resolve->result = -ENOENT;
	else if (error || resolve->count == 0)
		resolve->result = -EIO;
	if (resolve->is_starting)
		event_active(&resolve->later, EV_TIMEOUT, 0);
	else
		deliver(resolve);
}

int resolve_start(struct resolve **ret, struct loop *loop, const char *host, resolve_cb *cb,
		  void *arg)
{
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct evdns_base *dns = loop_dns(loop);
	struct resolve *resolve = calloc(1, sizeof *resolve);

	if (!resolve || !dns) {
		free(resolve);
		return -ENOMEM;
	}
	resolve->cb = cb;
	resolve->arg = arg;
	event_assign(&resolve->later, loop_base(loop), -1, 0, on_later, resolve);
	resolve->is_starting = true;
	resolve->request = evdns_getaddrinfo(dns, host, NULL, &hints, on_answer, resolve);
	resolve->is_starting = false;
	*ret = resolve;
	return 0;
}

void resolve_cancel(struct resolve *resolve)
{
	if (!resolve)
		return;
	resolve->cb = NULL;
	if (resolve->request)
		evdns_getaddrinfo_cancel(resolve->request);
}
