/* command.h - the rows of tables/command.def. */
#ifndef FAIRLEAD_CLI_COMMAND_H
#define FAIRLEAD_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

struct command {
	const char *words;           /* "pool add" */
	int (*run)(struct cli *cli); /* returns an enum exit_status */
	uint64_t groups;             /* bits of enum conf_group */
	const char *synopsis;        /* of the arguments */
	int min_args, max_args;      /* max -1: any number */
	const char *summary;
	const char *examples;
};

#define COMMAND(words, function, groups, synopsis, min, max, summary, examples)                    \
	int function(struct cli *cli);
#include "tables/command.def"
#undef COMMAND

/* The row at `index`, NULL behind the last. */
const struct command *command_at(size_t index);

/* The command of exactly these words, or NULL. */
const struct command *command_find(const char *words);

/* Do several commands start with this word ("pool")? */
bool command_is_group(const char *word);
bool command_in_group(const struct command *command, const char *word);

#endif
