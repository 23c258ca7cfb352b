/* due.c - whose check is due, and the walk that keeps the list of checks right. */
#include "pool/due.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pool/change.h"
#include "pool/credential.h"
#include "pool/internal.h"
#include "pool/report.h"

#define NUMBER_SIZE 24

/* --- taking ------------------------------------------------------------------------------------------------------- */

struct taking {
	struct pool *pool;
	due_cb *cb;
	void *arg;
	struct credentials credentials;
	int result; /* the first failure to fetch credentials */
	int64_t next_ms;
	size_t count, unreadable_count;
	struct member *members[DUE_MAX], *unreadable[DUE_MAX];
};

static void on_unreadable(int result, const char *error, const struct report_result *results,
			  size_t count, void *arg)
{
	(void)result; /* whoever takes it next tells it again */
	(void)error;
	(void)results;
	(void)count;
	(void)arg;
}

/* No request can go through them: failures like any other. */
static void report_unreadable(struct taking *taking)
{
	struct probe_report reports[REPORT_MAX];
	size_t count = 0;

	for (size_t i = 0; i < taking->unreadable_count; i++) {
		reports[count++] = (struct probe_report){.member = taking->unreadable[i]->id,
							 .reason = REASON_MEMBER_UNREADABLE};
		if (count < REPORT_MAX && i + 1 < taking->unreadable_count)
			continue;
		if (pool_report_probes(taking->pool, reports, count, on_unreadable, NULL))
			log_warn("members that cannot be read could not be reported",
				 LOG_TEXT("pool", pool_name(taking->pool)));
		count = 0;
	}
}

static void on_member(int result, struct member *member, size_t place, void *arg)
{
	struct taking *taking = arg;

	(void)place;
	if (!result)
		taking->members[taking->count++] = member;
	else if (member)
		taking->unreadable[taking->unreadable_count++] = member;
	else if (!taking->result)
		taking->result = result;
}

/* What was fetched before a failure is given out; the others are due again when their lease ends. */
static void end_taking(void *arg)
{
	struct taking *taking = arg;

	if (taking->result != -ECANCELED)
		report_unreadable(taking);
	for (size_t i = 0; i < taking->unreadable_count; i++)
		member_unref(taking->unreadable[i]);
	taking->cb(taking->count ? 0 : taking->result, taking->members, taking->count,
		   taking->next_ms, taking->arg);
	free(taking);
}

static void on_taken(int result, const struct reply *reply, void *arg)
{
	struct taking *taking = arg;
	size_t count = reply_count(reply);

	if (result) {
		taking->cb(result, NULL, 0, -1, taking->arg);
		free(taking);
		return;
	}
	taking->next_ms = reply_integer(reply_at(reply, 0), -1);
	for (size_t i = 1; i < count && i <= DUE_MAX; i++) {
		size_t len;
		const char *id = reply_text(reply_at(reply, i), &len);

		credentials_take(&taking->credentials, i - 1, id, len);
	}
	credentials_fetch(&taking->credentials);
}

int pool_due_take(struct pool *pool, size_t count, int64_t lease_ms, due_cb *cb, void *arg)
{
	char most[NUMBER_SIZE], lease[NUMBER_SIZE];
	struct taking *taking;
	int r;

	if (count == 0)
		return -EINVAL;
	if (pool_is_newer(pool))
		return -EPERM;
	taking = calloc(1, sizeof *taking);
	if (!taking)
		return -ENOMEM;
	*taking = (struct taking){.pool = pool, .cb = cb, .arg = arg};
	taking->credentials = (struct credentials){
	    .pool = pool, .places = DUE_MAX, .cb = on_member, .end = end_taking, .arg = taking};
	snprintf(most, sizeof most, "%zu", count < DUE_MAX ? count : DUE_MAX);
	snprintf(lease, sizeof lease, "%" PRId64, lease_ms);
	/* Not idempotent: who was taken by a lost answer is due again when the lease ends. */
	r = store_script(
	    pool->store, SCRIPT_DUE, 0,
	    (struct word[]){pool_key(&pool->keys, KEY_DUE), WORD(""), WORD(most), WORD(lease)}, 4,
	    on_taken, taking);
	if (r)
		free(taking);
	return r;
}

void pool_due_return(struct pool *pool, struct member *const *members, size_t count)
{
	struct word words[3 + 2 * DUE_MAX];

	words[0] = WORD("ZADD");
	words[1] = pool_key(&pool->keys, KEY_DUE);
	words[2] = WORD("XX"); /* one that was removed meanwhile stays away */
	while (count > 0 && !pool_is_newer(pool)) {
		size_t n = count < DUE_MAX ? count : DUE_MAX;

		for (size_t i = 0; i < n; i++) {
			words[3 + 2 * i] = WORD("0");
			words[4 + 2 * i] = (struct word){members[i]->id, members[i]->id_len};
		}
		if (store_command(pool->store, STORE_IDEMPOTENT, words, 3 + 2 * n, NULL, NULL))
			return; /* their leases end by themselves */
		members += n;
		count -= n;
	}
}
