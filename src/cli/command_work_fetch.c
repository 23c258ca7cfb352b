/* command_work_fetch.c - fairlead work fetch */
#include "cli/cli.h"
#include "cli/queue_session.h"
#include "node/alone.h"

int command_work_fetch(struct cli *cli)
{
	int r = queue_session_judge(cli);

	return r ? r : alone_work_fetch(&cli->conf);
}
