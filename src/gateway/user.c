/* user.c - what a user name says behind the account: parameters of clients. */
#include "gateway/user.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/conf_value.h"

#define LIFETIME_MIN_MS 1000
/* More than any key has; the rest of a longer one helps nobody. */
#define SHOWN_MAX 24

enum parameter { POOL, COUNTRY, SESSION, LIFETIME, STRICT, PARAMETER_COUNT };

static const char *const words[PARAMETER_COUNT] = {"pool", "country", "session", "lifetime",
						   "strict"};

/* Our own keys, and what vendors of proxies call the same (docs/gateway.md). */
static const struct {
	const char *key;
	enum parameter parameter;
} keys[] = {
    {"pool", POOL},        {"country", COUNTRY},          {"cc", COUNTRY},
    {"session", SESSION},  {"sessionid", SESSION},        {"sessid", SESSION},
    {"sid", SESSION},      {"lifetime", LIFETIME},        {"sesstime", LIFETIME},
    {"sessttl", LIFETIME}, {"sessionduration", LIFETIME}, {"sessionlength", LIFETIME},
    {"strict", STRICT},
};

struct word {
	const char *at;
	size_t len;
};

struct reader {
	const char *at, *end;
	struct user user;
	unsigned seen; /* a bit for each parameter */
	int64_t max_lifetime_ms;
	char *detail;
	size_t detail_size;
};

/* Always the same result, so that callers can return it. */
static int refuse(const struct reader *r, const char *parameter, const char *fault)
{
	snprintf(r->detail, r->detail_size, "parameter %s %s", parameter, fault);
	return REASON_USER_PARAMETER;
}

static bool is_value_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.';
}

/* What clients write goes into a response field and a log line: other bytes than a key's are shown as '?'. */
static int refuse_key(const struct reader *r, struct word key)
{
	char shown[SHOWN_MAX + 1];
	size_t len = key.len < SHOWN_MAX ? key.len : SHOWN_MAX;

	for (size_t i = 0; i < len; i++)
		shown[i] = is_value_byte(key.at[i]) ? key.at[i] : '?';
	shown[len] = '\0';
	return refuse(r, len > 0 ? shown : "without a name", "is not known");
}

/* Takes the next word behind a '-'; false at the end. */
static bool next_word(struct reader *r, struct word *ret)
{
	const char *dash;

	if (r->at == r->end)
		return false;
	r->at++;
	dash = memchr(r->at, '-', (size_t)(r->end - r->at));
	*ret = (struct word){r->at, (size_t)((dash ? dash : r->end) - r->at)};
	r->at += ret->len;
	return true;
}

static enum parameter find_parameter(struct word key)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strlen(keys[i].key) == key.len &&
		    strncasecmp(keys[i].key, key.at, key.len) == 0)
			return keys[i].parameter;
	return PARAMETER_COUNT;
}

static int read_value(struct reader *r, const char *word, char value[USER_VALUE_MAX + 1])
{
	struct word text;

	if (!next_word(r, &text))
		return refuse(r, word, "has no value");
	if (text.len == 0)
		return refuse(r, word, "is empty");
	if (text.len > USER_VALUE_MAX)
		return refuse(r, word, "is longer than 64 bytes");
	for (size_t i = 0; i < text.len; i++)
		if (!is_value_byte(text.at[i]))
			return refuse(r, word,
				      "may have letters, digits, underscores and dots only");
	memcpy(value, text.at, text.len);
	value[text.len] = '\0';
	return 0;
}

static void make_lower(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text | 0x20);
}

/* A duration as in settings; vendors' numbers without a unit are minutes. */
static int read_lifetime(struct reader *r, const char *value)
{
	const struct conf_row row = {
	    .kind = KIND_MS, .min = LIFETIME_MIN_MS, .max = r->max_lifetime_ms};
	bool is_bare = value[strspn(value, "0123456789")] == '\0';
	char text[USER_VALUE_MAX + 2], why[64];

	snprintf(text, sizeof text, "%s%s", value, is_bare ? "m" : "");
	if (conf_value_parse(&row, text, &r->user.lifetime_ms, why, sizeof why))
		return refuse(r, words[LIFETIME], why);
	return 0;
}

static int read_parameter(struct reader *r, enum parameter parameter)
{
	char value[USER_VALUE_MAX + 1];
	int result;

	switch (parameter) {
	case POOL:
		return read_value(r, words[POOL], r->user.pool);
	case COUNTRY:
		result = read_value(r, words[COUNTRY], r->user.country);
		make_lower(r->user.country);
		return result;
	case SESSION:
		return read_value(r, words[SESSION], r->user.session);
	case LIFETIME:
		result = read_value(r, words[LIFETIME], value);
		return result ? result : read_lifetime(r, value);
	case STRICT:
		r->user.is_strict = true;
		return 0;
	case PARAMETER_COUNT:
		break;
	}
	return REASON_USER_PARAMETER;
}

int user_parse(struct user *ret, const char *text, size_t len, int64_t max_lifetime_ms,
	       char *detail, size_t detail_size)
{
	struct reader r = {.at = text,
			   .end = text + len,
			   .max_lifetime_ms = max_lifetime_ms,
			   .detail = detail,
			   .detail_size = detail_size};
	enum parameter parameter;
	struct word key;
	int result;

	if (len > 0 && text[0] != '-')
		return refuse_key(&r, (struct word){text, len});
	while (next_word(&r, &key)) {
		parameter = find_parameter(key);
		if (parameter == PARAMETER_COUNT)
			return refuse_key(&r, key);
		if (r.seen & 1U << parameter)
			return refuse(&r, words[parameter], "stands there twice");
		r.seen |= 1U << parameter;
		result = read_parameter(&r, parameter);
		if (result)
			return result;
	}
	*ret = r.user;
	return 0;
}
