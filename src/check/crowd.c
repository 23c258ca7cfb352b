/* crowd.c - many probes at once. */
#include "check/crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/net.h"

/* Descriptors that the rest of a process wants: the store, the resolver, lists, its own files. */
#define SPARE_DESCRIPTORS 64

struct place {
	struct crowd *crowd;
	struct probe *probe;
	probe_cb *cb;
	void *arg;
	LIST_ENTRY(place) link;
};

struct crowd {
	struct grave grave;
	struct loop *loop;
	size_t limit, count;
	bool is_ended;
	void (*on_room)(void *arg);
	void *on_room_arg;
	LIST_HEAD(, place) places;
};

static size_t cut_to_descriptors(size_t concurrency)
{
	long left = net_descriptor_limit() - SPARE_DESCRIPTORS;
	size_t limit = left < 1 ? 1 : (size_t)left;

	if (concurrency <= limit)
		return concurrency;
	log_warn(
	    "fewer checks at once than asked for: the descriptor limit (ulimit -n) admits no more",
	    LOG_NUMBER("asked", (int64_t)concurrency), LOG_NUMBER("limit", (int64_t)limit));
	return limit;
}

int crowd_new(struct crowd **ret, struct loop *loop, size_t concurrency)
{
	struct crowd *crowd = calloc(1, sizeof *crowd);

	if (!crowd)
		return -ENOMEM;
	crowd->loop = loop;
	crowd->limit = cut_to_descriptors(concurrency);
	LIST_INIT(&crowd->places);
	*ret = crowd;
	return 0;
}

static void leave(struct place *place)
{
	LIST_REMOVE(place, link);
	place->crowd->count--;
	free(place);
}

static void free_crowd(struct grave *grave)
{
	free(grave);
}

void crowd_free(struct crowd *crowd)
{
	struct place *place;

	if (!crowd)
		return;
	while ((place = LIST_FIRST(&crowd->places))) {
		/* The one before left the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		probe_cancel(place->probe);
		leave(place);
	}
	/* It may be the callback of one of its probes that ends it. */
	crowd->is_ended = true;
	crowd->grave.free_object = free_crowd;
	loop_bury(crowd->loop, &crowd->grave);
}

size_t crowd_room(const struct crowd *crowd)
{
	return crowd->limit - crowd->count;
}

void crowd_on_room(struct crowd *crowd, void (*on_room)(void *arg), void *arg)
{
	crowd->on_room = on_room;
	crowd->on_room_arg = arg;
}

static void on_outcome(struct probe *probe, const struct probe_outcome *outcome, void *arg)
{
	struct place *place = arg;
	struct crowd *crowd = place->crowd;
	bool was_full = !crowd_room(crowd);
	probe_cb *cb = place->cb;
	void *cb_arg = place->arg;

	(void)probe;
	leave(place);
	cb(NULL, outcome, cb_arg);
	if (was_full && !crowd->is_ended && crowd->on_room && crowd_room(crowd))
		crowd->on_room(crowd->on_room_arg);
}

int crowd_probe(struct crowd *crowd, const struct probe_request *request, probe_cb *cb, void *arg)
{
	struct place *place;

	if (!crowd_room(crowd))
		return -EAGAIN;
	place = calloc(1, sizeof *place);
	if (!place)
		return -ENOMEM;
	*place = (struct place){.crowd = crowd, .cb = cb, .arg = arg};
	if (probe_start(&place->probe, crowd->loop, request, on_outcome, place)) {
		free(place);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&crowd->places, place, link);
	crowd->count++;
	return 0;
}
