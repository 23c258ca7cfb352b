/* task_json.c - a task that is a JSON object: which names it may have, and what each may say. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/conf.h"
#include "worker/task_parts.h"

/* How many digits base64_decode() takes at a time: whole groups of four. */
#define BASE64_PIECE ((size_t)65536)

/* Reads the value of a name. 0, -ENOMEM, or task_refuse(). */
typedef int member_reader(struct task *task, const json_t *value,
			  char error[static TASK_ERROR_MAX]);

static struct text json_text(const json_t *value)
{
	return (struct text){json_string_value(value), json_string_length(value)};
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* --- the names ---------------------------------------------------------------------------------------------------- */

static int read_url(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	if (!json_is_string(value))
		return task_refuse(error, "\"url\" must be a text");
	return task_read_url(task, json_string_value(value), json_string_length(value), error);
}

/* The Fetch standard writes these in capitals whatever the caller wrote; all others are case-sensitive (RFC 9110 9.1). */
static const char *method_word(struct text method)
{
	static const char *const words[] = {"DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text_is(method, words[i]))
			return words[i];
	return method.at;
}

static int read_method(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	struct text method = json_text(value);

	if (!json_is_string(value) || !task_is_token(method) || method.len > TASK_METHOD_MAX)
		return task_refuse(error,
				   "\"method\" must be a word such as GET or POST, of at most %zu "
				   "characters",
				   TASK_METHOD_MAX);
	/* It would be a tunnel; TRACE shows a member's own header to whoever asks. */
	if (text_is(method, "CONNECT") || text_is(method, "TRACE"))
		return task_refuse(error, "\"method\" must not be CONNECT or TRACE");
	task->method = strdup(method_word(method));
	return task->method ? 0 : -ENOMEM;
}

static int read_body(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	if (!json_is_string(value))
		return task_refuse(error, "\"body\" must be a text");
	if (task->body)
		return task_refuse(error, "\"body\" stands beside \"body_base64\"");
	task->body_len = json_string_length(value);
	task->body = malloc(task->body_len + 1);
	if (!task->body)
		return -ENOMEM;
	memcpy(task->body, json_string_value(value), task->body_len + 1);
	return 0;
}

/* Only the last piece may be padded: a shorter one before it is none that the next continues. */
static int decode(char *ret, size_t *ret_len, struct text text)
{
	int r = 0;

	*ret_len = 0;
	for (size_t at = 0, len, got; at < text.len && !r; at += len) {
		len = text.len - at < BASE64_PIECE ? text.len - at : BASE64_PIECE;
		r = base64_decode(ret + *ret_len, &got, text.at + at, len);
		if (!r && at + len < text.len && got != len / 4 * 3)
			r = -EINVAL;
		if (!r)
			*ret_len += got;
	}
	return r;
}

static int read_body_base64(struct task *task, const json_t *value,
			    char error[static TASK_ERROR_MAX])
{
	struct text text = json_text(value);

	if (!json_is_string(value))
		return task_refuse(error, "\"body_base64\" must be a text");
	if (task->body)
		return task_refuse(error, "\"body_base64\" stands beside \"body\"");
	task->body = malloc(text.len / 4 * 3 + 1);
	if (!task->body)
		return -ENOMEM;
	if (decode(task->body, &task->body_len, text))
		return task_refuse(error, "\"body_base64\" is no base 64 (RFC 4648)");
	task->body[task->body_len] = '\0';
	return 0;
}

static int read_id(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	struct text id = json_text(value);
	char number[32];

	if (json_is_integer(value)) {
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		id = (struct text){number, strlen(number)};
	}
	if (!id.len || id.len > TASK_ID_MAX || memchr(id.at, '\0', id.len))
		return task_refuse(error,
				   "\"id\" must be a text of 1 to %zu bytes, or a whole number",
				   TASK_ID_MAX);
	task->id = strndup(id.at, id.len);
	return task->id ? 0 : -ENOMEM;
}

static int read_timeout(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	const struct conf_row *row = conf_row(CONF_FETCH_TIMEOUT);
	json_int_t ms = json_integer_value(value);

	if (!json_is_integer(value) || ms < row->min || ms > row->max)
		return task_refuse(
		    error, "\"timeout_ms\" must be a whole number of milliseconds, %lld to %lld",
		    (long long)row->min, (long long)row->max);
	task->timeout_ms = ms;
	return 0;
}

/* The producer's own, handed through to the result. */
static int read_meta(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	(void)error;
	task->meta = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	return task->meta ? 0 : -ENOMEM;
}

/* It stands in tasks of other programs; here the level that a task was pushed to decides. */
static int read_priority(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	(void)task;
	(void)value;
	(void)error;
	return 0;
}

/* --- headers ------------------------------------------------------------------------------------------------------ */

/* They say where the message goes, where it ends and what is the connection's: they are made here, and nowhere else
 * (request smuggling). So are their names with '_', which some readers fold into '-'. */
static bool is_ours(struct text name)
{
	static const char *const names[] = {
	    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
	    "TE",   "Trailer",        "Upgrade",           "Expect",     "HTTP2-Settings",
	};
	char folded[32];

	if (name.len >= sizeof folded)
		return text_is((struct text){name.at, 6}, "Proxy-") ||
		       text_is((struct text){name.at, 6}, "Proxy_");
	for (size_t i = 0; i < name.len; i++)
		folded[i] = name.at[i] == '_' ? '-' : name.at[i];
	if (name.len >= 6 && text_is((struct text){folded, 6}, "Proxy-"))
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (text_is((struct text){folded, name.len}, names[i]))
			return true;
	return false;
}

static struct text trim(struct text t)
{
	while (t.len && (t.at[0] == ' ' || t.at[0] == '\t'))
		t = (struct text){t.at + 1, t.len - 1};
	while (t.len && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t'))
		t.len--;
	return t;
}

static int check_header(struct text name, struct text value, char error[static TASK_ERROR_MAX])
{
	if (!task_is_token(name) || name.len > 64)
		return task_refuse(error,
				   "a name in \"headers\" is no token of RFC 9110 (letters, digits "
				   "and -, at most 64)");
	if (is_ours(name))
		return task_refuse(error, "header \"%.64s\" is not a task's to set", name.at);
	for (size_t i = 0; i < value.len; i++)
		if (is_control(value.at[i]) && value.at[i] != '\t')
			return task_refuse(error, "a control byte stands in header \"%.64s\"",
					   name.at);
	return 0;
}

/* `total`: bytes of all headers so far. */
static int add_header(struct task *task, const char *name, const json_t *json, size_t *total,
		      char error[static TASK_ERROR_MAX])
{
	struct text key = {name, strlen(name)}, value = trim(json_text(json));
	struct task_header *header = &task->headers[task->header_count];
	int r;

	if (!json_is_string(json))
		return task_refuse(error,
				   "a value in \"headers\" must be a text or an array of texts");
	*total += key.len + value.len;
	if (task->header_count == TASK_HEADERS_MAX || *total > TASK_HEADER_BYTES_MAX)
		return task_refuse(error,
				   "\"headers\" has more than %zu headers or %zu bytes of them",
				   TASK_HEADERS_MAX, TASK_HEADER_BYTES_MAX);
	r = check_header(key, value, error);
	if (r)
		return r;
	task->header_count++;
	*header = (struct task_header){strdup(name), strndup(value.at, value.len)};
	return header->name && header->value ? 0 : -ENOMEM;
}

static int read_headers(struct task *task, const json_t *value, char error[static TASK_ERROR_MAX])
{
	json_t *object = (json_t *)value, *item, *one;
	size_t total = 0, i;
	const char *name;
	int r = 0;

	if (!json_is_object(value))
		return task_refuse(error,
				   "\"headers\" must be an object of texts: {\"Name\": \"value\"}");
	task->headers = calloc(TASK_HEADERS_MAX, sizeof *task->headers);
	if (!task->headers)
		return -ENOMEM;
	json_object_foreach(object, name, item)
	{
		if (!json_is_array(item) && !r)
			r = add_header(task, name, item, &total, error);
		json_array_foreach(item, i, one) if (!r) r =
		    add_header(task, name, one, &total, error);
	}
	return r;
}

/* --- the object --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	member_reader *read;
} members[] = {
    {"url", read_url},
    {"method", read_method},
    {"headers", read_headers},
    {"body", read_body},
    {"body_base64", read_body_base64},
    {"id", read_id},
    {"timeout_ms", read_timeout},
    {"meta", read_meta},
    {"priority", read_priority},
};

static int read_member(struct task *task, const char *name, const json_t *value,
		       char error[static TASK_ERROR_MAX])
{
	if (json_is_null(value))
		return 0;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (strcmp(members[i].name, name) == 0)
			return members[i].read(task, value, error);
	return task_refuse(error,
			   "\"%.32s\" is no name that is known here (url, method, headers, body, "
			   "body_base64, id, timeout_ms, meta, priority)",
			   name);
}

static int read_object(struct task *task, json_t *object, char error[static TASK_ERROR_MAX])
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach(object, name, value) if (!r) r = read_member(task, name, value, error);
	if (!r && !task->url)
		r = task_refuse(error, "there is no \"url\"");
	if (!r && task->body && !task->method)
		r = task_refuse(error, "\"body\" needs a \"method\", such as POST");
	if (r || task->method)
		return r;
	task->method = strdup("GET");
	return task->method ? 0 : -ENOMEM;
}

/* jansson's own words quote what stands there, which may be a password. */
static int refuse_json(const json_error_t *wrong, char error[static TASK_ERROR_MAX])
{
	const char *quote = strstr(wrong->text, " near ");
	size_t len = quote ? (size_t)(quote - wrong->text) : strlen(wrong->text);

	return task_refuse(error, "bad JSON at byte %d: %.*s", wrong->position, (int)len,
			   wrong->text);
}

int task_read_json(struct task *task, struct text payload, char error[static TASK_ERROR_MAX])
{
	json_error_t wrong;
	json_t *object;
	int r;

	if (payload.at[0] != '{')
		return task_refuse(error, "it is no JSON object, as --tasks-are json wants them: "
					  "{\"url\": \"http://...\"}");
	if (payload.len > TASK_JSON_MAX)
		return task_refuse(error, "the object is longer than %zu bytes", TASK_JSON_MAX);
	object =
	    json_loadb(payload.at, payload.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
	if (!object && json_error_code(&wrong) == json_error_out_of_memory)
		return -ENOMEM;
	if (!object)
		return refuse_json(&wrong, error);
	r = read_object(task, object, error);
	json_decref(object);
	return r;
}
