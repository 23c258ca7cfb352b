/* lease_run.h - runs a command that uses the member of a lease, for as long as it runs. */
#ifndef FAIRLEAD_CLI_LEASE_RUN_H
#define FAIRLEAD_CLI_LEASE_RUN_H

#include "cli/session.h"
#include "pool/lease.h"

/* Runs the arguments of the command line with the proxy in their environment. Signals are passed on. Returns the
 * command's exit status as a shell would (128 + n for a signal), 127 for a command that is not there and 126 for one
 * that cannot be run, after a message. */
MUST_USE int lease_run(struct session *session, const struct lease *lease);

#endif
