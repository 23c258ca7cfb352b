/* stage.h - what tests of the event loop stand on: a loop whose turns never block for long, and waiting with a bound. */
#ifndef FAIRLEAD_TESTS_STAGE_H
#define FAIRLEAD_TESTS_STAGE_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "base/loop.h"

struct stage {
	struct loop *loop;
	struct event tick; /* ends each wait for events after a millisecond */
};

void stage_init(struct stage *stage);

/* Runs a few more turns, so that what was buried is freed, then frees the loop. */
void stage_fini(struct stage *stage);

/* One turn of the loop. */
void stage_turn(struct stage *stage);

/* The real monotonic clock, whatever clock_set() says. */
int64_t stage_real_ms(void);

#define STAGE_PATIENCE_MS 10000

/* Turns until `condition` holds; the test fails when it does not within ten seconds. */
#define STAGE_UNTIL(stage, condition)                                                              \
	do {                                                                                       \
		int64_t stage_end_ms = stage_real_ms() + STAGE_PATIENCE_MS;                        \
		while (!(condition)) {                                                             \
			if (stage_real_ms() > stage_end_ms)                                        \
				fail_msg("waited in vain for: %s", #condition);                    \
			stage_turn(stage);                                                         \
		}                                                                                  \
	} while (0)

#endif
