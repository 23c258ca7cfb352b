/* command_queue_extend.c - fairlead queue extend */
#include "cli/claims.h"

int command_queue_extend(struct cli *cli)
{
	return claims_settle(cli, &(struct settlement){.verb = SETTLE_EXTEND}, "is extended");
}
