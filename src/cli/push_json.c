/* push_json.c - a task as a JSON object of one line. */
#include "cli/push_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/conf.h"
#include "cli/time_text.h"

/* What is wrong with a member's value; NULL: nothing. */
typedef const char *member_reader(struct push_object *object, const json_t *value);

static const char *read_payload(struct push_object *object, const json_t *value)
{
	if (!json_is_string(value))
		return "must be a text";
	if (object->payload)
		return "stands beside payload_base64";
	object->payload = json_string_value(value);
	object->len = json_string_length(value);
	return NULL;
}

static const char *read_base64(struct push_object *object, const json_t *value)
{
	size_t len = json_string_length(value);

	if (!json_is_string(value))
		return "must be a text";
	if (object->payload)
		return "stands beside payload";
	object->decoded = malloc(len / 4 * 3 + 1);
	if (!object->decoded)
		return "needs more memory than there is";
	if (base64_decode(object->decoded, &object->len, json_string_value(value), len))
		return "is no base 64 (RFC 4648)";
	object->payload = object->decoded;
	return NULL;
}

static const char *read_level(struct push_object *object, const json_t *value)
{
	object->level = json_string_value(value);
	return object->level ? NULL : "must be a text";
}

static const char *read_id(struct push_object *object, const json_t *value)
{
	object->key = json_string_value(value);
	object->key_len = json_string_length(value);
	if (!object->key || object->key_len == 0 ||
	    object->key_len > (size_t)conf_row(CONF_PUSH_ID)->max)
		return "must be a text of 1 to 256 bytes";
	return NULL;
}

static const char *read_delay(struct push_object *object, const json_t *value)
{
	json_int_t ms = json_integer_value(value);

	if (!json_is_integer(value) || ms < 0 || ms > conf_row(CONF_DELAY)->max)
		return "must be a whole number of milliseconds, at most a year";
	if (object->is_at)
		return "stands beside at";
	object->when_ms = ms;
	return NULL;
}

static const char *read_at(struct push_object *object, const json_t *value)
{
	object->is_at = true;
	if (object->when_ms)
		return "stands beside delay_ms";
	if (json_is_integer(value) && json_integer_value(value) > 0 &&
	    json_integer_value(value) < TIME_TEXT_END_MS)
		object->when_ms = json_integer_value(value);
	else if (!json_is_string(value) ||
		 time_text_parse(json_string_value(value), &object->when_ms))
		return "must be a time such as 2026-12-31T18:00:00Z, or milliseconds since 1970";
	return NULL;
}

static const char *read_urgent(struct push_object *object, const json_t *value)
{
	object->is_urgent = json_is_true(value);
	return json_is_boolean(value) ? NULL : "must be true or false";
}

static const struct {
	const char *name;
	member_reader *read;
} members[] = {
    {"payload", read_payload}, {"payload_base64", read_base64}, {"level", read_level},
    {"id", read_id},           {"delay_ms", read_delay},        {"at", read_at},
    {"urgent", read_urgent},
};

static int read_member(struct push_object *object, const char *name, const json_t *value, char *why,
		       size_t size)
{
	const char *wrong = "is no name that is known here";

	if (json_is_null(value))
		return 0;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (strcmp(members[i].name, name) == 0)
			wrong = members[i].read(object, value);
	if (!wrong)
		return 0;
	snprintf(why, size, "\"%.40s\" %s", name, wrong);
	return -EINVAL;
}

int push_object_read(struct push_object *ret, const char *text, size_t len, char *why, size_t size)
{
	json_error_t error;
	const char *name;
	json_t *value;
	int r = 0;

	*ret = (struct push_object){.key = ""};
	ret->json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!json_is_object(ret->json)) {
		snprintf(why, size, "%s%s",
			 ret->json ? "no JSON object" : "bad JSON: ", ret->json ? "" : error.text);
		return -EINVAL;
	}
	json_object_foreach(ret->json, name, value) if (!r) r =
	    read_member(ret, name, value, why, size);
	if (!r && !ret->payload) {
		snprintf(why, size, "there is neither \"payload\" nor \"payload_base64\"");
		r = -EINVAL;
	} else if (!r && ret->is_urgent && ret->when_ms) {
		snprintf(
		    why, size,
		    "\"urgent\" stands beside a time: a delayed task joins the tail of its level");
		r = -EINVAL;
	}
	return r;
}

void push_object_fini(struct push_object *object)
{
	free(object->decoded);
	json_decref(object->json);
	*object = (struct push_object){0};
}
