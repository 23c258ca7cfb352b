/* command_pool_restore.c - fairlead pool restore */
#include "cli/members.h"

int command_pool_restore(struct cli *cli)
{
	return members_change(cli, CHANGE_RESTORE, "restored");
}
