/* command.c - the rows of tables/command.def as data. */
#include "cli/command.h"

#include <string.h>

#include "base/conf.h"

static const struct command rows[] = {
#define COMMAND(words, function, groups, synopsis, min, max, summary, examples)                    \
	{words, function, (groups) | IN_ALL, synopsis, min, max, summary, examples},
#include "tables/command.def"
#undef COMMAND
};

const struct command *command_at(size_t index)
{
	return index < sizeof rows / sizeof rows[0] ? &rows[index] : NULL;
}

const struct command *command_find(const char *words)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].words, words) == 0)
			return &rows[i];
	return NULL;
}

bool command_in_group(const struct command *command, const char *word)
{
	size_t len = strlen(word);

	return strncmp(command->words, word, len) == 0 && command->words[len] == ' ';
}

bool command_is_group(const char *word)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (command_in_group(&rows[i], word))
			return true;
	return false;
}
