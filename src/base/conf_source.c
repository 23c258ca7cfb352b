/* conf_source.c - sections [source NAME]: rows, values, getters. */
#include "base/conf_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_value.h"
#include "base/secret.h"

#define NAME_MAX_BYTES ((size_t)40)
#define SOURCES_MAX ((size_t)256)

struct source_value {
	char *text;
	int64_t number;
	int line; /* 0: the default */
};

struct conf_source {
	char *name;
	int line;
	struct source_value values[SOURCE_ROWS];
};

static const struct conf_row rows[SOURCE_ROWS] = {
#define SOURCE(name, text, kind, initial, min, max, placeholder, help)                             \
	[SOURCE_##                                                                                 \
	    name] = {text, KIND_##kind, initial, min, max, 0, WHERE_SETTING, placeholder, help},
#include "tables/source.def"
};

const struct conf_row *conf_source_row(enum conf_source_id id)
{
	return &rows[id];
}

int conf_source_find(const char *name)
{
	for (int id = 0; id < SOURCE_ROWS; id++)
		if (strcmp(rows[id].name, name) == 0)
			return id;
	return -1;
}

static void source_fini(struct conf_source *source)
{
	free(source->name);
	for (int id = 0; id < SOURCE_ROWS; id++)
		free(source->values[id].text);
}

void conf_source_free_all(struct conf *conf)
{
	for (size_t i = 0; i < conf->source_count; i++)
		source_fini(&conf->sources[i]);
	free(conf->sources);
	conf->sources = NULL;
	conf->source_count = 0;
}

static int value_store(struct source_value *value, const char *text, int64_t number, int line)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(value->text);
	*value = (struct source_value){.text = copy, .number = number, .line = line};
	return 0;
}

static int source_init(struct conf_source *source, const char *name, size_t len, int line)
{
	char why[256];
	int r = 0;

	*source = (struct conf_source){.name = strndup(name, len), .line = line};
	if (!source->name)
		return -ENOMEM;
	for (int id = 0; id < SOURCE_ROWS && !r; id++) {
		int64_t number = 0;

		/* A default that must be given, "", is out of its range. */
		if (*rows[id].initial)
			r = conf_value_parse(&rows[id], rows[id].initial, &number, why, sizeof why);
		if (!r)
			r = value_store(&source->values[id], rows[id].initial, number, 0);
	}
	return r;
}

static bool is_name(const char *name, size_t len)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	for (size_t i = 0; i < len; i++)
		if (!memchr(allowed, name[i], sizeof allowed - 1))
			return false;
	return len > 0 && len <= NAME_MAX_BYTES;
}

static const struct conf_source *find(const struct conf *conf, const char *name, size_t len)
{
	for (size_t i = 0; i < conf->source_count; i++)
		if (strlen(conf->sources[i].name) == len &&
		    memcmp(conf->sources[i].name, name, len) == 0)
			return &conf->sources[i];
	return NULL;
}

int conf_source_add(struct conf *conf, const char *name, size_t len, struct conf_place place,
		    struct conf_error *error)
{
	const struct conf_source *twin = find(conf, name, len);
	struct conf_source *sources;
	int r;

	if (!is_name(name, len))
		return conf_fail(error,
				 "%s:%d: [source %.*s]: a name has 1 to %zu letters, digits, '.', "
				 "'_' and '-'",
				 place.file, place.line, len < 60 ? (int)len : 60, name,
				 NAME_MAX_BYTES);
	if (twin)
		return conf_fail(error, "%s:%d: [source %s] stands twice, first on line %d",
				 place.file, place.line, twin->name, twin->line);
	if (conf->source_count == SOURCES_MAX)
		return conf_fail(error, "%s:%d: there may be at most %zu sources", place.file,
				 place.line, SOURCES_MAX);
	sources = realloc(conf->sources, (conf->source_count + 1) * sizeof *sources);
	if (!sources)
		return -ENOMEM;
	conf->sources = sources;
	r = source_init(&sources[conf->source_count], name, len, place.line);
	if (r)
		source_fini(&sources[conf->source_count]);
	else
		conf->source_count++;
	return r;
}

/* What does not begin like a URL is a path. */
static const char *place_fault(const char *text)
{
	static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789+.-";
	size_t len = strspn(text, marks);

	for (const char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			return "must not hold control characters";
	if (len == 0 || strncmp(text + len, "://", 3) != 0)
		return NULL;
	if (!(len == 4 && strncasecmp(text, "http", len) == 0) &&
	    !(len == 5 && strncasecmp(text, "https", len) == 0))
		return "must be a file, or a URL of http:// or https://";
	/* An empty rest is found too: strchr() counts the NUL. */
	return strchr("/?#", text[len + 3]) ? "must name a host" : NULL;
}

int conf_source_set(struct conf *conf, enum conf_source_id id, const char *text,
		    struct conf_place place, struct conf_error *error)
{
	struct conf_source *source = &conf->sources[conf->source_count - 1];
	const char *fault = NULL;
	char why[256], shown[96];
	int64_t number = 0;

	if (conf_value_parse(&rows[id], text, &number, why, sizeof why))
		fault = why;
	else if (id == SOURCE_PLACE)
		fault = place_fault(text);
	if (!fault)
		return value_store(&source->values[id], text, number, place.line);
	secret_print(text, shown, sizeof shown);
	return conf_fail(error, "%s:%d: %s = %s: %s", place.file, place.line, rows[id].name, shown,
			 fault);
}

int conf_source_check(const struct conf *conf, const char *file, struct conf_error *error)
{
	for (size_t i = 0; i < conf->source_count; i++) {
		const struct conf_source *source = &conf->sources[i];

		if (!source->values[SOURCE_PLACE].line)
			return conf_fail(error,
					 "%s:%d: [source %s] has no place: set it to the file or "
					 "URL of the list",
					 file, source->line, source->name);
	}
	return 0;
}

int conf_source_line(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return conf->sources[index].values[id].line;
}

const char *conf_source_stored(const struct conf *conf, size_t index, enum conf_source_id id,
			       int64_t *ret_number)
{
	*ret_number = conf->sources[index].values[id].number;
	return conf->sources[index].values[id].text;
}

size_t conf_source_count(const struct conf *conf)
{
	return conf->source_count;
}

const char *conf_source_name(const struct conf *conf, size_t index)
{
	return conf->sources[index].name;
}

bool conf_source_is_set(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return conf_source_line(conf, index, id) != 0;
}

static const struct source_value *value_of(const struct conf *conf, size_t index,
					   enum conf_source_id id, unsigned kinds)
{
	if (index >= conf->source_count || !(kinds & 1U << rows[id].kind))
		abort();
	return &conf->sources[index].values[id];
}

const char *conf_source_text(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return value_of(conf, index, id,
			1 << KIND_TEXT | 1 << KIND_PATH | 1 << KIND_URL | 1 << KIND_ENUM)
	    ->text;
}

int64_t conf_source_ms(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return value_of(conf, index, id, 1 << KIND_MS)->number;
}

size_t conf_source_bytes(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return (size_t)value_of(conf, index, id, 1 << KIND_BYTES)->number;
}

bool conf_source_bool(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return value_of(conf, index, id, 1 << KIND_BOOL)->number != 0;
}

int conf_source_enum(const struct conf *conf, size_t index, enum conf_source_id id)
{
	return (int)value_of(conf, index, id, 1 << KIND_ENUM)->number;
}
