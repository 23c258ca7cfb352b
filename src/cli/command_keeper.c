/* command_keeper.c - fairlead keeper */
#include <errno.h>

#include "cli/cli.h"
#include "node/alone.h"
#include "node/checks.h"
#include "node/sources.h"

int command_keeper(struct cli *cli)
{
	char error[512];
	int r = sources_check(&cli->conf, error, sizeof error);

	if (!r)
		r = checks_check(&cli->conf, error, sizeof error);
	if (!r)
		return alone_keeper(&cli->conf);
	cli_error(cli, "%s", error);
	return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}
