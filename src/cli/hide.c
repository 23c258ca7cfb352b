/* hide.c - credentials that stand on the command line. */
#include "cli/hide.h"

#include <stdbool.h>
#include <string.h>

#include "base/secret.h"
#include "cli/options.h"

static bool hide_in(char *text)
{
	size_t start, len;

	if (!secret_find(text, &start, &len))
		return false;
	memset(text + start, '*', len);
	return true;
}

unsigned hide_secrets(int argc, char **argv)
{
	unsigned hidden = 0;

	/* What stands behind --exec is shown by the command itself, too. */
	for (int i = 1; i < argc && strcmp(argv[i], "--exec") != 0; i++) {
		bool is_option = strncmp(argv[i], "--", 2) == 0;
		char *equals = is_option ? strchr(argv[i], '=') : NULL;

		if ((is_option && !equals) || !hide_in(equals ? equals + 1 : argv[i]))
			continue;
		if (equals || options_takes_next(argv[i - 1]))
			hidden |= HIDDEN_IN_OPTION;
		else
			hidden |= HIDDEN_IN_ARGUMENT;
	}
	return hidden;
}
