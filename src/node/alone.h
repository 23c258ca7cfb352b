/* alone.h - a role as a process of its own, without a supervisor. */
#ifndef FAIRLEAD_NODE_ALONE_H
#define FAIRLEAD_NODE_ALONE_H

#include "base/conf.h"

/* Each runs until it is told to stop and returns an exit status; what is wrong was said on standard error. */
int alone_gateway(const struct conf *conf);
int alone_keeper(const struct conf *conf);
int alone_judge(const struct conf *conf);
int alone_work_fetch(const struct conf *conf);
int alone_work_exec(const struct conf *conf, char *const *command);

#endif
