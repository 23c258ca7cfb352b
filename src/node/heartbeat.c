/* heartbeat.c - every process in the hash `nodes`. */
#include "node/heartbeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/metric.h"

#define NODES "nodes"
#define STATE_CAP ((size_t)4096)
#define STALE_MS 600000

static void host_name(char *buffer, size_t size)
{
	if (gethostname(buffer, size))
		snprintf(buffer, size, "unknown");
	buffer[size - 1] = '\0';
}

void heartbeat_name(char *buffer, size_t size, int pid, const char *name)
{
	char host[64];

	host_name(host, sizeof host);
	snprintf(buffer, size, "%s:%d:%s", host, pid, name);
}

/* Packed as all packed values: key=value, tab-separated. */
static int pack(struct buffer *out, const char *role)
{
	char host[64];
	int r;

	host_name(host, sizeof host);
	r = buffer_printf(out, "role=%s\thost=%s\tpid=%d\tversion=%s\ttime_ms=%" PRId64, role, host,
			  getpid(), FAIRLEAD_VERSION, clock_wall_ms());
	for (int m = 0; m < METRIC_COUNT && !r; m++)
		r = buffer_printf(out, "\t%s=%" PRId64, metric_row((enum metric)m)->word,
				  metric_own((enum metric)m));
	return r;
}

void heartbeat_send(struct store *store, const char *id, const char *role)
{
	struct buffer state;

	if (!store_is_ready(store))
		return;
	buffer_init(&state, STATE_CAP);
	if (!pack(&state, role)) {
		struct word words[] = {
		    WORD("HSET"), WORD(NODES), WORD(id), {buffer_at(&state), buffer_len(&state)}};

		if (store_command(store, STORE_IDEMPOTENT, words, 4, NULL, NULL))
			metric_add(METRIC_STORE_OPS, REASON_STORE_NOT_DONE, 1);
	}
	buffer_fini(&state);
}

bool heartbeat_end(struct store *store, const char *id)
{
	struct word words[] = {WORD("HDEL"), WORD(NODES), WORD(id)};

	return !store_command(store, STORE_IDEMPOTENT, words, 3, NULL, NULL);
}

static int64_t time_of(const char *state)
{
	const char *at = strstr(state, "\ttime_ms=");

	return at ? strtoll(at + strlen("\ttime_ms="), NULL, 10) : 0;
}

static void on_page(int result, const struct reply *reply, void *arg)
{
	struct store *store = arg;
	const struct reply *items = reply_at(reply, 1);

	for (size_t i = 0; !result && i + 1 < reply_count(items); i += 2) {
		const char *id = reply_text(reply_at(items, i), NULL);

		if (time_of(reply_text(reply_at(items, i + 1), NULL)) < clock_wall_ms() - STALE_MS)
			heartbeat_end(store, id);
	}
}

void heartbeat_prune(struct store *store)
{
	struct word words[] = {WORD("HSCAN"), WORD(NODES), WORD("0"), WORD("COUNT"), WORD("1000")};

	if (store_is_ready(store) &&
	    store_command(store, STORE_IDEMPOTENT, words, 5, on_page, store))
		metric_add(METRIC_STORE_OPS, REASON_STORE_NOT_DONE, 1);
}
