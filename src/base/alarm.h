/* alarm.h - a deadline that moves often and rings rarely.
 *
 * Moving it later costs nothing: the timer underneath fires at the old time, sees that it is early, and is set anew. */
#ifndef FAIRLEAD_BASE_ALARM_H
#define FAIRLEAD_BASE_ALARM_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "base/loop.h"

typedef void alarm_cb(void *arg);

struct alarm {
	struct event timer;
	alarm_cb *cb;
	void *arg;
	int64_t due_ms;   /* 0: off */
	int64_t timer_ms; /* when the timer fires; 0: not set */
};

void alarm_init(struct alarm *alarm, struct loop *loop, alarm_cb *cb, void *arg);

/* Rings once at `due_ms` of clock_ms(). */
void alarm_set(struct alarm *alarm, int64_t due_ms);
void alarm_off(struct alarm *alarm);

/* Before the memory goes. */
void alarm_fini(struct alarm *alarm);

#endif
