/* conf.c - settings: names, values, and where each value came from. */
#include "base/conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_source.h"
#include "base/conf_value.h"
#include "base/secret.h"

#define ELEMENT_MAX ((size_t)4096)

static const struct conf_row rows[CONF_ROWS] = {
#define CONF(name, text, kind, initial, min, max, groups, where, placeholder, help)                \
	[CONF_##name] = {text,   KIND_##kind,   initial,     min, max,                             \
			 groups, WHERE_##where, placeholder, help},
#include "tables/config.def"
};

static const char *const headings[GROUP_COUNT] = {
#define GROUP(name, heading) [GROUP_##name] = heading,
#include "tables/config.def"
};

const struct conf_row *conf_row(enum conf_id id)
{
	return &rows[id];
}

const char *conf_heading(enum conf_group_index group)
{
	return headings[group];
}

int conf_find(const char *name)
{
	for (int id = 0; id < CONF_ROWS; id++)
		if (strcmp(rows[id].name, name) == 0)
			return id;
	return -1;
}

const char *conf_flag_name(enum conf_id id, char *buffer, size_t size)
{
	snprintf(buffer, size, "--%s", rows[id].name);
	for (char *c = buffer; *c; c++)
		if (*c == '_')
			*c = '-';
	return buffer;
}

const char *conf_env_name(enum conf_id id, char *buffer, size_t size)
{
	snprintf(buffer, size, "FAIRLEAD_%s", rows[id].name);
	for (char *c = buffer; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return buffer;
}

int conf_fail(struct conf_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof error->text, format, args);
	va_end(args);
	for (char *c = error->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return -EINVAL;
}

/* Names the setting as its place writes it, then the value and what is wrong with it. */
static int refuse(enum conf_id id, const char *value, struct conf_place place, const char *why,
		  struct conf_error *error)
{
	char name[64], shown[96];

	secret_print(value, shown, sizeof shown);
	switch (place.level) {
	case FROM_FLAG:
		conf_flag_name(id, name, sizeof name);
		return conf_fail(error, "%s %s: %s", name, *shown ? shown : "''", why);
	case FROM_ENVIRONMENT:
		conf_env_name(id, name, sizeof name);
		return conf_fail(error, "%s=%s: %s", name, shown, why);
	case FROM_FILE:
		return conf_fail(error, "%s:%d: %s = %s: %s", place.file, place.line, rows[id].name,
				 shown, why);
	case FROM_DEFAULT:
		break;
	}
	return conf_fail(error, "default of %s: %s: %s", rows[id].name, shown, why);
}

static int value_append(struct conf_value *value, const char *text, size_t len)
{
	char **texts = realloc(value->texts, (value->count + 1) * sizeof *texts);
	char *copy;

	if (!texts)
		return -ENOMEM;
	value->texts = texts;
	copy = strndup(text, len);
	if (!copy)
		return -ENOMEM;
	value->texts[value->count++] = copy;
	return 0;
}

/* Judges an element whether it will be stored or not. */
static int set_element(struct conf_value *value, enum conf_id id, const char *text, size_t len,
		       struct conf_place place, struct conf_error *error)
{
	char why[64];

	while (len && isspace((unsigned char)*text))
		text++, len--;
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0)
		return 0;
	if (len > ELEMENT_MAX)
		return refuse(id, text, place, "must have at most 4096 bytes", error);
	if (place.level < value->level)
		return 0;
	if ((int64_t)value->count >= rows[id].max) {
		snprintf(why, sizeof why, "there may be at most %lld", (long long)rows[id].max);
		return refuse(id, text, place, why, error);
	}
	return value_append(value, text, len);
}

static int set_list(struct conf_value *value, enum conf_id id, const char *text,
		    struct conf_place place, struct conf_error *error)
{
	int r = 0;

	if (place.level == FROM_FLAG)
		return set_element(value, id, text, strlen(text), place, error);
	while (!r) {
		size_t len = strcspn(text, ",");

		r = set_element(value, id, text, len, place, error);
		if (!text[len])
			break;
		text += len + 1;
	}
	return r;
}

int conf_set(struct conf *conf, enum conf_id id, const char *text, struct conf_place place,
	     struct conf_error *error)
{
	struct conf_value *value = &conf->values[id];
	bool is_list = rows[id].kind == KIND_LIST;
	int64_t number = 0;
	char why[256];

	if (conf_value_parse(&rows[id], text, &number, why, sizeof why))
		return refuse(id, text, place, why, error);
	if (place.level > value->level || (place.level == value->level && !is_list))
		conf_value_clear(value);
	if (place.level >= value->level) {
		value->level = place.level;
		value->line = place.line;
		value->number = number;
	}
	if (is_list)
		return set_list(value, id, text, place, error);
	return place.level < value->level || !*text ? 0 : value_append(value, text, strlen(text));
}

int conf_init(struct conf *conf)
{
	struct conf_error error;

	*conf = (struct conf){0};
	for (int id = 0; id < CONF_ROWS; id++) {
		int r = conf_set(conf, (enum conf_id)id, rows[id].initial,
				 (struct conf_place){.level = FROM_DEFAULT}, &error);
		if (r)
			return r;
	}
	return 0;
}

void conf_fini(struct conf *conf)
{
	for (int id = 0; id < CONF_ROWS; id++)
		conf_value_clear(&conf->values[id]);
	conf_source_free_all(conf);
	free(conf->file);
	conf->file = NULL;
}

int conf_load_env(struct conf *conf, struct conf_error *error)
{
	char name[64];

	for (int id = 0; id < CONF_ROWS; id++) {
		const char *value;
		int r;

		if (rows[id].where == WHERE_FLAG)
			continue;
		value = getenv(conf_env_name((enum conf_id)id, name, sizeof name));
		if (!value || !*value)
			continue;
		r = conf_set(conf, (enum conf_id)id, value,
			     (struct conf_place){.level = FROM_ENVIRONMENT}, error);
		if (r)
			return r;
	}
	return 0;
}

bool conf_is_set(const struct conf *conf, enum conf_id id)
{
	return conf->values[id].level != FROM_DEFAULT;
}

enum conf_level conf_level(const struct conf *conf, enum conf_id id)
{
	return conf->values[id].level;
}

static const struct conf_value *value_of(const struct conf *conf, enum conf_id id, unsigned kinds)
{
	if (!(kinds & 1U << rows[id].kind))
		abort();
	return &conf->values[id];
}

const char *conf_text(const struct conf *conf, enum conf_id id)
{
	const struct conf_value *value =
	    value_of(conf, id, 1 << KIND_TEXT | 1 << KIND_PATH | 1 << KIND_URL | 1 << KIND_ENUM);

	return value->count ? value->texts[0] : "";
}

int64_t conf_int(const struct conf *conf, enum conf_id id)
{
	return value_of(conf, id, 1 << KIND_INT)->number;
}

int64_t conf_ms(const struct conf *conf, enum conf_id id)
{
	return value_of(conf, id, 1 << KIND_MS)->number;
}

size_t conf_bytes(const struct conf *conf, enum conf_id id)
{
	return (size_t)value_of(conf, id, 1 << KIND_BYTES)->number;
}

bool conf_bool(const struct conf *conf, enum conf_id id)
{
	return value_of(conf, id, 1 << KIND_BOOL)->number != 0;
}

int conf_enum(const struct conf *conf, enum conf_id id)
{
	return (int)value_of(conf, id, 1 << KIND_ENUM)->number;
}

size_t conf_count(const struct conf *conf, enum conf_id id)
{
	return value_of(conf, id, 1 << KIND_LIST)->count;
}

const char *conf_at(const struct conf *conf, enum conf_id id, size_t index)
{
	return value_of(conf, id, 1 << KIND_LIST)->texts[index];
}
