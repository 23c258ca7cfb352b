/* conf.h - settings: names, values, and where each value came from.
 *
 * A row of tables/config.def is a setting. Its value comes from a flag, else the environment,
 * else a file, else its default, in whatever order these are read: a value from a lower place
 * never replaces one from a higher. What a name means is the business of whoever asks for it. */
#ifndef FAIRLEAD_BASE_CONF_H
#define FAIRLEAD_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/result.h"

enum conf_group_index {
#define GROUP(name, heading) GROUP_##name,
#include "tables/config.def"
	GROUP_COUNT
};

/* The bits of a row's groups: more than an int has (GNU C). */
enum conf_group {
#define GROUP(name, heading) IN_##name = UINT64_C(1) << GROUP_##name,
#include "tables/config.def"
};

enum conf_id {
#define CONF(name, text, kind, initial, min, max, groups, where, placeholder, help) CONF_##name,
#include "tables/config.def"
	CONF_ROWS
};

/* The settings of a section [source NAME]: a row of tables/source.def each. */
enum conf_source_id {
#define SOURCE(name, text, kind, initial, min, max, placeholder, help) SOURCE_##name,
#include "tables/source.def"
	SOURCE_ROWS
};

enum conf_kind {
	KIND_TEXT,
	KIND_PATH,
	KIND_URL,
	KIND_INT,
	KIND_MS,
	KIND_BYTES,
	KIND_BOOL,
	KIND_ENUM,
	KIND_LIST
};
enum conf_where { WHERE_FLAG, WHERE_ENVIRONMENT, WHERE_SETTING };
enum conf_level { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

/* One row of tables/config.def, or of tables/source.def (groups 0, WHERE_SETTING). */
struct conf_row {
	const char *name; /* with underscores */
	enum conf_kind kind;
	const char *initial;
	int64_t min, max;
	uint64_t groups;
	enum conf_where where;
	const char *placeholder;
	const char *help;
};

struct conf_value {
	enum conf_level level;
	int line; /* in the file */
	char **texts;
	size_t count; /* 0 or 1 unless the row is a LIST */
	int64_t number;
};

struct conf {
	struct conf_value values[CONF_ROWS];
	char *file; /* NULL: none was read */
	struct conf_source *sources;
	size_t source_count;
};

/* Where a value stands. `file` and `line` are looked at for FROM_FILE only. */
struct conf_place {
	enum conf_level level;
	const char *file;
	int line;
};

/* One line for the user, without secrets, without a line feed. */
struct conf_error {
	char text[512];
};

/* Fills `error` and returns -EINVAL. Control bytes become '?'. */
MUST_USE int conf_fail(struct conf_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Every setting at its default. 0 or -ENOMEM; conf_fini() is safe in both cases, and on a zeroed
 * struct. */
MUST_USE int conf_init(struct conf *conf);
void conf_fini(struct conf *conf);

/* Takes a value as text. A LIST gets one more element from a flag; from anywhere else commas
 * separate elements. The value is judged also when a higher place has set another. 0, -EINVAL
 * (and `error`), -ENOMEM. */
MUST_USE int conf_set(struct conf *conf, enum conf_id id, const char *value,
		      struct conf_place place, struct conf_error *error);

/* Reads FAIRLEAD_* from the environment; an empty variable is as good as none. Results as
 * conf_set(). */
MUST_USE int conf_load_env(struct conf *conf, struct conf_error *error);

/* Reads a file of "name = value" lines: settings, and below each [source NAME] those of a source.
 * Results as conf_set(), or another -errno with `error`: not readable. */
MUST_USE int conf_load_file(struct conf *conf, const char *path, struct conf_error *error);

/* The settings as they would be now: the flags of `old`, the environment and the file read anew.
 * Results as conf_load_file(), with `error` written on each but -ENOMEM; `ret` is for conf_fini(). */
MUST_USE int conf_reload(struct conf *ret, const struct conf *old, struct conf_error *error);

/* Has the setting the same value in both, wherever it came from? */
bool conf_is_same(const struct conf *conf, const struct conf *other, enum conf_id id);

/* Takes over the value that `old` has, and its origin. 0 or -ENOMEM. */
MUST_USE int conf_keep(struct conf *conf, const struct conf *old, enum conf_id id);

const struct conf_row *conf_row(enum conf_id id);
const char *conf_heading(enum conf_group_index group);

/* The setting of that name ("connect_timeout"), or -1. */
int conf_find(const char *name);

/* "--connect-timeout" and "FAIRLEAD_CONNECT_TIMEOUT", into `buffer` (64 bytes suffice), which is
 * returned. */
const char *conf_flag_name(enum conf_id id, char *buffer, size_t size);
const char *conf_env_name(enum conf_id id, char *buffer, size_t size);

/* Was it set by anything but its default? And by what? */
bool conf_is_set(const struct conf *conf, enum conf_id id);
enum conf_level conf_level(const struct conf *conf, enum conf_id id);

/* The values. Asking for another kind than the row's is a programming error and aborts.
 * conf_text() is for TEXT, PATH, URL and ENUM, and "" when there is none; conf_enum() is the
 * index of the choice. */
const char *conf_text(const struct conf *conf, enum conf_id id);
int64_t conf_int(const struct conf *conf, enum conf_id id);
int64_t conf_ms(const struct conf *conf, enum conf_id id);
size_t conf_bytes(const struct conf *conf, enum conf_id id);
bool conf_bool(const struct conf *conf, enum conf_id id);
int conf_enum(const struct conf *conf, enum conf_id id);
size_t conf_count(const struct conf *conf, enum conf_id id);
const char *conf_at(const struct conf *conf, enum conf_id id, size_t index);

/* The sections [source NAME], in the order of the file. Names are unique. */
size_t conf_source_count(const struct conf *conf);
const char *conf_source_name(const struct conf *conf, size_t index);

/* Does its section set it? */
bool conf_source_is_set(const struct conf *conf, size_t index, enum conf_source_id id);

/* Values of a source, as those above. */
const char *conf_source_text(const struct conf *conf, size_t index, enum conf_source_id id);
int64_t conf_source_ms(const struct conf *conf, size_t index, enum conf_source_id id);
size_t conf_source_bytes(const struct conf *conf, size_t index, enum conf_source_id id);
bool conf_source_bool(const struct conf *conf, size_t index, enum conf_source_id id);
int conf_source_enum(const struct conf *conf, size_t index, enum conf_source_id id);

/* The settings in force as a file that conf_load_file() reads, each below a comment with its
 * origin. Credentials are masked. */
void conf_print(const struct conf *conf, FILE *out);

/* The settings and flags as Markdown, a table for each group. */
void conf_markdown(FILE *out);

#endif
