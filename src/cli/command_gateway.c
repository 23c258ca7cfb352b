/* command_gateway.c - fairlead gateway */
#include "cli/cli.h"
#include "node/alone.h"

int command_gateway(struct cli *cli)
{
	return alone_gateway(&cli->conf);
}
