/* command_pool_park.c - fairlead pool park */
#include "cli/members.h"

int command_pool_park(struct cli *cli)
{
	return members_change(cli, CHANGE_PAUSE, "parked");
}
