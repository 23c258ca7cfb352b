/* keys.c - the names of a pool's keys in Redis, and what those of pools and queues have in common. */
#include "store/keys.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const siblings[KEY_COUNT] = {
    [KEY_PARKED] = "parked",   [KEY_OFFSET] = "offset",     [KEY_PROXIES] = "proxies",
    [KEY_ADMIN] = "admin",     [KEY_SECRETS] = "secrets",   [KEY_HEALTH] = "health",
    [KEY_STREAKS] = "streaks", [KEY_DUE] = "due",           [KEY_COOLDOWN] = "cooldown",
    [KEY_FAILING] = "failing", [KEY_FALLEN] = "fallen",     [KEY_ALARM] = "alarm",
    [KEY_LIVE] = "live",       [KEY_BUSY] = "busy",         [KEY_LEASES] = "leases",
    [KEY_HOLDERS] = "holders", [KEY_RELEASED] = "released", [KEY_RULES] = "rules",
    [KEY_TRAFFIC] = "traffic", [KEY_CLIENTS] = "clients",
};

/* Redis Cluster: the first '{' and the first '}' behind it, with something between, decide the slot. */
static const char *find_tag(const char *name, size_t *ret_len)
{
	const char *open = strchr(name, '{');
	const char *close = open ? strchr(open, '}') : NULL;

	if (!close || close == open + 1)
		return NULL;
	*ret_len = (size_t)(close - open) + 1;
	return open;
}

void key_tag(const char *name, char *ret, size_t size)
{
	size_t len;

	snprintf(ret, size, find_tag(name, &len) ? "%s" : "{%s}", name);
}

const char *key_name_fault(const char *name)
{
	size_t len = strlen(name), tag_len = 0;
	const char *tag = find_tag(name, &tag_len);

	if (len == 0)
		return "a name is not empty";
	if (len > KEY_NAME_MAX)
		return "a name has at most 200 bytes";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return "a name has no control bytes";
	if (!tag && strpbrk(name, "{}"))
		return "the braces in a name must be a Cluster tag: one {tag} with something "
		       "between";
	if (tag_len == len)
		return "a name is more than a tag: its keys would be those of the name without "
		       "braces";
	return NULL;
}

int pool_keys_init(struct pool_keys *ret, const char *name, char *error, size_t error_size)
{
	const char *fault = key_name_fault(name);

	if (fault) {
		snprintf(error, error_size, "pool name '%.80s': %s", name, fault);
		return -EINVAL;
	}
	key_tag(name, ret->tag, sizeof ret->tag);
	for (int key = 0; key < KEY_COUNT; key++) {
		int len = key == KEY_POOL ? snprintf(ret->text[key], KEY_TEXT_MAX, "%s", name)
					  : snprintf(ret->text[key], KEY_TEXT_MAX, "%s:pool:%s",
						     ret->tag, siblings[key]);
		ret->len[key] = (size_t)len;
	}
	return 0;
}

/* CRC16 of the XMODEM kind, bit by bit: it runs at a start, for a few names. */
static unsigned crc16(const char *bytes, size_t len)
{
	unsigned crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)(unsigned char)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
	}
	return crc;
}

unsigned key_slot(const char *key, size_t len)
{
	const char *open = memchr(key, '{', len);
	const char *close = open ? memchr(open, '}', len - (size_t)(open - key)) : NULL;

	if (close && close > open + 1)
		return crc16(open + 1, (size_t)(close - open) - 1) % 16384;
	return crc16(key, len) % 16384;
}

struct word pool_key(const struct pool_keys *keys, enum pool_key key)
{
	return (struct word){.at = keys->text[key], .len = keys->len[key]};
}

/* --- keys that others' names are part of --------------------------------------------------------------------------- */

void key_part(const char *name, char ret[static KEY_PART_SIZE])
{
	static const char unreserved[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	char *out = ret;

	for (size_t i = 0; i < KEY_PART_MAX && name[i]; i++) {
		if (strchr(unreserved, name[i]))
			*out++ = name[i];
		else
			out += sprintf(out, "%%%02X", (unsigned char)name[i]);
	}
	*out = '\0';
}

struct word session_pin_key(const struct pool_keys *keys, const char *client, const char *id,
			    char ret[static SESSION_KEY_SIZE])
{
	char client_part[KEY_PART_SIZE], id_part[KEY_PART_SIZE];
	int len;

	key_part(client, client_part);
	key_part(id, id_part);
	len = snprintf(ret, SESSION_KEY_SIZE, "%s:pool:sticky:%s:%s", keys->tag, client_part,
		       id_part);
	return (struct word){ret, (size_t)len};
}

struct word sessions_key(const struct pool_keys *keys, const char *client,
			 char ret[static SESSION_KEY_SIZE])
{
	char part[KEY_PART_SIZE];
	int len;

	key_part(client, part);
	len = snprintf(ret, SESSION_KEY_SIZE, "%s:pool:sessions:%s", keys->tag, part);
	return (struct word){ret, (size_t)len};
}
