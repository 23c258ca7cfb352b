/* claims.h - claims named on the command line, and one settlement of all of them. */
#ifndef FAIRLEAD_CLI_CLAIMS_H
#define FAIRLEAD_CLI_CLAIMS_H

#include "cli/cli.h"
#include "queue/settle.h"

/* Settles each ID:TOKEN of the arguments as `how` says, whose id, token and failures are filled in here; says of each
 * that it is `done` ("is done"). Returns an exit status: EXIT_FAILED when one was stale. */
int claims_settle(struct cli *cli, const struct settlement *how, const char *done);

#endif
