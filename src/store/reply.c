/* reply.c - an answer of the store, read only: hiredis's default objects behind our names. */
#include "store/reply.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* struct reply is never defined: it is a redisReply. */
static const redisReply *native(const struct reply *reply)
{
	return (const redisReply *)reply;
}

enum reply_kind reply_kind(const struct reply *reply)
{
	switch (reply ? native(reply)->type : REDIS_REPLY_NIL) {
	case REDIS_REPLY_STRING:
		return REPLY_TEXT;
	case REDIS_REPLY_STATUS:
		return REPLY_STATUS;
	case REDIS_REPLY_INTEGER:
		return REPLY_INTEGER;
	case REDIS_REPLY_ARRAY:
		return REPLY_ARRAY;
	case REDIS_REPLY_ERROR:
		return REPLY_ERROR;
	default:
		return REPLY_NIL;
	}
}

static bool has_text(const struct reply *reply)
{
	enum reply_kind kind = reply_kind(reply);

	return kind == REPLY_TEXT || kind == REPLY_STATUS || kind == REPLY_ERROR;
}

const char *reply_text(const struct reply *reply, size_t *ret_len)
{
	bool text = has_text(reply);

	if (ret_len)
		*ret_len = text ? (size_t)native(reply)->len : 0;
	return text ? native(reply)->str : "";
}

int64_t reply_integer(const struct reply *reply, int64_t otherwise)
{
	const char *text;
	char *end;
	long long value;

	if (reply_kind(reply) == REPLY_INTEGER)
		return native(reply)->integer;
	text = reply_text(reply, NULL);
	errno = 0;
	value = strtoll(text, &end, 10);
	return *text && !*end && !errno ? value : otherwise;
}

int reply_double(const struct reply *reply, double *ret)
{
	const char *text = reply_text(reply, NULL);
	char *end;
	double value = strtod(text, &end);

	if (!*text || *end || value != value)
		return -EINVAL;
	*ret = value;
	return 0;
}

size_t reply_count(const struct reply *reply)
{
	return reply_kind(reply) == REPLY_ARRAY ? (size_t)native(reply)->elements : 0;
}

const struct reply *reply_at(const struct reply *reply, size_t index)
{
	if (index >= reply_count(reply))
		return NULL;
	return (const struct reply *)native(reply)->element[index];
}

/* A word of the table without a space is the whole first word of an error; one with a space begins it. */
static bool matches(const char *error, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(error, word, len) != 0)
		return false;
	return strchr(word, ' ') || error[len] == ' ' || error[len] == '\0';
}

enum error_class reply_classify(const char *error, bool is_script)
{
	static const struct {
		const char *word;
		enum error_class class;
	} table[] = {
	    {"NOSCRIPT", ERROR_NOSCRIPT},
	    {"LOADING", ERROR_TRANSIENT},
	    {"BUSY", ERROR_TRANSIENT},
	    {"READONLY", ERROR_TRANSIENT},
	    {"MASTERDOWN", ERROR_TRANSIENT},
	    {"TRYAGAIN", ERROR_TRANSIENT},
	    {"CLUSTERDOWN", ERROR_TRANSIENT},
	    {"ERR Script killed", ERROR_TRANSIENT},
	    {"ERR max number of clients", ERROR_TRANSIENT},
	    {"NOREPLICAS", ERROR_REFUSED},
	    {"MISCONF", ERROR_REFUSED},
	    {"OOM", ERROR_REFUSED},
	    {"NOPERM", ERROR_REFUSED},
	    {"NOAUTH", ERROR_REFUSED},
	    {"WRONGPASS", ERROR_REFUSED},
	    {"MOVED", ERROR_REFUSED},
	    {"ASK", ERROR_REFUSED},
	    {"CROSSSLOT", ERROR_REFUSED},
	    {"EXECABORT", ERROR_REFUSED},
	    {"ERR fairlead:", ERROR_REFUSED}, /* our scripts validate before they write */
	    /* The script never began. */
	    {"ERR unknown command", ERROR_REFUSED},
	    {"ERR wrong number of arguments", ERROR_REFUSED},
	    {"ERR Error compiling script", ERROR_REFUSED},
	    {"ERR Number of keys", ERROR_REFUSED},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (matches(error, table[i].word))
			return table[i].class;
	return is_script ? ERROR_PARTIAL : ERROR_REFUSED;
}
