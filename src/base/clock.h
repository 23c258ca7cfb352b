/* clock.h - the time, as a variable.
 *
 * Deadlines and durations use the monotonic clock; the wall clock is for people and log lines only. A test sets the
 * monotonic clock and never sleeps. */
#ifndef FAIRLEAD_BASE_CLOCK_H
#define FAIRLEAD_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Milliseconds, microseconds of the monotonic clock. */
int64_t clock_ms(void);
int64_t clock_us(void);

/* Milliseconds since 1970, UTC. */
int64_t clock_wall_ms(void);

/* Freezes clock_ms() and clock_us() at `ms`; a negative value lets them run again. */
void clock_set(int64_t ms);

/* Writes `wall_ms` as RFC 3339 with milliseconds, "2026-01-31T12:00:00.000Z", into `buffer` (>= 25 bytes). */
void clock_format(int64_t wall_ms, char *buffer, size_t size);

#endif
