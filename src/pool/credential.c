/* credential.c - members by the identifiers that the store has named: from the cache, or with credentials fetched in one
 * question. */
#include "pool/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool/internal.h"

/* An identifier that waits for its credentials, and its place. */
struct missing {
	char *at;
	size_t len, place;
};

static void finish(struct credentials *credentials)
{
	for (size_t i = 0; i < credentials->count; i++)
		free(credentials->missing[i].at);
	free(credentials->missing);
	credentials->end(credentials->arg);
}

static void tell(struct credentials *credentials, size_t place, struct member *member)
{
	int result = REASON_INTERNAL;

	if (member)
		result = member->is_readable ? 0 : REASON_MEMBER_UNREADABLE;
	credentials->cb(result, member, place, credentials->arg);
}

static void on_secrets(int result, const struct reply *reply, void *arg)
{
	struct credentials *credentials = arg;
	struct members *members = credentials->pool->members;

	for (size_t i = 0; i < credentials->count; i++) {
		const struct missing *missing = &credentials->missing[i];
		const struct reply *text = reply_at(reply, i);
		size_t len;
		const char *secret = reply_text(text, &len);
		struct member *member;

		if (result) {
			credentials->cb(result, NULL, missing->place, credentials->arg);
			continue;
		}
		member = members_find(members, missing->at, missing->len);
		if (!member)
			member = members_add(members, missing->at, missing->len,
					     reply_kind(text) == REPLY_TEXT ? secret : NULL, len);
		tell(credentials, missing->place, member);
	}
	finish(credentials);
}

void credentials_fetch(struct credentials *credentials)
{
	struct word words[2 + ALLOCATE_MAX];

	if (credentials->count == 0) {
		finish(credentials);
		return;
	}
	words[0] = WORD("HMGET");
	words[1] = pool_key(&credentials->pool->keys, KEY_SECRETS);
	for (size_t i = 0; i < credentials->count; i++)
		words[2 + i] =
		    (struct word){credentials->missing[i].at, credentials->missing[i].len};
	if (store_command(credentials->pool->store, STORE_IDEMPOTENT, words, 2 + credentials->count,
			  on_secrets, credentials))
		on_secrets(REASON_STORE_NOT_DONE, NULL, credentials);
}

/* Notes that the credentials of `id` are to be fetched. 0 or -ENOMEM. */
static int miss(struct credentials *credentials, size_t place, const char *id, size_t len)
{
	char *copy = malloc(len + 1);

	if (!credentials->missing)
		credentials->missing = calloc(credentials->places, sizeof *credentials->missing);
	if (!copy || !credentials->missing) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, id, len + 1);
	credentials->missing[credentials->count++] =
	    (struct missing){.at = copy, .len = len, .place = place};
	return 0;
}

void credentials_take(struct credentials *credentials, size_t place, const char *id, size_t len)
{
	struct members *members = credentials->pool->members;
	struct member *member = members_find(members, id, len);

	if (!member && !member_needs_secret(id, len))
		member = members_add(members, id, len, NULL, 0);
	else if (!member && !miss(credentials, place, id, len))
		return;
	tell(credentials, place, member);
}
