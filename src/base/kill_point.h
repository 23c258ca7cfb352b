/* kill_point.h - places at which a test lets the process die (docs/reliability.md).
 *
 * Compiled in with -Dkill_points=true only; else a name costs nothing. FAIRLEAD_KILL_POINT=NAME[:N] ends the process
 * by SIGKILL when it comes to NAME for the Nth time (1). A name is WHERE-WHAT, such as "acquire-answered", and stands
 * in one place. */
#ifndef FAIRLEAD_BASE_KILL_POINT_H
#define FAIRLEAD_BASE_KILL_POINT_H

#ifdef FAIRLEAD_KILL_POINTS
void kill_point(const char *name);
#define KILL_POINT(name) kill_point(name)
#else
#define KILL_POINT(name) ((void)0)
#endif

#endif
