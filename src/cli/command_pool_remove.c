/* command_pool_remove.c - fairlead pool remove */
#include "cli/members.h"

int command_pool_remove(struct cli *cli)
{
	return members_change(cli, CHANGE_REMOVE, "removed");
}
