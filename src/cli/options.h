/* options.h - the command line: words, options, arguments.
 *
 * Options stand before or behind the words of a command. "--" ends them, and so does --exec, behind
 * which another program's command line begins; "-" alone is an argument. */
#ifndef FAIRLEAD_CLI_OPTIONS_H
#define FAIRLEAD_CLI_OPTIONS_H

#include "cli/cli.h"

/* Reads argv into `cli`, whose conf has been initialised: the command or the group, its arguments
 * (copied), and the flags as settings. With --help or --version nothing but that and the command
 * is judged. Returns 0, -EINVAL with `error` (cli->command is set as far as it is known), or
 * -ENOMEM. */
MUST_USE int options_parse(struct cli *cli, int argc, char **argv, struct conf_error *error);

/* "--redis", as opposed to "--json" and "--redis=URL": is the argument behind it its value? */
bool options_takes_next(const char *typed);

/* "--tries", as the command calls it: of `queue push`, push_id is --id. `buffer`, as conf_flag_name(). */
const char *options_flag_name(const struct command *command, enum conf_id id, char *buffer,
			      size_t size);

void options_fini(struct cli *cli);

#endif
