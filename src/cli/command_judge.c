/* command_judge.c - fairlead judge */
#include "cli/cli.h"
#include "node/alone.h"

int command_judge(struct cli *cli)
{
	return alone_judge(&cli->conf);
}
