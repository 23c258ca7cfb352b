/* queue_keys.c - the names of a queue's keys in Redis. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/keys.h"

static const char *const siblings[QUEUE_KEY_COUNT] = {
    [QUEUE_LATER] = "later",     [QUEUE_HELD] = "held",
    [QUEUE_CLAIMS] = "claims",   [QUEUE_LEASES] = "leases",
    [QUEUE_SETTLED] = "settled", [QUEUE_SETTLED_BEFORE] = "settled-before",
    [QUEUE_DEAD] = "dead",       [QUEUE_IDS] = "ids",
    [QUEUE_STATS] = "stats",     [QUEUE_PAUSED] = "paused",
};

/* Its name is part of packed lines and of a key, which is percent-encoded up to KEY_PART_MAX bytes. */
static const char *level_fault(const char *name)
{
	size_t len = strlen(name);

	if (len == 0)
		return "a level is not empty";
	if (len > KEY_PART_MAX)
		return "a level has at most 128 bytes";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return "a level has no control bytes";
	return NULL;
}

static const char *add_level(struct queue_keys *keys, const char *tag, const char *name,
			     bool is_list)
{
	struct queue_level *level = &keys->levels[keys->level_count];
	const char *fault = level_fault(name);
	char part[KEY_PART_SIZE], own[KEY_TEXT_MAX];

	if (fault)
		return fault;
	if (queue_level_find(keys, name, strlen(name)) >= 0)
		return "a level is named once";
	key_part(name, part);
	strcpy(level->name, name);
	snprintf(level->list, sizeof level->list, "%s%s%s", is_list ? "" : tag, is_list ? "" : ":",
		 name);
	snprintf(level->retry, sizeof level->retry, "%s:queue:retry:%s", tag, part);
	snprintf(own, sizeof own, "%s:queue:", tag);
	if (!strncmp(level->list, own, strlen(own)))
		return "the keys of that name are the queue's own";
	keys->level_count++;
	return NULL;
}

int queue_keys_init(struct queue_keys *ret, const char *name, const char *const *levels,
		    size_t count, bool are_lists, char *error, size_t error_size)
{
	const char *fault = key_name_fault(name);
	struct queue_keys keys = {0};
	char tag[KEY_NAME_MAX + 3];

	if (!fault && (count == 0 || count > QUEUE_LEVELS_MAX))
		fault = "a queue has 1 to 16 levels";
	if (fault) {
		snprintf(error, error_size, "queue name '%.80s': %s", name, fault);
		return -EINVAL;
	}
	strcpy(keys.name, name);
	key_tag(name, tag, sizeof tag);
	for (int key = 0; key < QUEUE_KEY_COUNT; key++)
		keys.len[key] = (size_t)snprintf(keys.text[key], KEY_TEXT_MAX, "%s:queue:%s", tag,
						 siblings[key]);
	for (size_t i = 0; i < count && !fault; i++) {
		fault = add_level(&keys, tag, levels[i], are_lists);
		if (fault)
			snprintf(error, error_size, "level '%.80s': %s", levels[i], fault);
	}
	if (fault)
		return -EINVAL;
	*ret = keys;
	return 0;
}

struct word queue_key(const struct queue_keys *keys, enum queue_key key)
{
	return (struct word){.at = keys->text[key], .len = keys->len[key]};
}

int queue_level_find(const struct queue_keys *keys, const char *name, size_t len)
{
	for (size_t i = 0; i < keys->level_count; i++)
		if (strlen(keys->levels[i].name) == len && !memcmp(keys->levels[i].name, name, len))
			return (int)i;
	return -1;
}
