/* member.h - members that this process has met: identifier, address, credentials; a bounded cache.
 *
 * An identifier fixes the credentials (its digest is over them), so that an entry never goes stale. */
#ifndef FAIRLEAD_POOL_MEMBER_H
#define FAIRLEAD_POOL_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/endpoint.h"
#include "base/result.h"

struct member {
	char *id; /* as it stands in the sorted set; a foreign one may hold any byte */
	size_t id_len;
	struct endpoint endpoint;
	bool is_readable; /* false: not an identifier of ours, or its credentials are missing */
	int references;
};

struct members;

/* At most `cap` members are kept beside those in use. 0 or -ENOMEM. */
MUST_USE int members_new(struct members **ret, size_t cap);
void members_free(struct members *members);

/* The member of that identifier with a reference for the caller, or NULL. */
struct member *members_find(struct members *members, const char *id, size_t len);

/* Enters a member; `secret` NULL: none is known. An entry that needs a secret and gets none is unreadable and not
 * kept. Returns it with a reference for the caller, or NULL (no memory). */
struct member *members_add(struct members *members, const char *id, size_t len, const char *secret,
			   size_t secret_len);

/* True when the identifier announces credentials that must be fetched. */
bool member_needs_secret(const char *id, size_t len);

/* One more reference; returns the member. */
struct member *member_ref(struct member *member);
void member_unref(struct member *member);

#endif
