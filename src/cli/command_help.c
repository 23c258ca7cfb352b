/* command_help.c - fairlead help. */
#include <string.h>

#include "base/secret.h"
#include "cli/cli.h"
#include "cli/help.h"

static bool print_table(const char *topic)
{
	if (strcmp(topic, "settings") == 0)
		conf_markdown(stdout);
	else if (strcmp(topic, "reasons") == 0)
		help_reasons_markdown(stdout);
	else if (strcmp(topic, "commands") == 0)
		help_commands_markdown(stdout);
	else
		return false;
	return true;
}

int command_help(struct cli *cli)
{
	const char *first = cli->arg_count > 0 ? cli->args[0] : NULL;
	const char *second = cli->arg_count > 1 ? cli->args[1] : NULL;
	const struct command *command;
	char words[96], shown[96];

	if (!first) {
		help_overview(stdout);
		return EXIT_FINE;
	}
	if (!second && print_table(first))
		return EXIT_FINE;
	snprintf(words, sizeof words, "%s%s%s", first, second ? " " : "", second ? second : "");
	command = command_find(words);
	if (command) {
		help_command(stdout, command);
		return EXIT_FINE;
	}
	if (!second && command_is_group(first)) {
		help_group(stdout, first);
		return EXIT_FINE;
	}
	secret_print(words, shown, sizeof shown);
	return cli_usage(cli, "there is no command and no topic '%s'", shown);
}
