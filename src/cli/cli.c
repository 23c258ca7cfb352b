/* cli.c - how commands speak to the user. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_MAX ((size_t)2048)

enum tail { TAIL_NONE, TAIL_HELP };

/* One call of stdio for the line, so that lines of several processes do not mix. */
__attribute__((format(printf, 2, 0))) static void say(const struct cli *cli, const char *format,
						      va_list args, enum tail tail)
{
	const char *words = cli->command ? cli->command->words : cli->group ? cli->group : "";
	const char *space = *words ? " " : "";
	char text[MESSAGE_MAX], see[96] = "";

	vsnprintf(text, sizeof text, format, args);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (tail == TAIL_HELP)
		snprintf(see, sizeof see, "; see 'fairlead%s%s --help'", space, words);
	fprintf(stderr, "fairlead%s%s: %s%s\n", space, words, text, see);
}

void cli_error(const struct cli *cli, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(cli, format, args, TAIL_NONE);
	va_end(args);
}

void cli_note(const struct cli *cli, const char *format, ...)
{
	va_list args;

	if (conf_bool(&cli->conf, CONF_QUIET))
		return;
	va_start(args, format);
	say(cli, format, args, TAIL_NONE);
	va_end(args);
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(cli, format, args, TAIL_HELP);
	va_end(args);
	return EXIT_USAGE;
}
