/* help.h - what --help and `fairlead help` print, from the tables. */
#ifndef FAIRLEAD_CLI_HELP_H
#define FAIRLEAD_CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

/* All commands. */
void help_overview(FILE *out);

/* The commands that start with `word`. */
void help_group(FILE *out, const char *word);

/* One command: synopsis, options, examples, exit status. */
void help_command(FILE *out, const struct command *command);

/* The tables of the manual. */
void help_commands_markdown(FILE *out);
void help_reasons_markdown(FILE *out);

#endif
