/* cli.h - what a command is given: settings, arguments, and how to speak to the user.
 *
 * Results go to standard output, messages to standard error, one line each. main() owns the
 * struct; what it points to lives until the command has returned. */
#ifndef FAIRLEAD_CLI_CLI_H
#define FAIRLEAD_CLI_CLI_H

#include <stdbool.h>

#include "base/conf.h"
#include "cli/command.h"

enum exit_status {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOTHING = 3, /* nothing available: empty pool, empty queue */
};

struct cli {
	struct conf conf;
	const struct command *command; /* NULL until it is known */
	const char *group; /* "pool" when only a group's word was given, "" for no word at all */
	const char **args; /* behind the command's words, copied from argv */
	int arg_count;
	char **copies; /* owned: all arguments, words included */
	int copy_count;
};

/* "fairlead pool add: ..." on standard error. Control bytes are shown as '?', so that a line
 * stays a line. The text must be without secrets: secret_print(), endpoint_print(..,
 * HIDE_SECRET). */
void cli_error(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for what is good to know; silent with --quiet. */
void cli_note(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For a wrong argument that only the command can judge: cli_error() with where to find help
 * behind it. Returns EXIT_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
