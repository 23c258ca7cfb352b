/* greeting.h - what a node that has just come up says: where it serves and what to type. */
#ifndef FAIRLEAD_NODE_GREETING_H
#define FAIRLEAD_NODE_GREETING_H

#include "base/conf.h"
#include "node/bind.h"
#include "store/private.h"

/* A few lines on standard error; none with --quiet. `checks`: how they are made. */
void greeting_print(const struct conf *conf, const struct private_server *private,
		    const struct listeners *listeners, const char *checks);

#endif
