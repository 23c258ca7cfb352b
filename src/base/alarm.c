/* alarm.c - a deadline that moves often and rings rarely. */
#include "base/alarm.h"

#include <event2/event.h>

#include "base/clock.h"

static void set_timer(struct alarm *alarm, int64_t now_ms)
{
	int64_t wait = alarm->due_ms > now_ms ? alarm->due_ms - now_ms : 0;
	struct timeval tv = {.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};

	alarm->timer_ms = alarm->due_ms;
	event_add(&alarm->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct alarm *alarm = arg;
	int64_t now = clock_ms();

	(void)fd;
	(void)what;
	alarm->timer_ms = 0;
	if (alarm->due_ms > now) {
		set_timer(alarm, now);
	} else if (alarm->due_ms) {
		alarm->due_ms = 0;
		alarm->cb(alarm->arg);
	}
}

void alarm_init(struct alarm *alarm, struct loop *loop, alarm_cb *cb, void *arg)
{
	*alarm = (struct alarm){.cb = cb, .arg = arg};
	event_assign(&alarm->timer, loop_base(loop), -1, 0, on_timer, alarm);
}

void alarm_set(struct alarm *alarm, int64_t due_ms)
{
	alarm->due_ms = due_ms > 0 ? due_ms : 1;
	if (!alarm->timer_ms || alarm->timer_ms > alarm->due_ms)
		set_timer(alarm, clock_ms());
}

void alarm_off(struct alarm *alarm)
{
	alarm->due_ms = 0;
}

void alarm_fini(struct alarm *alarm)
{
	alarm_off(alarm);
	if (alarm->timer_ms)
		event_del(&alarm->timer);
	alarm->timer_ms = 0;
}
