/* conf_file.c - settings from a file of "name = value" lines, read by inih.
 *
 * inih calls our reader once a line, so that the reader's count is the line of whatever the
 * handler gets. */
#include "base/conf.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	FILE *stream;
	const char *path;
	struct conf *conf;
	struct conf_error *error;
	int line;
	int first_line[CONF_ROWS]; /* where a setting stands, 0 = nowhere yet */
	int result;                /* the first failure ends the reading */
};

static int fail_at_line(struct reader *reader, const char *what)
{
	reader->result = conf_fail(reader->error, "%s:%d: %s", reader->path, reader->line, what);
	return reader->result;
}

static void check_section(struct reader *reader, const char *name, size_t len)
{
	char what[96];

	if (len == 0 || (len == strlen("fairlead") && memcmp(name, "fairlead", len) == 0))
		return;
	snprintf(what, sizeof what, "unknown section [%.*s]; the only one is [fairlead]",
		 len < 40 ? (int)len : 40, name);
	fail_at_line(reader, what);
}

/* A line that does not fit into inih's buffer would come in two pieces, the second read as a line
 * of its own. */
static void check_line(struct reader *reader, const char *line, size_t size)
{
	size_t len = strlen(line);
	int next;

	if (len && line[len - 1] == '\n')
		return;
	if (len + 1 < size && !feof(reader->stream)) {
		fail_at_line(reader, "there is a NUL byte in this line");
		return;
	}
	next = getc(reader->stream);
	if (next == EOF)
		return;
	fail_at_line(reader, "the line is too long; a list can go on in indented lines below");
}

static char *read_line(char *buffer, int size, void *arg)
{
	struct reader *reader = arg;

	if (reader->result || !fgets(buffer, size, reader->stream))
		return NULL;
	reader->line++;
	check_line(reader, buffer, (size_t)size);
	if (!reader->result && buffer[0] == '[')
		check_section(reader, buffer + 1, strcspn(buffer + 1, "]\r\n"));
	return reader->result ? NULL : buffer;
}

static int set_in_file(struct reader *reader, enum conf_id id, const char *value)
{
	const struct conf_row *row = conf_row(id);
	char what[128];

	if (row->where != WHERE_SETTING) {
		snprintf(what, sizeof what, "%s cannot be set in a file", row->name);
		return fail_at_line(reader, what);
	}
	if (reader->first_line[id] && row->kind != KIND_LIST) {
		snprintf(what, sizeof what, "%s is set twice, first on line %d", row->name,
			 reader->first_line[id]);
		return fail_at_line(reader, what);
	}
	reader->first_line[id] = reader->line;
	return conf_set(
	    reader->conf, id, value,
	    (struct conf_place){.level = FROM_FILE, .file = reader->path, .line = reader->line},
	    reader->error);
}

/* inih wants 1 for fine. */
static int take_line(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *reader = arg;
	char what[96];
	int id;

	if (reader->result)
		return 0;
	check_section(reader, section, strlen(section));
	if (reader->result)
		return 0;
	id = conf_find(name);
	if (id >= 0) {
		reader->result = set_in_file(reader, (enum conf_id)id, value);
	} else {
		snprintf(what, sizeof what, "unknown setting '%.60s'", name);
		fail_at_line(reader, what);
	}
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
	return 0;
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
