/* direct.c - no proxy at all: direct://[source-ip], egress because somebody added it by name. */
#include "dial/internal.h"

const struct dial_kind dial_direct = {.is_direct = true};
