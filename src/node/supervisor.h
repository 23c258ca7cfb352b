/* supervisor.h - `fairlead up`: binds, forks, watches, restarts, stops. It has no loop and no connection of its own. */
#ifndef FAIRLEAD_NODE_SUPERVISOR_H
#define FAIRLEAD_NODE_SUPERVISOR_H

#include "base/conf.h"

/* Runs the node until it is told to stop. Returns an exit status. */
int supervisor_run(const struct conf *conf);

#endif
