/* keys.h - the names of a pool's keys in Redis (docs/wire.md, "Keys"). */
#ifndef FAIRLEAD_STORE_KEYS_H
#define FAIRLEAD_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"
#include "store/store.h"

enum pool_key {
	KEY_POOL,
	KEY_PARKED,
	KEY_OFFSET,
	KEY_PROXIES,
	KEY_ADMIN,
	KEY_SECRETS,
	KEY_HEALTH,
	KEY_STREAKS,
	KEY_DUE,
	KEY_FAILING,
	KEY_FALLEN,
	KEY_ALARM,
	KEY_COOLDOWN,
	KEY_LIVE,
	KEY_BUSY,
	KEY_LEASES,
	KEY_HOLDERS,
	KEY_RELEASED,
	KEY_RULES,
	KEY_TRAFFIC,
	KEY_CLIENTS,
	KEY_COUNT
};

#define KEY_NAME_MAX ((size_t)200)
#define KEY_TEXT_MAX (KEY_NAME_MAX + 32)

struct pool_keys {
	char tag[KEY_NAME_MAX + 3]; /* T(name) */
	char text[KEY_COUNT][KEY_TEXT_MAX];
	size_t len[KEY_COUNT];
};

/* The keys of the pool whose sorted set is `name`. 0, or -EINVAL with a line in `error`: empty, too long, control bytes,
 * braces that are no valid Cluster tag, or a name that is nothing but a tag. */
MUST_USE int pool_keys_init(struct pool_keys *ret, const char *name, char *error,
			    size_t error_size);

/* T(x): x itself if it holds a valid Cluster tag (first '{', then the first '}' behind it, something between), else {x}. */
void key_tag(const char *name, char *ret, size_t size);

/* What is wrong with `name` as that of a pool or a queue, in words; NULL: nothing. */
const char *key_name_fault(const char *name);

struct word pool_key(const struct pool_keys *keys, enum pool_key key);

/* A name of up to KEY_PART_MAX bytes that others choose, percent-encoded (RFC 3986 2.1): it has no ':' and no braces
 * then. */
#define KEY_PART_MAX ((size_t)128)
#define KEY_PART_SIZE (3 * KEY_PART_MAX + 1)
void key_part(const char *name, char ret[static KEY_PART_SIZE]);

/* The key of the sticky session `id` of `client`, or of all sessions of a client. */
#define SESSION_KEY_SIZE (KEY_TEXT_MAX + 2 * KEY_PART_SIZE)
struct word session_pin_key(const struct pool_keys *keys, const char *client, const char *id,
			    char ret[static SESSION_KEY_SIZE]);
struct word sessions_key(const struct pool_keys *keys, const char *client,
			 char ret[static SESSION_KEY_SIZE]);

/* --- queues ------------------------------------------------------------------------------------------------------- */

enum queue_key {
	QUEUE_LATER,
	QUEUE_HELD,
	QUEUE_CLAIMS,
	QUEUE_LEASES,
	QUEUE_SETTLED,
	QUEUE_SETTLED_BEFORE,
	QUEUE_DEAD,
	QUEUE_IDS,
	QUEUE_STATS,
	QUEUE_PAUSED,
	QUEUE_KEY_COUNT
};

#define QUEUE_LEVELS_MAX ((size_t)16)

struct queue_level {
	char name[KEY_PART_MAX + 1]; /* of --levels, or the list's own of --lists */
	char list[KEY_TEXT_MAX + KEY_PART_MAX];
	char retry[KEY_TEXT_MAX + KEY_PART_SIZE];
};

/* The keys of a queue, its levels in the order in which they are tried. */
struct queue_keys {
	char name[KEY_NAME_MAX + 1];
	char text[QUEUE_KEY_COUNT][KEY_TEXT_MAX];
	size_t len[QUEUE_KEY_COUNT];
	struct queue_level levels[QUEUE_LEVELS_MAX];
	size_t level_count;
};

/* The keys of the queue `name` with `count` levels: names of its own (`are_lists` false), or keys of any lists. 0, or
 * -EINVAL with a line in `error`: a name as for pools, a level that is empty, over KEY_PART_MAX bytes, named twice,
 * has control bytes or is one of the queue's own keys, none or too many. */
MUST_USE int queue_keys_init(struct queue_keys *ret, const char *name, const char *const *levels,
			     size_t count, bool are_lists, char *error, size_t error_size);

struct word queue_key(const struct queue_keys *keys, enum queue_key key);

/* The level of that name, or -1. */
int queue_level_find(const struct queue_keys *keys, const char *name, size_t len);

/* The Cluster slot of a key (CRC16 of its tag or the whole, Redis Cluster specification). */
unsigned key_slot(const char *key, size_t len);

#endif
