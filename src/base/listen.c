/* listen.c - one element of --listen. */
#include "base/listen.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t"

/* The longest name behind "user=" and more: a word that is cut to this is too long for whatever it may be. */
#define WORD_SIZE 320

/* What is wrong is named in the middle. Control bytes become '?'. */
static int fail(char *error, size_t size, const char *before, const char *value, const char *behind)
{
	snprintf(error, size, "%s%.60s%s", before, value, behind);
	for (char *c = error; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return -EINVAL;
}

/* The index of the choice, or -1. */
static int choose(const char *value, const char *const *choices)
{
	for (int i = 0; choices[i]; i++)
		if (!strcmp(value, choices[i]))
			return i;
	return -1;
}

static int take_auth(struct listen_spec *spec, const char *value, char *error, size_t size)
{
	static const char *const choices[] = {"on", "off", NULL};
	static const enum listen_auth meanings[] = {LISTEN_AUTH_ON, LISTEN_AUTH_OFF};
	int index = choose(value, choices);

	if (index < 0)
		return fail(error, size, "auth=", value, ": must be on or off");
	spec->auth = meanings[index];
	return 0;
}

static int take_protocol(struct listen_spec *spec, const char *value, char *error, size_t size)
{
	static const char *const choices[] = {"any", "http", "socks", NULL};
	static const enum listen_protocol meanings[] = {LISTEN_ANY, LISTEN_HTTP, LISTEN_SOCKS};
	int index = choose(value, choices);

	if (index < 0)
		return fail(error, size, "protocol=", value, ": must be any, http or socks");
	spec->protocol = meanings[index];
	return 0;
}

static int take_user(struct listen_spec *spec, const char *value, char *error, size_t size)
{
	size_t len = strlen(value);

	if (len == 0 || len > LISTEN_USER_MAX)
		return fail(error, size, "user=", value, ": must have 1 to 255 bytes");
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return fail(error, size, "user=", value,
				    ": must not hold control characters");
	memcpy(spec->user, value, len + 1);
	return 0;
}

/* Aliases are written as in the user names that choose one. */
static int take_pool(struct listen_spec *spec, const char *value, char *error, size_t size)
{
	size_t len = strlen(value);

	for (const char *c = value; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '_')
			len = 0;
	if (len == 0 || len > LISTEN_POOL_MAX)
		return fail(error, size, "pool=", value,
			    ": must be an alias: 1 to 64 letters, digits, '.' and '_'");
	memcpy(spec->pool, value, len + 1);
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct listen_spec *spec, const char *value, char *error, size_t size);
} options[] = {
    {"auth", take_auth}, {"protocol", take_protocol}, {"user", take_user}, {"pool", take_pool}};

#define OPTIONS (sizeof options / sizeof options[0])

/* `seen` has a bit for each option that was given. */
static int take_option(struct listen_spec *spec, const char *word, unsigned *seen, char *error,
		       size_t size)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < OPTIONS; i++) {
		if (strlen(options[i].name) != len || strncmp(word, options[i].name, len) != 0 ||
		    !word[len])
			continue;
		if (*seen & 1U << i)
			return fail(error, size, "", options[i].name, "= stands twice");
		*seen |= 1U << i;
		return options[i].take(spec, word + len + 1, error, size);
	}
	return fail(error, size, "'", word,
		    "': must be auth=on|off, protocol=any|http|socks, user=NAME or pool=ALIAS");
}

static int take_address(struct listen_spec *spec, const char *word, char *error, size_t size)
{
	if (strlen(word) >= sizeof spec->address || net_place_parse(&spec->place, word))
		return fail(error, size, "'", word,
			    "': expected ADDRESS:PORT, [IPV6]:PORT or unix:/PATH");
	memcpy(spec->address, word, strlen(word) + 1);
	return 0;
}

int listen_parse(struct listen_spec *ret, const char *text, char *error, size_t error_size)
{
	struct listen_spec spec = {0};
	char word[WORD_SIZE];
	unsigned seen = 0;
	int r;

	for (bool is_first = true;; is_first = false) {
		size_t len;

		text += strspn(text, BLANKS);
		len = strcspn(text, BLANKS);
		if (len == 0 && !is_first)
			break;
		snprintf(word, sizeof word, "%.*s", len < WORD_SIZE ? (int)len : WORD_SIZE - 1,
			 text);
		r = is_first ? take_address(&spec, word, error, error_size)
			     : take_option(&spec, word, &seen, error, error_size);
		if (r)
			return r;
		text += len;
	}
	*ret = spec;
	return 0;
}
