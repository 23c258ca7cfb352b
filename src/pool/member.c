/* member.c - members that this process has met: a bounded cache, least recently used goes first. */
#include "pool/member.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uthash.h>

/* A node owns one reference to its member. */
struct member_node {
	struct member *member;
	TAILQ_ENTRY(member_node) link; /* the head was used last */
	UT_hash_handle hh;
};

TAILQ_HEAD(node_list, member_node);

struct members {
	struct member_node *index;
	struct node_list order;
	size_t cap;
	unsigned passed; /* members that came while it was full */
};

#define KEPT_ONE_IN 8

int members_new(struct members **ret, size_t cap)
{
	struct members *members = calloc(1, sizeof *members);

	if (!members)
		return -ENOMEM;
	TAILQ_INIT(&members->order);
	members->cap = cap;
	*ret = members;
	return 0;
}

struct member *member_ref(struct member *member)
{
	member->references++;
	return member;
}

void member_unref(struct member *member)
{
	if (!member || --member->references > 0)
		return;
	endpoint_fini(&member->endpoint);
	free(member->id);
	free(member);
}

static void forget(struct members *members, struct member_node *node)
{
	HASH_DEL(members->index, node);
	TAILQ_REMOVE(&members->order, node, link);
	member_unref(node->member);
	free(node);
}

void members_free(struct members *members)
{
	struct member_node *node;

	if (!members)
		return;
	while ((node = TAILQ_FIRST(&members->order))) {
		/* It left the list when it was freed. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		forget(members, node);
	}
	free(members);
}

struct member *members_find(struct members *members, const char *id, size_t len)
{
	struct member_node *node;

	HASH_FIND(hh, members->index, id, (unsigned)len, node);
	if (!node)
		return NULL;
	TAILQ_REMOVE(&members->order, node, link);
	TAILQ_INSERT_HEAD(&members->order, node, link);
	node->member->references++;
	return node->member;
}

bool member_needs_secret(const char *id, size_t len)
{
	struct endpoint endpoint;
	bool needs = false;

	return !endpoint_parse_id(&endpoint, &needs, id, len) && needs;
}

/* Reads the identifier; credentials that it announces must be there. */
static void fill(struct member *member, const char *secret, size_t secret_len)
{
	bool needs_secret;

	if (endpoint_parse_id(&member->endpoint, &needs_secret, member->id, member->id_len))
		return;
	if (needs_secret && secret)
		member->endpoint.secret = strndup(secret, secret_len);
	member->is_readable = !needs_secret || member->endpoint.secret;
}

static struct member *new_member(const char *id, size_t len, const char *secret, size_t secret_len)
{
	struct member *member = calloc(1, sizeof *member);

	if (!member)
		return NULL;
	member->references = 1;
	member->id = malloc(len + 1);
	if (!member->id) {
		free(member);
		return NULL;
	}
	memcpy(member->id, id, len);
	member->id[len] = '\0';
	member->id_len = len;
	fill(member, secret, secret_len);
	return member;
}

/* A pool that is larger than the cache comes round in order: each member would push out the one that is wanted next. One in
 * KEPT_ONE_IN of them keeps a part of the pool in place. What costs a question to the store is always kept. */
static bool is_worth_keeping(struct members *members, const struct member *member)
{
	return HASH_COUNT(members->index) < members->cap || member->endpoint.secret ||
	       ++members->passed % KEPT_ONE_IN == 0;
}

struct member *members_add(struct members *members, const char *id, size_t len, const char *secret,
			   size_t secret_len)
{
	struct member *member = new_member(id, len, secret, secret_len);
	struct member_node *node;

	if (!member || !member->is_readable || !is_worth_keeping(members, member))
		return member;
	node = calloc(1, sizeof *node);
	if (!node)
		return member;
	if (HASH_COUNT(members->index) >= members->cap)
		forget(members, TAILQ_LAST(&members->order, node_list));
	node->member = member;
	member->references++;
	HASH_ADD_KEYPTR(hh, members->index, member->id, (unsigned)len, node);
	TAILQ_INSERT_HEAD(&members->order, node, link);
	return member;
}
