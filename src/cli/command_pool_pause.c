/* command_pool_pause.c - fairlead pool pause */
#include "cli/members.h"

int command_pool_pause(struct cli *cli)
{
	return members_change(cli, CHANGE_PAUSE, "paused");
}
