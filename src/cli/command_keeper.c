/* command_keeper.c - fairlead keeper */
#include "cli/cli.h"
#include "node/alone.h"

int command_keeper(struct cli *cli)
{
	return alone_keeper(&cli->conf);
}
