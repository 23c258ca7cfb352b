/* pauses.h - pausing and resuming levels of a queue. */
#ifndef FAIRLEAD_CLI_PAUSES_H
#define FAIRLEAD_CLI_PAUSES_H

#include "cli/cli.h"

/* The levels of the arguments, or all when there is none. Returns an exit status. */
int pauses_change(struct cli *cli, bool is_paused);

#endif
