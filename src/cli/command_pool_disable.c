/* command_pool_disable.c - fairlead pool disable */
#include "cli/members.h"

int command_pool_disable(struct cli *cli)
{
	return members_change(cli, CHANGE_DISABLE, "disabled");
}
