/* apply.c - what was read from lists becomes members. */
#include "source/apply.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/clock.h"

/* Enough to keep the store busy while the next batches are made. */
#define WINDOW 8
#define TAGS_MAX ((size_t)2 * LIST_TAG_MAX + 32)

struct apply {
	struct apply_request request;
	apply_cb *cb;
	void *arg;
	struct alarm begin;
	/* What is meant, in the order of the bytes: members of one score that come so cost the store a fraction of what they cost
	 * in any other order. */
	struct load_cursor *order;
	size_t count, next;
	int open; /* batches under way */
	size_t done_count;
	int result; /* the first failure */
	char error[200];
	struct apply_result done;
};

/* One batch while it is made; the change copies it. */
struct batch {
	size_t count;
	struct change_item items[CHANGE_MAX];
	struct endpoint endpoints[CHANGE_MAX];
	char ids[CHANGE_MAX][ENDPOINT_ID_MAX];
	char tags[CHANGE_MAX][TAGS_MAX];
};

bool apply_tag_value(const struct dedupe_item *item, enum apply_tag tag, char *buffer, size_t size)
{
	const char *value = tag == APPLY_COUNTRY ? item->country : item->anonymity;
	size_t len = strlen(value);

	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (value[i] && !isalnum((unsigned char)value[i]))
			return false;
		buffer[i] = (char)tolower((unsigned char)value[i]);
	}
	return true;
}

static bool is_meant(const struct apply *apply, const struct dedupe_item *item)
{
	char value[LIST_TAG_MAX];

	if (!apply->request.value)
		return true;
	return apply_tag_value(item, apply->request.tag, value, sizeof value) &&
	       !strcmp(value, apply->request.value);
}

/* Packed, without what the packing uses. */
static void print_tags(const struct dedupe_item *item, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s%s%s%s%s", *item->country ? "country=" : "", item->country,
		 *item->country && *item->anonymity ? "\t" : "",
		 *item->anonymity ? "anonymity=" : "", item->anonymity);
}

/* 0, or -errno. What is in a load was accepted by its rules; here it is only read back. */
static int add_item(struct apply *apply, struct batch *batch, const struct dedupe_item *item)
{
	static const struct endpoint_rules all = {
	    .allow_private = true, .allow_single_label = true, .allow_direct = true};
	struct endpoint *endpoint = &batch->endpoints[batch->count];
	char *id = batch->ids[batch->count], *tags = batch->tags[batch->count];
	int r = endpoint_parse(endpoint, item->text, item->len, &all);

	if (r)
		return r < 0 ? r : -EINVAL;
	r = endpoint_id(endpoint, pool_rules(apply->request.pool)->salt, id, ENDPOINT_ID_MAX);
	print_tags(item, tags, TAGS_MAX);
	batch->items[batch->count++] =
	    (struct change_item){.id = id, .secret = endpoint->secret, .tags = tags};
	if (!r && apply->request.ids) {
		struct dedupe_item name = {
		    .text = id, .len = strlen(id), .country = "", .anonymity = ""};

		r = dedupe_add(apply->request.ids, &name);
	}
	return r < 0 ? r : 0;
}

static struct dedupe_item item_at(const struct apply *apply, struct load_cursor cursor)
{
	struct dedupe_item item = {0};

	if (!load_next(apply->request.load, &cursor, &item))
		abort(); /* the order holds positions of items only */
	return item;
}

static int fill(struct apply *apply, struct batch *batch)
{
	int r = 0;

	batch->count = 0;
	while (!r && batch->count < CHANGE_MAX && apply->next < apply->count) {
		struct dedupe_item item = item_at(apply, apply->order[apply->next++]);

		r = add_item(apply, batch, &item);
	}
	return r;
}

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg);

static int send_batch(struct apply *apply)
{
	struct batch *batch = calloc(1, sizeof *batch);
	int r = batch ? fill(apply, batch) : -ENOMEM;

	if (!r && batch->count) {
		r = pool_change(apply->request.pool, apply->request.change, apply->request.source,
				batch->items, batch->count, on_changed, apply);
		apply->open += !r;
	}
	for (size_t i = 0; batch && i < batch->count; i++)
		endpoint_fini(&batch->endpoints[i]);
	free(batch);
	return r;
}

/* Keeps the window full; ends when all is done, or at the first failure when nothing is under way any more. */
static void advance(struct apply *apply)
{
	int r = 0;

	while (!apply->result && apply->next < apply->count && apply->open < WINDOW && !r)
		r = send_batch(apply);
	if (r && !apply->result) {
		apply->result = r == -EPERM ? REASON_STORE_NEWER : REASON_STORE_NOT_DONE;
		snprintf(apply->error, sizeof apply->error, "%s", strerror(-r));
	}
	if (apply->open > 0)
		return;
	alarm_fini(&apply->begin);
	free(apply->order);
	apply->cb(apply->result, apply->error, &apply->done, apply->arg);
	free(apply);
}

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct apply *apply = arg;

	apply->open--;
	for (size_t i = 0; i < count && !result; i++)
		apply->done.placed[placed[i]]++;
	if (result && !apply->result) {
		apply->result = result;
		snprintf(apply->error, sizeof apply->error, "%s", error);
	}
	apply->done_count += count;
	if (apply->request.progress)
		apply->request.progress(apply->done_count, apply->arg);
	advance(apply);
}

static int by_text(const void *a, const void *b, void *arg)
{
	struct dedupe_item x = item_at(arg, *(const struct load_cursor *)a);
	struct dedupe_item y = item_at(arg, *(const struct load_cursor *)b);
	int order = memcmp(x.text, y.text, x.len < y.len ? x.len : y.len);

	return order ? order : x.len < y.len ? -1 : x.len > y.len;
}

static int put_in_order(struct apply *apply)
{
	size_t count = load_count(apply->request.load);
	struct load_cursor cursor = {0}, before = cursor;
	struct dedupe_item item;

	apply->order = calloc(count ? count : 1, sizeof *apply->order);
	if (!apply->order)
		return -ENOMEM;
	while (load_next(apply->request.load, &cursor, &item)) {
		if (is_meant(apply, &item))
			apply->order[apply->count++] = before;
		before = cursor;
	}
	if (apply->count)
		qsort_r(apply->order, apply->count, sizeof *apply->order, by_text, apply);
	return 0;
}

static void on_begin(void *arg)
{
	advance(arg);
}

int apply_start(struct loop *loop, const struct apply_request *request, apply_cb *cb, void *arg)
{
	struct apply *apply = calloc(1, sizeof *apply);

	if (!apply)
		return -ENOMEM;
	apply->request = *request;
	apply->cb = cb;
	apply->arg = arg;
	if (put_in_order(apply)) {
		free(apply);
		return -ENOMEM;
	}
	alarm_init(&apply->begin, loop, on_begin, apply);
	alarm_set(&apply->begin, clock_ms());
	return 0;
}
