/* clock.c - the time, as a variable. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t frozen_ms = -1;

static int64_t now_us(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_us(void)
{
	return frozen_ms >= 0 ? frozen_ms * 1000 : now_us(CLOCK_MONOTONIC);
}

int64_t clock_ms(void)
{
	return clock_us() / 1000;
}

int64_t clock_wall_ms(void)
{
	return now_us(CLOCK_REALTIME) / 1000;
}

void clock_set(int64_t ms)
{
	frozen_ms = ms;
}

void clock_format(int64_t wall_ms, char *buffer, size_t size)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm utc;
	size_t used;

	gmtime_r(&seconds, &utc);
	used = strftime(buffer, size, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(buffer + used, size - used, ".%03dZ", (int)(wall_ms % 1000));
}
