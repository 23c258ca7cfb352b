/* holders.c - who holds leases, counted from the leases themselves. */
#include "pool/holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLICE ((size_t)512) /* the words of one command are bounded */
#define LAST "9999"         /* of HOLDERS_MAX */

struct look {
	struct pool *pool;
	holders_cb *cb;
	void *arg;
	struct lease_id {
		char *text;
		size_t len;
	} * ids;
	size_t id_count, asked;
	struct holder_count *counts; /* one a lease, until they are added up */
	size_t count;
};

static void look_end(struct look *look, int result, const char *error)
{
	look->cb(result, error, look->counts, result ? 0 : look->count,
		 look->id_count < HOLDERS_MAX, look->arg);
	for (size_t i = 0; i < look->id_count; i++)
		free(look->ids[i].text);
	for (size_t i = 0; i < look->count; i++)
		free(look->counts[i].member);
	free(look->ids);
	free(look->counts);
	free(look);
}

int holder_order(const void *a, const void *b)
{
	const struct holder_count *x = a, *y = b;
	size_t len = x->member_len < y->member_len ? x->member_len : y->member_len;
	int order = memcmp(x->member, y->member, len);

	if (order || x->member_len == y->member_len)
		return order;
	return x->member_len < y->member_len ? -1 : 1;
}

static void add_up(struct look *look)
{
	size_t kept = 0;

	qsort(look->counts, look->count, sizeof *look->counts, holder_order);
	for (size_t i = 0; i < look->count; i++) {
		if (kept && !holder_order(&look->counts[kept - 1], &look->counts[i])) {
			look->counts[kept - 1].leases++;
			free(look->counts[i].member);
		} else {
			look->counts[kept++] = look->counts[i];
		}
	}
	look->count = kept;
}

static char *copy(const char *text, size_t len)
{
	char *copied = malloc(len + 1);

	if (copied)
		memcpy(copied, text, len + 1);
	return copied;
}

/* The last pair of a holder, whatever bytes its value has. A lease that ended since it was listed has none. */
static int keep_member(struct look *look, const struct reply *holder)
{
	static const char key[] = "\tmember=";
	size_t len, skipped;
	const char *packed = reply_text(holder, &len);
	const char *at = memmem(packed, len, key, sizeof key - 1);
	struct holder_count *count = &look->counts[look->count];

	if (!at)
		return 0;
	at += sizeof key - 1;
	skipped = (size_t)(at - packed);
	*count = (struct holder_count){
	    .member = copy(at, len - skipped), .member_len = len - skipped, .leases = 1};
	if (!count->member)
		return -ENOMEM;
	look->count++;
	return 0;
}

static int ask_slice(struct look *look);

static void on_slice(int result, const struct reply *reply, void *arg)
{
	struct look *look = arg;

	for (size_t i = 0; i < reply_count(reply) && !result; i++)
		if (keep_member(look, reply_at(reply, i)))
			result = REASON_INTERNAL;
	if (!result && look->asked < look->id_count) {
		if (!ask_slice(look))
			return;
		result = REASON_STORE_NOT_DONE;
	}
	if (!result && look->count)
		add_up(look);
	look_end(look, result, reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

static int ask_slice(struct look *look)
{
	struct word words[2 + SLICE] = {WORD("HMGET"),
					pool_key(pool_keys(look->pool), KEY_HOLDERS)};
	size_t n = 0;

	for (; n < SLICE && look->asked < look->id_count; n++, look->asked++)
		words[2 + n] =
		    (struct word){look->ids[look->asked].text, look->ids[look->asked].len};
	return store_command(pool_store(look->pool), STORE_IDEMPOTENT, words, 2 + n, on_slice,
			     look);
}

/* 0 or -ENOMEM. */
static int keep_ids(struct look *look, const struct reply *reply)
{
	const size_t count = reply_count(reply);

	look->ids = calloc(count + 1, sizeof *look->ids);
	look->counts = calloc(count + 1, sizeof *look->counts);
	if (!look->ids || !look->counts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct lease_id *id = &look->ids[i];
		const char *text = reply_text(reply_at(reply, i), &id->len);

		id->text = copy(text, id->len);
		if (!id->text)
			return -ENOMEM;
		look->id_count++;
	}
	return 0;
}

static void on_ids(int result, const struct reply *reply, void *arg)
{
	struct look *look = arg;

	if (!result && keep_ids(look, reply))
		result = REASON_INTERNAL;
	if (!result && look->id_count) {
		if (!ask_slice(look))
			return;
		result = REASON_STORE_NOT_DONE;
	}
	look_end(look, result, reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

int pool_holders(struct pool *pool, holders_cb *cb, void *arg)
{
	const struct word words[] = {WORD("ZRANGE"), pool_key(pool_keys(pool), KEY_LEASES),
				     WORD("0"), WORD(LAST)};
	struct look *look = calloc(1, sizeof *look);
	int r;

	if (!look)
		return -ENOMEM;
	*look = (struct look){.pool = pool, .cb = cb, .arg = arg};
	r = store_command(pool_store(pool), STORE_IDEMPOTENT, words, 4, on_ids, look);
	if (r)
		free(look);
	return r;
}
