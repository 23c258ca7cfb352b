/* conf_print.c - the settings in force as a file, and all settings as Markdown. */
#include "base/conf.h"

#include <ctype.h>
#include <string.h>

#include "base/conf_source.h"
#include "base/conf_value.h"
#include "base/secret.h"

static void print_origin(const struct conf *conf, enum conf_id id, FILE *out)
{
	char name[64];

	switch (conf->values[id].level) {
	case FROM_DEFAULT:
		fputs("# default\n", out);
		return;
	case FROM_FILE:
		fprintf(out, "# from %s:%d\n", conf->file ? conf->file : "the file",
			conf->values[id].line);
		return;
	case FROM_ENVIRONMENT:
		fprintf(out, "# from %s\n", conf_env_name(id, name, sizeof name));
		return;
	case FROM_FLAG:
		fprintf(out, "# from %s\n", conf_flag_name(id, name, sizeof name));
		return;
	}
}

/* As it is, so that the file can be read back, unless there is something in it to hide. */
static void print_text(const char *text, FILE *out)
{
	char shown[4 * 4096 + 8];
	size_t start, len;
	bool clean = !secret_find(text, &start, &len);

	for (const char *c = text; *c && clean; c++)
		clean = !iscntrl((unsigned char)*c);
	if (!clean)
		secret_print(text, shown, sizeof shown);
	fputs(clean ? text : shown, out);
}

static void print_value(const struct conf_row *row, const char *value, int64_t number, FILE *out)
{
	char text[64];

	/* Behind a blank a semicolon begins a comment. */
	fprintf(out, "%s =%s", row->name, *value == ';' ? "" : " ");
	if (row->kind == KIND_BOOL) {
		fputs(number ? "true" : "false", out);
	} else if (row->kind == KIND_INT || row->kind == KIND_MS || row->kind == KIND_BYTES) {
		conf_value_print(row->kind, number, text, sizeof text);
		fputs(text, out);
	} else {
		print_text(value, out);
	}
	fputc('\n', out);
}

static void print_setting(const struct conf *conf, enum conf_id id, FILE *out)
{
	const struct conf_value *value = &conf->values[id];
	const struct conf_row *row = conf_row(id);

	print_origin(conf, id, out);
	if (value->count == 0)
		fprintf(out, "# %s =\n", row->name);
	for (size_t i = 0; i < value->count; i++)
		print_value(row, value->texts[i], value->number, out);
}

static void print_source(const struct conf *conf, size_t index, FILE *out)
{
	fprintf(out, "\n[source %s]\n", conf_source_name(conf, index));
	for (int id = 0; id < SOURCE_ROWS; id++) {
		int line = conf_source_line(conf, index, (enum conf_source_id)id);
		int64_t number;
		const char *text =
		    conf_source_stored(conf, index, (enum conf_source_id)id, &number);

		if (line)
			fprintf(out, "# from %s:%d\n", conf->file ? conf->file : "the file", line);
		else
			fputs("# default\n", out);
		print_value(conf_source_row((enum conf_source_id)id), text, number, out);
	}
}

void conf_print(const struct conf *conf, FILE *out)
{
	fputs("[fairlead]\n", out);
	for (int id = 0; id < CONF_ROWS; id++)
		if (conf_row((enum conf_id)id)->where == WHERE_SETTING)
			print_setting(conf, (enum conf_id)id, out);
	for (size_t i = 0; i < conf_source_count(conf); i++)
		print_source(conf, i, out);
}

static void markdown_row(enum conf_id id, FILE *out)
{
	const struct conf_row *row = conf_row(id);
	char flag[64], env[64], range[128];

	conf_flag_name(id, flag, sizeof flag);
	conf_env_name(id, env, sizeof env);
	conf_value_range(row, range, sizeof range);
	fprintf(out, "| `%s` | %s | ", flag, row->kind == KIND_LIST ? "may be repeated" : range);
	fprintf(out, *row->initial ? "`%s` | " : "%s| ", row->initial);
	fprintf(out, row->where == WHERE_FLAG ? "| " : "`%s` | ", env);
	fprintf(out, row->where == WHERE_SETTING ? "`%s` | " : "| ", row->name);
	fprintf(out, "%s |\n", row->help);
}

void conf_markdown(FILE *out)
{
	for (int group = 0; group < GROUP_COUNT; group++) {
		fprintf(out, "%s### %s\n\n", group ? "\n" : "",
			conf_heading((enum conf_group_index)group));
		fputs("| flag | values | default | environment | file | meaning |\n"
		      "|---|---|---|---|---|---|\n",
		      out);
		/* A row of several groups stands in its first. */
		for (int id = 0; id < CONF_ROWS; id++)
			if (__builtin_ctzll(conf_row((enum conf_id)id)->groups) == group)
				markdown_row((enum conf_id)id, out);
	}
}
