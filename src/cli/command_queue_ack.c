/* command_queue_ack.c - fairlead queue ack */
#include "cli/claims.h"

int command_queue_ack(struct cli *cli)
{
	return claims_settle(cli, &(struct settlement){.verb = SETTLE_ACK}, "is done");
}
