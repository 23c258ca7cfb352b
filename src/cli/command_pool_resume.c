/* command_pool_resume.c - fairlead pool resume */
#include "cli/members.h"

int command_pool_resume(struct cli *cli)
{
	return members_change(cli, CHANGE_RESUME, "resumed");
}
