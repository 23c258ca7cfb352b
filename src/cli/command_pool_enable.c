/* command_pool_enable.c - fairlead pool enable */
#include "cli/members.h"

int command_pool_enable(struct cli *cli)
{
	return members_change(cli, CHANGE_ENABLE, "enabled");
}
