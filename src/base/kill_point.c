/* kill_point.c - places at which a test lets the process die; compiled with -Dkill_points=true only. */
#include "base/kill_point.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void kill_point(const char *name)
{
	static unsigned long passes;
	const char *wanted = getenv("FAIRLEAD_KILL_POINT");
	size_t len = strlen(name);

	if (!wanted || strncmp(wanted, name, len) || (wanted[len] && wanted[len] != ':'))
		return;
	if (++passes >= (wanted[len] ? strtoul(wanted + len + 1, NULL, 10) : 1))
		raise(SIGKILL);
}
