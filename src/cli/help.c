/* help.c - what --help and `fairlead help` print, from the tables. */
#include "cli/help.h"

#include <string.h>

#include "base/conf.h"
#include "base/conf_value.h"
#include "base/result.h"
#include "cli/options.h"

#define WIDTH ((size_t)79)

/* Words of `text` in lines of at most WIDTH columns, each behind `indent` spaces. The cursor
 * stands at column 0. */
static void print_wrapped(FILE *out, size_t indent, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		column +=
		    (size_t)fprintf(out, "%*s%.*s", column ? 1 : (int)indent, "", (int)len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_exit_status(FILE *out)
{
	fputs("\nExit status:\n"
	      "  0  fine\n"
	      "  1  failed\n"
	      "  2  wrong usage\n"
	      "  3  nothing available: an empty pool, an empty queue\n",
	      out);
}

static void print_commands(FILE *out, const char *word)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		if (!word || command_in_group(command, word))
			fprintf(out, "  %-15s %s\n", command->words, command->summary);
}

void help_overview(FILE *out)
{
	fputs("Usage: fairlead COMMAND [OPTION...] [ARGUMENT...]\n\n"
	      "Shares a pool of proxies evenly: whoever asks gets the eligible one with the\n"
	      "fewest allocations; and a queue of tasks by priority, so that none is "
	      "lost.\n\nCommands:\n",
	      out);
	print_commands(out, NULL);
	fputs("\n'fairlead COMMAND --help' tells the options of a command,\n"
	      "'fairlead help settings' all settings.\n",
	      out);
	print_exit_status(out);
}

void help_group(FILE *out, const char *word)
{
	fprintf(out, "Usage: fairlead %s COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n", word);
	print_commands(out, word);
	fprintf(out, "\n'fairlead %s COMMAND --help' tells the options of a command.\n", word);
}

static const char *letter_of(enum conf_id id)
{
	if (id == CONF_HELP)
		return "-h, ";
	if (id == CONF_VERSION)
		return "-V, ";
	if (id == CONF_QUIET)
		return "-q, ";
	if (id == CONF_OUTPUT)
		return "-o, ";
	return id == CONF_VERBOSE ? "-v, " : "";
}

/* "  -q, --quiet", "  --tries N", "  --[no-]access-log" */
static void print_synopsis(FILE *out, const struct command *command, enum conf_id id)
{
	const struct conf_row *row = conf_row(id);
	char flag[64];

	options_flag_name(command, id, flag, sizeof flag);
	if (row->kind != KIND_BOOL)
		fprintf(out, "  %s%s %s\n", letter_of(id), flag,
			row->kind == KIND_ENUM ? "WORD" : row->placeholder);
	else if (strcmp(row->initial, "true") == 0)
		fprintf(out, "  --[no-]%s\n", flag + 2);
	else
		fprintf(out, "  %s%s\n", letter_of(id), flag);
}

static void print_option(FILE *out, const struct command *command, enum conf_id id)
{
	const struct conf_row *row = conf_row(id);
	bool has_default = *row->initial && strcmp(row->initial, "false") != 0;
	char env[64], range[128] = "", text[768];
	size_t used;

	print_synopsis(out, command, id);
	if (row->kind != KIND_BOOL)
		conf_value_range(row, range, sizeof range);
	used = (size_t)snprintf(text, sizeof text, "%s.", row->help);
	if (row->kind == KIND_LIST)
		used += (size_t)snprintf(text + used, sizeof text - used, " May be repeated.");
	if (*range)
		used += (size_t)snprintf(text + used, sizeof text - used, " Values: %s.", range);
	if (has_default)
		used += (size_t)snprintf(text + used, sizeof text - used, " Default: %s.",
					 row->initial);
	if (row->where != WHERE_FLAG)
		snprintf(text + used, sizeof text - used, " [%s]",
			 conf_env_name(id, env, sizeof env));
	print_wrapped(out, 8, text);
}

/* A row of several groups stands in the first that the command takes. */
static bool stands_in(const struct conf_row *row, uint64_t accepted, int group)
{
	uint64_t common = row->groups & accepted;

	return common && __builtin_ctzll(common) == group;
}

static void print_options(FILE *out, const struct command *command)
{
	for (int group = 0; group < GROUP_COUNT; group++) {
		if (!(command->groups & UINT64_C(1) << group))
			continue;
		fprintf(out, "\n%s:\n", conf_heading((enum conf_group_index)group));
		for (int id = 0; id < CONF_ROWS; id++)
			if (stands_in(conf_row((enum conf_id)id), command->groups, group))
				print_option(out, command, (enum conf_id)id);
	}
}

static void print_examples(FILE *out, const char *examples)
{
	fputs("\nExamples:\n", out);
	while (*examples) {
		size_t len = strcspn(examples, "\n");

		fprintf(out, "  %.*s\n", (int)len, examples);
		examples += len + 1;
	}
}

void help_command(FILE *out, const struct command *command)
{
	fprintf(out, "Usage: fairlead %s [OPTION...]%s%s\n\n", command->words,
		*command->synopsis ? " " : "", command->synopsis);
	fprintf(out, "%s.\n", command->summary);
	print_options(out, command);
	print_examples(out, command->examples);
	print_exit_status(out);
}

void help_commands_markdown(FILE *out)
{
	const struct command *command;

	fputs("| command | what it does |\n|---|---|\n", out);
	for (size_t i = 0; (command = command_at(i)); i++) {
		fprintf(out, "| `fairlead %s%s", command->words, *command->synopsis ? " " : "");
		for (const char *c = command->synopsis; *c; c++)
			fprintf(out, *c == '|' ? "\\%c" : "%c", *c);
		fprintf(out, "` | %s |\n", command->summary);
	}
}

void help_reasons_markdown(FILE *out)
{
	fputs("| reason | HTTP status | Proxy-Status error | SOCKS reply | whose fault | health |\n"
	      "|---|---|---|---|---|---|\n",
	      out);
	for (int reason = 0; reason < REASON_COUNT; reason++) {
		const struct reason_row *row = reason_row(reason);

		fprintf(out, "| `%s` | ", row->word);
		fprintf(out, row->status ? "%d | " : "| ", row->status);
		fprintf(out, *row->error ? "`%s` | " : "%s| ", row->error);
		fprintf(out, "%d | %s | %s |\n", row->socks, fault_word(row->fault),
			health_word(row->health));
	}
}
