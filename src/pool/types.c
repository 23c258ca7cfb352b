/* types.c - does each key of a pool hold what belongs there? */
#include "pool/types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[KEY_COUNT] = {
    [KEY_POOL] = "zset",     [KEY_PARKED] = "zset",  [KEY_OFFSET] = "hash",
    [KEY_PROXIES] = "hash",  [KEY_ADMIN] = "hash",   [KEY_SECRETS] = "hash",
    [KEY_HEALTH] = "hash",   [KEY_STREAKS] = "hash", [KEY_DUE] = "zset",
    [KEY_COOLDOWN] = "zset", [KEY_LIVE] = "hash",    [KEY_BUSY] = "zset",
    [KEY_LEASES] = "zset",   [KEY_HOLDERS] = "hash", [KEY_RELEASED] = "zset",
    [KEY_RULES] = "hash",    [KEY_TRAFFIC] = "hash", [KEY_CLIENTS] = "hash",
    [KEY_FAILING] = "zset",  [KEY_FALLEN] = "zset",  [KEY_ALARM] = "string",
};

/* One question a key, all in one write. */
struct check {
	struct pool *pool;
	pool_cb *cb;
	void *arg;
	struct question {
		struct check *check;
		enum pool_key key;
	} questions[KEY_COUNT];
	int asked, answered;
	int result;
	char error[400];
};

static void finish(struct check *check)
{
	if (check->answered < check->asked)
		return;
	check->cb(check->result, check->error, check->arg);
	free(check);
}

static void judge(struct check *check, enum pool_key key, const char *type)
{
	if (check->result || !strcmp(type, "none") || !strcmp(type, types[key]))
		return;
	check->result = REASON_STORE_REFUSED;
	snprintf(check->error, sizeof check->error, "WRONGTYPE the key %s holds a %s, not a %s",
		 pool_keys(check->pool)->text[key], type, types[key]);
}

static void on_type(int result, const struct reply *reply, void *arg)
{
	const struct question *question = arg;
	struct check *check = question->check;

	check->answered++;
	if (!result) {
		judge(check, question->key, reply_text(reply, NULL));
	} else if (!check->result) {
		check->result = result;
		snprintf(check->error, sizeof check->error, "%s", reply_text(reply, NULL));
	}
	finish(check);
}

int pool_check_types(struct pool *pool, pool_cb *cb, void *arg)
{
	struct check *check = calloc(1, sizeof *check);

	if (!check)
		return -ENOMEM;
	*check = (struct check){.pool = pool, .cb = cb, .arg = arg};
	for (int key = 0; key < KEY_COUNT; key++) {
		struct word words[] = {WORD("TYPE"), pool_key(pool_keys(pool), (enum pool_key)key)};

		check->questions[key] = (struct question){check, (enum pool_key)key};
		if (store_command(pool_store(pool), STORE_IDEMPOTENT, words, 2, on_type,
				  &check->questions[key]))
			break;
		check->asked++;
	}
	if (check->asked == KEY_COUNT)
		return 0;
	check->result = REASON_STORE_NOT_DONE;
	if (check->asked > 0)
		return 0; /* the answers that come will end it */
	free(check);
	return -ENOBUFS;
}
