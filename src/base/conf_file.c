/* conf_file.c - settings from a file of "name = value" lines, read by inih.
 *
 * inih calls our reader once a line, so that the reader's count is the line of whatever the
 * handler gets, and its section the one in force: inih cuts the names of sections, and tells
 * nothing of those that stay empty. */
#include "base/conf.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_source.h"

#define BLANKS " \t\v\f\r\n"
#define LINE_SIZE 8192 /* any text of 4,096 bytes has room */

static const char too_long[] = "the line is too long; a list can go on in indented lines below";

struct reader {
	FILE *stream;
	const char *path;
	struct conf *conf;
	struct conf_error *error;
	int line;
	int first_line[CONF_ROWS]; /* where a setting stands, 0 = nowhere yet */
	bool is_source;            /* the section in force is that of the last source */
	bool has_setting;          /* it has one, which an indented line goes on with */
	bool is_indented;
	char text[LINE_SIZE];   /* the line */
	const char *long_value; /* in `text`: a value that inih would spoil, else NULL */
	int result;             /* the first failure ends the reading */
};

static int fail_at_line(struct reader *reader, const char *what)
{
	reader->result = conf_fail(reader->error, "%s:%d: %s", reader->path, reader->line, what);
	return reader->result;
}

static struct conf_place place_of(const struct reader *reader)
{
	return (struct conf_place){.level = FROM_FILE, .file = reader->path, .line = reader->line};
}

static void open_source(struct reader *reader, const char *name, size_t len)
{
	while (len && isblank((unsigned char)*name))
		name++, len--;
	while (len && isblank((unsigned char)name[len - 1]))
		len--;
	reader->is_source = true;
	reader->result = conf_source_add(reader->conf, name, len, place_of(reader), reader->error);
}

/* `name` is what stands behind the bracket. */
static void open_section(struct reader *reader, const char *name)
{
	static const char source[] = "source";
	size_t len = strcspn(name, "]\r\n");
	size_t word = strcspn(name, " \t]\r\n");
	char what[128];

	reader->is_source = false;
	reader->has_setting = false;
	if (name[len] != ']') {
		fail_at_line(reader, "the ']' of this section is missing");
	} else if (word == sizeof source - 1 && memcmp(name, source, word) == 0) {
		open_source(reader, name + word, len - word);
	} else if (len && !(len == strlen("fairlead") && memcmp(name, "fairlead", len) == 0)) {
		snprintf(what, sizeof what,
			 "unknown section [%.*s]; there are [fairlead] and [source NAME]",
			 len < 40 ? (int)len : 40, name);
		fail_at_line(reader, what);
	}
}

/* An indented line goes on with the setting above it; inih would take it for a section where there
 * is none. */
static void check_start(struct reader *reader, const char *line)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf"; /* inih skips it too */
	size_t indent;

	if (reader->line == 1 && strncmp(line, byte_order_mark, 3) == 0)
		line += 3;
	indent = strspn(line, BLANKS);
	reader->is_indented = indent > 0 && line[indent];
	if (line[indent] != '[')
		return;
	if (!indent)
		open_section(reader, line + 1);
	else if (!reader->has_setting)
		fail_at_line(reader, "a section must start at the beginning of its line");
}

static void check_line(struct reader *reader)
{
	size_t len = strlen(reader->text);

	if (len && reader->text[len - 1] == '\n')
		return;
	if (len + 1 < sizeof reader->text && !feof(reader->stream))
		fail_at_line(reader, "there is a NUL byte in this line");
	else if (getc(reader->stream) != EOF)
		fail_at_line(reader, too_long);
}

/* Without the blanks around it and the comment behind it, as inih would cut them. */
static char *trim(char *value)
{
	size_t len;

	for (char *c = value; *c; c++)
		if (isspace((unsigned char)c[0]) && c[1] == ';')
			*c = '\0';
	value += strspn(value, BLANKS);
	len = strlen(value);
	while (len && isspace((unsigned char)value[len - 1]))
		len--;
	value[len] = '\0';
	return value;
}

static bool goes_on(const struct reader *reader)
{
	return reader->is_indented && reader->has_setting;
}

/* The lines of Debian's inih end at 200 bytes, and the rest would be read as a line of its own; and
 * it leaves the comments behind lines that go on. Such a value waits here, and inih gets a mark in
 * its place. */
static void shorten(struct reader *reader, char *buffer, size_t size)
{
	char *value = reader->text + strspn(reader->text, BLANKS);
	size_t name;

	if (*value == '#' || *value == ';') {
		snprintf(buffer, size, "#\n");
		return;
	}
	if (!goes_on(reader))
		value += strcspn(value, "=:") + 1;
	name = (size_t)(value - reader->text);
	if (name + sizeof "?\n" > size) {
		fail_at_line(reader, too_long);
		return;
	}
	snprintf(buffer, size, "%.*s?\n", (int)name, reader->text);
	reader->long_value = trim(value);
}

static char *read_line(char *buffer, int size, void *arg)
{
	struct reader *reader = arg;

	if (reader->result || !fgets(reader->text, sizeof reader->text, reader->stream))
		return NULL;
	reader->line++;
	reader->long_value = NULL;
	check_line(reader);
	if (!reader->result)
		check_start(reader, reader->text);
	if (reader->result)
		return NULL;
	if (strlen(reader->text) < (size_t)size && !goes_on(reader))
		memcpy(buffer, reader->text, strlen(reader->text) + 1);
	else
		shorten(reader, buffer, (size_t)size);
	return reader->result ? NULL : buffer;
}

/* Who indents the settings of a section has them taken for more lines of the first. */
static int fail_twice(struct reader *reader, const char *name, int first_line)
{
	char what[128];

	snprintf(what, sizeof what, "%s is set twice, first on line %d%s", name, first_line,
		 reader->is_indented ? "; an indented line goes on with the setting above it" : "");
	return fail_at_line(reader, what);
}

static int set_in_file(struct reader *reader, enum conf_id id, const char *value)
{
	const struct conf_row *row = conf_row(id);
	char what[128];

	if (row->where != WHERE_SETTING) {
		snprintf(what, sizeof what, "%s cannot be set in a file", row->name);
		return fail_at_line(reader, what);
	}
	if (reader->first_line[id] && row->kind != KIND_LIST)
		return fail_twice(reader, row->name, reader->first_line[id]);
	reader->first_line[id] = reader->line;
	return conf_set(reader->conf, id, value, place_of(reader), reader->error);
}

static int set_in_source(struct reader *reader, enum conf_source_id id, const char *value)
{
	int line = conf_source_line(reader->conf, conf_source_count(reader->conf) - 1, id);

	if (line)
		return fail_twice(reader, conf_source_row(id)->name, line);
	return conf_source_set(reader->conf, id, value, place_of(reader), reader->error);
}

/* Says where the name would be known. */
static int fail_unknown(struct reader *reader, const char *name)
{
	char what[160];
	int elsewhere = reader->is_source ? conf_find(name) : conf_source_find(name);
	const char *hint = "";

	if (elsewhere >= 0)
		hint = reader->is_source ? "; it belongs under [fairlead]"
					 : "; it belongs under a [source NAME]";
	snprintf(what, sizeof what, "unknown setting '%.60s'%s%s", name,
		 reader->is_source ? " of a source" : "", hint);
	return fail_at_line(reader, what);
}

/* inih wants 1 for fine. */
static int take_line(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *reader = arg;
	int id = reader->is_source ? conf_source_find(name) : conf_find(name);

	(void)section;
	if (reader->result)
		return 0;
	reader->has_setting = true;
	if (reader->long_value)
		value = reader->long_value;
	if (id < 0)
		reader->result = fail_unknown(reader, name);
	else if (reader->is_source)
		reader->result = set_in_source(reader, (enum conf_source_id)id, value);
	else
		reader->result = set_in_file(reader, (enum conf_id)id, value);
	return reader->result == 0;
}

static int read_all(struct reader *reader)
{
	int bad_line = ini_parse_stream(read_line, reader, take_line, reader);

	if (reader->result)
		return reader->result;
	if (ferror(reader->stream)) {
		int r = errno ? -errno : -EIO;

		(void)!conf_fail(reader->error, "cannot read %s: %s", reader->path, strerror(-r));
		return r;
	}
	if (bad_line < 0)
		return -ENOMEM;
	if (bad_line > 0)
		return conf_fail(reader->error, "%s:%d: not a line of the form 'name = value'",
				 reader->path, bad_line);
	return conf_source_check(reader->conf, reader->path, reader->error);
}

int conf_load_file(struct conf *conf, const char *path, struct conf_error *error)
{
	struct reader reader = {.path = path, .conf = conf, .error = error};
	int r;

	reader.stream = fopen(path, "re");
	if (!reader.stream) {
		r = -errno;
		(void)!conf_fail(error, "cannot read %s: %s", path, strerror(-r));
		return r;
	}
	r = read_all(&reader);
	fclose(reader.stream);
	if (r)
		return r;
	free(conf->file);
	conf->file = strdup(path);
	return conf->file ? 0 : -ENOMEM;
}
