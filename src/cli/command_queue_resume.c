/* command_queue_resume.c - fairlead queue resume */
#include "cli/pauses.h"

int command_queue_resume(struct cli *cli)
{
	return pauses_change(cli, false);
}
