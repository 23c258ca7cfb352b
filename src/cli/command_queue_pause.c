/* command_queue_pause.c - fairlead queue pause */
#include "cli/pauses.h"

int command_queue_pause(struct cli *cli)
{
	return pauses_change(cli, true);
}
