/* origin.h - the demonstration's origin: answers each request with the address that called it. */
#ifndef FAIRLEAD_NODE_ORIGIN_H
#define FAIRLEAD_NODE_ORIGIN_H

#include <stdbool.h>

#include "base/loop.h"
#include "base/result.h"

struct origin;

/* Serves the listening descriptor, which stays the caller's. 0 or -ENOMEM. */
MUST_USE int origin_new(struct origin **ret, struct loop *loop, int fd);

/* Takes nobody new; who is there is answered. */
void origin_pause(struct origin *origin);
bool origin_is_idle(const struct origin *origin);

/* Ends; connections that are open are closed. Accepts NULL. */
void origin_free(struct origin *origin);

#endif
